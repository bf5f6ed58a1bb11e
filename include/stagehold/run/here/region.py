"""An attempt of a region, from lease to result. Retry, clear, resume, backfill and new runs all come through here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import LeaseHeld, PartitionDataMissing, RestartRefused
from stagehold.extensions.leadership import Leadership, LeadershipChange, tell_leadership
from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import overlap
from stagehold.model.pulse import Meter
from stagehold.model.records import Attempt, Lease
from stagehold.model.states import ATTEMPT
from stagehold.plan.split.shares import share_of
from stagehold.run.attempt.region_attempt import RegionAttempt
from stagehold.run.attempt.speculation import Helper
from stagehold.run.checkpoints.coordination import coordinating, leave_checkpoint
from stagehold.run.clearing.output_release import release_after_attempt
from stagehold.run.equipment.memory import memory_now
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Engine, Progress, Workplace
from stagehold.run.faults import Faults
from stagehold.run.here.split_taking import SplitTaking, with_taken
from stagehold.run.journal import journal
from stagehold.run.journal.endings import recorded
from stagehold.run.journal.journal import verdict_of
from stagehold.run.lease.leasing import LeaseWait, beating, take_lease
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import in_its_form
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import Settings

log = logging.getLogger(__name__)


def run_region(
    task: RegionTask,
    settings: Settings,
    progress: Progress,
    waiting: Attempt | None = None,
    engine_of: Callable[[Settings, Progress], Engine] = SparkEngine,
) -> RegionOutcome:
    """Make every partition of the region consumable, reusing those that are.

    Lost data of other regions is healed first, as little of it as is needed. Data that disappears while it is read is
    healed, too, by another attempt that goes on where this one stopped.

    Promises that nothing is readable twice or ungated, whenever this process dies. Does not promise that an earlier
    attempt has stopped computing: only that what it does from now on stays unreadable. A KeyboardInterrupt, wherever it
    comes, cancels: the Spark session is released on the way out, and attempt and run are CANCELED.

    :param waiting: the attempt that waited for the inputs, if one did.
    :raises StageholdError: Terminal if another try cannot help, Transient if it may. Errors of stage functions come out
        as they are.
    """
    with open_ledger(settings, task.redact) as ledger, ledger.kept_open():
        with recorded(task, ledger, settings, progress, waiting):
            refuse_lost_ledger(task.request, ledger, settings)
        engine, faults = engine_of(settings, progress), Faults(settings.home_path, task.request.interval)
        outcome = work_on(task, Workplace(ledger, settings, progress, engine, faults), waiting)
        TIMINGS.passed(Lap.END)
        log.info("%s, time of this process so far: %s", task.subject, TIMINGS)
        return outcome


@contextmanager
def open_workplace(settings: Settings, progress: Progress) -> Iterator[Workplace]:
    """The workplace for commands that change the lake beside attempts."""
    with open_ledger(settings) as ledger:
        engine, faults = SparkEngine(settings, progress), Faults(settings.home_path, "")
        yield Workplace(ledger, settings, progress, engine, faults)


def work_on(task: RegionTask, workplace: Workplace, waiting: Attempt | None = None) -> RegionOutcome:
    """Do what `run_region` promises in a given workplace: take splits if the task asks for them, begin attempts until
    all is done, and then see whether other shares need help.
    """
    taken, began = tuple[RegionOutcome, ...](), datetime.now(UTC)
    if task.asks:
        taken = SplitTaking(task, workplace, lambda lease, part: _attempt_with(lease, part, None, workplace)).take()
    outcome = None
    while outcome is None:
        attempt = waiting or journal.create_attempt(task, workplace.ledger)
        try:
            with recorded(task, workplace.ledger, workplace.settings, workplace.progress, attempt):
                journal.schedule_attempt(task, attempt, workplace.ledger, workplace.settings)
                lease = _lease_when_free(task, workplace)
            outcome = _attempt_with(lease, task, attempt, workplace)
        except PartitionDataMissing as error:
            verdict = verdict_of(error)
            if verdict is None or not verdict.restarts_at_once:
                raise
            workplace.progress(f"{error} Computing it again and going on.")
        waiting = None
    if task.asks:
        return with_taken(outcome, taken, task, workplace, began)
    Helper(task, workplace, Healer(workplace)).help_slow_shares()
    return outcome


def _attempt_with(
    lease: Lease, task: RegionTask, waiting: Attempt | None, workplace: Workplace
) -> RegionOutcome | None:
    ledger, settings = workplace.ledger, workplace.settings
    try:
        attempt = waiting or _scheduled(task, workplace)
        with recorded(task, ledger, settings, workplace.progress, attempt):
            record_lost_attempts(task, attempt, lease, workplace)
            task = replace(task, request=in_its_form(task.request, ledger))  # once: later failures are others' business
        meter = Meter(partial(memory_now, settings))
        with beating(lease, workplace, meter) as heartbeat:
            begun = RegionAttempt.begin(task, attempt, heartbeat, workplace, Healer(workplace))
            with coordinating(task.request, workplace):
                outcome = begun.run()
    finally:
        ledger.leases.release(lease)
        release_after_attempt(task.request, workplace)
        untold = leave_checkpoint(task.request, workplace)  # points to nothing that was released
    if untold:
        raise untold
    return outcome


def _scheduled(task: RegionTask, workplace: Workplace) -> Attempt:
    attempt = journal.create_attempt(task, workplace.ledger)
    journal.schedule_attempt(task, attempt, workplace.ledger, workplace.settings)
    return attempt


class Healer:
    """Has an attempt of another region heal what one of ours needs, under that region's own lease.

    If another process has that lease, it only waits a moment: the holder may heal the same data for another reader, or
    be the region's own task, so the caller has to look again at what is still lost.
    """

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._waits: dict[str, LeaseWait] = {}

    def __call__(self, task: RegionTask) -> None:
        try:
            lease = take_lease(task, self._workplace)
        except LeaseHeld as held:
            known = self._waits.setdefault(task.lease_name, LeaseWait(task, self._workplace))
            return known.pause(held)
        self._waits.pop(task.lease_name, None)
        _attempt_with(lease, task, None, self._workplace)


def _lease_when_free(task: RegionTask, workplace: Workplace) -> Lease:
    """The lease of the task's share, once it is free. A process that works on the share may finish: the plan that
    follows reuses its work, and usually all of it.

    :raises LeaseNotFreed: it did not finish in time.
    """
    wait = LeaseWait(task, workplace)
    while True:
        try:
            return take_lease(task, workplace)
        except LeaseHeld as held:
            wait.pause(held)


def record_lost_attempts(task: RegionTask, attempt: Attempt, lease: Lease, workplace: Workplace) -> None:
    """End the attempts before this one that have not ended in the ledger. The holder of the lease knows that they are
    dead, or cannot publish any more. A process that has lost the lease since knows nothing: it would end its own
    successor.

    A launcher that tries again by itself could not ask the strategy about a process that was killed, so it is asked
    here. An earlier try that still waits is taken for dead, too: if it is not, it goes on as a new attempt.

    :raises Fenced: another process has taken the lease over, and nothing was ended.
    """
    ledger, settings = workplace.ledger, workplace.settings
    with ledger.together():
        ledger.leases.renew(
            lease, settings.lease_seconds
        )  # so that the lease is not taken before the losses are recorded
        began = ledger.attempts.newest(task.pipeline.name, task.request.interval, task.region.name, task.share)
        lost = [
            other for other in (*began, *_waiting_before(attempt, task, ledger)) if not ATTEMPT.is_terminal(other.state)
        ]
        decisions = [(other, journal.record_loss(task, other, ledger, settings)) for other in lost]
    for lost_attempt, decision in decisions:
        if decision is None:
            continue
        tell_leadership(_timed_out(lost_attempt, lease))
        known = f"epoch {lost_attempt.epoch}" if lost_attempt.began else "a try that had not begun"
        workplace.progress(f"{task.subject}: {known} ended without a word; {decision.reason}")
        if task.again and not decision.restart:
            raise RestartRefused(task.subject, decision.reason)


def _timed_out(lost: Attempt, lease: Lease) -> LeadershipChange:
    reason = f"its attempt {lost.attempt_id} ended without a word, as {lease.holder} noticed with epoch {lease.epoch}"
    return LeadershipChange(Leadership.TIMED_OUT, lease_of(lost), "", lost.epoch, reason)


def _waiting_before(attempt: Attempt, task: RegionTask, ledger: Ledger) -> list[Attempt]:
    """Earlier tries of the same partitions in the run that never had a lease. An attempt that heals, or one for splits
    that a task took, is not a later try of theirs.
    """
    earlier = [other for other in ledger.attempts.of_run(attempt.run_id) if other.started_at < attempt.started_at]
    return [
        other
        for other in earlier
        if task.only is None
        and task.taken_by is None
        and other.region == attempt.region
        and overlap(share_of(other), share_of(attempt))
        and not other.began
    ]
