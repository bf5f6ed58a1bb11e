"""What the trigger and backfill forms offer: savepoints to restore, and intervals to run for.

Whatever is not offered can be written. So nothing is offered in the process of a task, which shows no form, and nothing
of a lake or ledger that is away or slow.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from threading import Thread
from typing import TypeVar

from airflow.sdk import get_parsing_context

from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.model.keys.interval_key import moment_of
from stagehold.settings import Settings
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

Offered = TypeVar("Offered")
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
LOOKED_AT = 100  # runs of a pipeline
MOST = 20  # of a pipeline; others are written by hand
PATIENCE = 2.0  # seconds; Airflow gives a DAG file 30

log = logging.getLogger(__name__)


def offered_savepoints(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Names by pipeline, the newest first.

    Not offered are the checkpoints of runs. There is another one each night, and Airflow keeps a new version of a DAG
    whose form has changed; what is wanted of them is mostly `latest`.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for one in _found_in_time(lambda: Savepoints(settings.lake_uri).all(), "savepoints"):
        names[one.pipeline].append(one.name)
    return {pipeline: tuple(some[:MOST]) for pipeline, some in names.items()}


def offered_intervals(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Intervals that ran, by pipeline, the latest first; those without a place in time last.

    Of a schedule those of today are not offered: the form would be another one after each run, and it is one version of
    the DAG a day that way, also where runs are hourly.
    """
    midnight = datetime.combine(datetime.now(UTC).date(), time(), UTC)
    names: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for pipeline, key in _found_in_time(lambda: _ran(settings), "intervals"):
        moment = moment_of(key, pipeline.schedule)
        if pipeline.schedule is None or moment is None or moment < midnight:
            names[pipeline.name].append((moment or LONG_AGO, key))
    return {pipeline: tuple(key for _, key in sorted(some, reverse=True)[:MOST]) for pipeline, some in names.items()}


def _ran(settings: Settings) -> Iterator[tuple[Pipeline, str]]:
    """Intervals of the newest runs. A ledger that is not there is not made, and one of another version not changed."""
    from stagehold.ledger.database.engine import Database
    from stagehold.ledger.runs import Runs

    kind, _, path = settings.ledger_url.partition(":///")
    if kind.startswith("sqlite") and not Path(path).is_file():
        return
    database = Database(settings.ledger_url)
    try:
        for pipeline in load_each_pipeline(settings):
            if isinstance(pipeline, Pipeline):
                runs = Runs(database).recent(LOOKED_AT, pipeline.name)
                yield from ((pipeline, key) for key in dict.fromkeys(run.interval for run in runs))
    finally:
        database.close()


def _found_in_time(look: Callable[[], Iterable[Offered]], what: str) -> Sequence[Offered]:
    if get_parsing_context().dag_id is not None:
        return ()
    found: list[Offered] = []
    looking = Thread(target=_look, args=(look, what, found), daemon=True)
    looking.start()
    looking.join(PATIENCE)
    return tuple(found)


def _look(look: Callable[[], Iterable[Offered]], what: str, found: list[Offered]) -> None:
    try:
        found.extend(look())
    except Exception:  # whatever a lake or ledger that is away raises; nobody's DAG may go because of that
        log.warning("the forms offer no %s: they cannot be listed", what, exc_info=True)
