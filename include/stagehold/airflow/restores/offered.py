"""The savepoints that the trigger and backfill forms offer to restore."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from threading import Thread

from airflow.sdk import get_parsing_context

from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.settings import Settings

MOST = 20  # of a pipeline; others are written by hand
PATIENCE = 2.0  # seconds; Airflow gives a DAG file 30

log = logging.getLogger(__name__)


def offered_savepoints(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Names by pipeline, the newest first. None in the process of a task, which shows no form, and none if the lake is
    away or slow: whatever is not offered can be written.

    Not offered are the checkpoints of runs. There is another one each night, and Airflow keeps a new version of a DAG
    whose form has changed; what is wanted of them is mostly `latest`.
    """
    if get_parsing_context().dag_id is not None:
        return {}
    found: list[Savepoint] = []
    looking = Thread(target=_look, args=(settings.lake_uri, found), daemon=True)
    looking.start()
    looking.join(PATIENCE)
    names: dict[str, list[str]] = defaultdict(list)
    for one in tuple(found):
        names[one.pipeline].append(one.name)
    return {pipeline: tuple(some[:MOST]) for pipeline, some in names.items()}


def _look(lake_uri: str, found: list[Savepoint]) -> None:
    try:
        found.extend(Savepoints(lake_uri).all())
    except Exception:  # whatever a lake that is away raises; nobody's DAG may go because of that
        log.warning("the forms offer no savepoints: they cannot be listed", exc_info=True)
