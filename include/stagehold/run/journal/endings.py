"""Attempts that end before they begin. They are recorded all the same, so that people see the reason, and so that their
number is limited.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from stagehold.errors import LedgerUnavailable, RunIdTaken
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.plan.restart.replay import TRIES_TO_BEGIN, pause_before_try
from stagehold.plan.restart.rules import LEDGER_UNAVAILABLE, diagnose
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Progress
from stagehold.run.journal import journal
from stagehold.run.journal.journal import attach, verdict_of
from stagehold.run.planning.task import RegionTask
from stagehold.run.stopping.stopping import sigterms_told_apart
from stagehold.settings import Settings
from stagehold.spec.settings.restart import RestartStrategy


@contextmanager
def recorded(
    task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress, waiting: Attempt | None = None
) -> Iterator[None]:
    """Record an error that ends the block early, and attach to it what follows from it. If the ledger is away, nothing
    is recorded.

    :param waiting: the attempt that ends with the error; without one, it is made then.
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


class OutageTries:
    """Tries after failures while the ledger was away: as many as other attempts have to begin."""

    def __init__(self, task: RegionTask, progress: Progress) -> None:
        self._task, self._progress, self._following = task, progress, 2

    def wait(self, error: Exception) -> None:
        """Wait before the next try; raises as `pause` does."""
        time.sleep(self.pause(error))

    def pause(self, error: Exception) -> float:
        """Seconds until the next try. Raises ``error`` if it is of another kind or there is no other try."""
        if self._following > TRIES_TO_BEGIN or not _was_outage(self._task, error):
            raise error
        pause = pause_before_try(self._following, self._task.pipeline.restart).total_seconds()
        number = f"try {self._following} of {TRIES_TO_BEGIN}"
        self._progress(f"{self._task.subject}: {number} in {pause:.0f} s: {error}")
        self._following += 1
        return pause


class Restarts:
    """Restarts of one region, as its pipeline's restart strategy allows them. If the ledger is away, it cannot be
    asked, and there are some tries.
    """

    def __init__(self, task: RegionTask, progress: Progress) -> None:
        self._task, self._progress = task, progress
        self._outages = OutageTries(task, progress)

    def wait(self, error: Exception) -> None:
        """Wait before the next try; raises as `pause` does."""
        time.sleep(self.pause(error))

    def pause(self, error: Exception) -> float:
        """Seconds until the next try; raises ``error`` if there is no other try."""
        verdict = verdict_of(error)
        if verdict is None or verdict.decision is None or not verdict.decision.restart:
            return self._outages.pause(error)
        self._outages = OutageTries(self._task, self._progress)
        delay = verdict.decision.delay.total_seconds()
        self._progress(f"{self._task.region.name} runs again in {delay:.1f} s: {error}")
        return delay


def _was_outage(task: RegionTask, error: Exception) -> bool:
    if verdict_of(error) or task.pipeline.restart.strategy is RestartStrategy.NONE:
        return False
    return diagnose(error).rule.name == LEDGER_UNAVAILABLE
