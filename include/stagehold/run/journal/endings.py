"""Attempts that end before they begin:
recorded all the same, so that people see the reason and their number ends them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from stagehold.errors import LedgerUnavailable, RunIdTaken
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.plan.restart.failure import diagnose
from stagehold.plan.restart.replay import TRIES_TO_BEGIN, pause_before_try
from stagehold.plan.restart.rules import LEDGER_UNAVAILABLE
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Progress
from stagehold.run.journal import journal
from stagehold.run.journal.journal import attach, verdict_of
from stagehold.run.planning.task import RegionTask
from stagehold.run.stopping.sigterm import sigterms_told_apart
from stagehold.settings import Settings
from stagehold.spec.settings.restart import RestartStrategy

T = TypeVar("T")


@contextmanager
def recorded(
    task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress, waiting: Attempt | None = None
) -> Iterator[None]:
    """Record what ends the block before its end, and attach to an error what follows from it. A ledger that is away
    cannot be told.

    :param waiting: the attempt that ends with it; without one, it is made then.
    """
    try:
        with sigterms_told_apart(task, ledger), naming_storage(settings):
            yield
    except KeyboardInterrupt as asked:
        journal.cancel(task, waiting or journal.create_attempt(task, ledger), ledger, asked)
        raise
    except Exception as error:
        with suppress(LedgerUnavailable, RunIdTaken):
            attempt = waiting or journal.create_attempt(task, ledger)
            verdict = journal.fail(task, attempt, ledger, settings, error)
            progress(f"{task.subject}: {verdict}")
            attach(error, verdict)
        raise


def despite_outages(task: RegionTask, progress: Progress, work: Callable[[], T]) -> T:
    """Do ``work`` again, after a while, if it failed and no ledger was there to be told:
    as often as other tries to begin.
    """
    for following in range(2, TRIES_TO_BEGIN + 1):
        try:
            return work()
        except Exception as error:
            if not _was_outage(task, error):
                raise
            pause = pause_before_try(following, task.pipeline.restart).total_seconds()
            progress(f"{task.subject}: try {following} of {TRIES_TO_BEGIN} in {pause:.0f} s: {error}")
        time.sleep(pause)
    return work()


def _was_outage(task: RegionTask, error: Exception) -> bool:
    if verdict_of(error) or task.pipeline.restart.strategy is RestartStrategy.NONE:
        return False
    return diagnose(error).rule.name == LEDGER_UNAVAILABLE
