"""Asks functions of installed packages for labels of a failure (Flink's failure enrichers)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stagehold.extensions.installed import installed
from stagehold.model.records import FailureClass

ENRICHERS = "stagehold.failure_enrichers"
PATIENCE_SECONDS = 10  # for all of them together: an attempt that failed should say so soon
LONGEST_LABEL = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FailedAttempt:
    """What an enricher is given: the error as it was raised, and what is known of it."""

    run_id: str
    pipeline: str
    interval: str
    region: str
    kind: FailureClass
    rule: str
    error: BaseException


def labels_of(failed: FailedAttempt, patience: float = PATIENCE_SECONDS) -> Mapping[str, str]:
    """A label from each enricher that has one; its name is that of the entry point. An enricher that raises, or is not
    done in time, is logged and adds nothing. An enricher that never ends goes on in a thread that dies with the
    process.
    """
    found: dict[str, str] = {}
    enrichers = installed(ENRICHERS)
    if enrichers:
        asking = threading.Thread(target=_ask_all, args=(enrichers, failed, found), daemon=True)
        asking.start()
        asking.join(patience)
        if asking.is_alive():
            log.warning("failure enrichers took more than %s s; what they have said is kept", patience)
    return dict(found)


def _ask_all(
    enrichers: Mapping[str, Callable[[FailedAttempt], object]], failed: FailedAttempt, found: dict[str, str]
) -> None:
    for name, enricher in enrichers.items():
        try:
            label = enricher(failed)
        except Exception:
            log.warning("failure enricher %s failed", name, exc_info=True)
            continue
        if label is not None:
            found[name] = str(label)[:LONGEST_LABEL]
