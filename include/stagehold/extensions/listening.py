"""Tells functions of installed packages what becomes of runs (Flink's job status listeners)."""

from __future__ import annotations

import logging

from stagehold.extensions.installed import installed
from stagehold.model.states import RunStatusChange

LISTENERS = "stagehold.run_status_listeners"

log = logging.getLogger(__name__)


def tell_listeners(change: RunStatusChange) -> None:
    """Tell every listener, in the process that made the change and after it was recorded. One that raises is logged,
    and harms nothing.
    """
    for name, listener in installed(LISTENERS).items():
        try:
            listener(change)
        except Exception:
            log.warning("run status listener %s failed on %s -> %s", name, change.run_id, change.after, exc_info=True)
