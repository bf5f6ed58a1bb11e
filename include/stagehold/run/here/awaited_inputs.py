"""Lets a task that was started early wait until its inputs are consumable."""

from __future__ import annotations

import time
from collections.abc import Mapping

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import InputsNeverCame
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, RunState
from stagehold.plan.resume.decisions import RunDecision
from stagehold.plan.resume.healing import partitions_read
from stagehold.run.equipment.workplace import Progress
from stagehold.run.journal import journal
from stagehold.run.journal.endings import recorded
from stagehold.run.planning.planning import IntervalView
from stagehold.run.planning.restoring import check_restore
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings

POLL_SECONDS = 0.5
GIVEN_UP = (RunState.FAILING, RunState.FAILED, RunState.CANCELLING, RunState.CANCELED, RunState.SUSPENDED)


class WaitingClock:
    """The time in seconds, and how to let some pass."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def await_inputs(
    task: RegionTask, settings: Settings, progress: Progress, clock: WaitingClock | None = None
) -> Attempt:
    """Wait for the partitions that the task reads and that this run still has to make; returns the attempt that waited,
    which is not scheduled yet.

    Each partition is waited for by itself, so that a task over a share starts when the upstream tasks of its own
    partitions are done. A partition that an earlier run left counts if this run would leave it as it is. A partition
    from before the run failed and started anew is not waited for: the attempt makes it again. If code cannot be
    compared it is never known to be done, so its readers wait in vain.

    :raises InputsNeverCame: they were not there in time, or the run failed meanwhile and nobody tried again.
    """
    with open_ledger(settings, task.redact) as ledger:
        attempt = journal.create_attempt(task, ledger)
        with recorded(task, ledger, settings, progress, attempt):
            check_restore(task.request)
            _await_inputs(task, ledger, settings, progress, clock or WaitingClock())
        return attempt


def _await_inputs(
    task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress, clock: WaitingClock
) -> None:
    deadline = clock.now() + settings.input_seconds
    given_up = clock.now() + _patience(task)
    announced = False
    while missing := _to_come(task, ledger, settings):
        now = clock.now()
        if not _has_failed(task, ledger):
            given_up = now + _patience(task)
        if now > min(deadline, given_up):
            raise InputsNeverCame(task.region.name, missing)
        if not announced:
            named = ", ".join(f"{len(partitions)} partitions of {stage}" for stage, partitions in missing.items())
            progress(f"{task.subject} waits for {named}")
            announced = True
        clock.sleep(POLL_SECONDS)


def _to_come(task: RegionTask, ledger: Ledger, settings: Settings) -> Mapping[str, tuple[int, ...]]:
    plan = IntervalView.of_run(task.request, ledger, settings).plan
    read = partitions_read(plan, task.pipeline, task.region, task.share)
    missing = {
        stage: tuple(
            decision.partition
            for decision in decisions
            if decision.action.computes and not (isinstance(decision, RunDecision) and decision.anew)
        )
        for stage, decisions in read.items()
    }
    return {stage: partitions for stage, partitions in missing.items() if partitions}


def _has_failed(task: RegionTask, ledger: Ledger) -> bool:
    newest = ledger.runs.newest(task.pipeline.name, task.request.interval)
    return newest is not None and newest.run_id == task.request.run_id and newest.state in GIVEN_UP


def _patience(task: RegionTask) -> float:
    """How long a failed run may take until it is tried again: the longest pause before a restart, and the time it takes
    to start.
    """
    restart = task.pipeline.restart
    pauses = [pause.total_seconds() for pause in (restart.delay, restart.max) if pause is not None]
    return max([60.0, *pauses]) + 30
