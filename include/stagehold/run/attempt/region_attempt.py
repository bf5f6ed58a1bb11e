"""An attempt of a region while it holds the lease: it fences earlier attempts and adopts what they left, does the work,
and records how it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from stagehold.code.unchanging_files import unchanging_files
from stagehold.errors import Fenced, LeaseLost, RunSuspended, StageholdError
from stagehold.lake.commit.committed_waves import RECENT
from stagehold.lake.commit.wave_commit import Claim
from stagehold.ledger.leases import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Restore
from stagehold.model.states import ATTEMPT, AttemptEvent
from stagehold.plan.restart.after_failure import last_failure
from stagehold.plan.resume.decisions import Decision, ResumePlan, RunDecision
from stagehold.plan.split.regions import region_parts
from stagehold.plan.split.shares import all_finished
from stagehold.run.attempt.region_work import Heal, RegionWork
from stagehold.run.attempt.stage_news import StageNews
from stagehold.run.delivery.wave import PublishRight
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Point
from stagehold.run.journal import journal
from stagehold.run.journal.journal import attach
from stagehold.run.lease.leasing import wait_for_faster
from stagehold.run.planning.planning import IntervalView
from stagehold.run.planning.restoring import check_restore, fulfil_restore
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.stopping import sigterms_told_apart
from stagehold.run.upkeep.lost_files import put_lost_back
from stagehold.settings import Settings
from stagehold.spec.settings.run_settings import Failover


class LeasePublisher:
    """The lease gives the right to publish from the start, and the ledger gets every step of the attempt."""

    def __init__(self, attempt: Attempt, heartbeat: Heartbeat, ledger: Ledger, news: StageNews) -> None:
        self._attempt, self._heartbeat, self._ledger, self._news = attempt, heartbeat, ledger, news

    def report(self, event: AttemptEvent) -> None:
        self._ledger.attempts.apply(self._attempt.attempt_id, event)
        self._news.tell()

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:  # noqa: ARG002
        prepare(self._attempt.epoch)

    def right_to(self, stage: str, decisions: Sequence[Decision]) -> PublishRight:  # noqa: ARG002
        return PublishRight(self._attempt, self._heartbeat, frozenset(decision.partition for decision in decisions))


class RegionAttempt:
    """An attempt; ``previous`` are attempts before it on the same partitions and interval, of this run or others."""

    def __init__(self, work: RegionWork, previous: tuple[Attempt, ...], news: StageNews) -> None:
        self.work, self.previous, self.news = work, previous, news

    @staticmethod
    def begin(
        task: RegionTask, waiting: Attempt, heartbeat: Heartbeat, workplace: Workplace, heal: Heal
    ) -> RegionAttempt:
        """Begin the attempt; ``waiting`` is the attempt while it waited for its lease."""
        ledger, epoch = workplace.ledger, heartbeat.lease.epoch
        newest = ledger.attempts.newest(task.pipeline.name, task.request.interval, task.region.name, task.share)
        previous = tuple(
            attempt for attempt in newest if attempt.epoch < epoch
        )  # a later attempt has taken the lease over since
        news = StageNews(task, ledger)
        attempt = journal.begin_attempt(task, waiting, epoch, ledger)
        died = tuple(attempt for attempt in previous if attempt.state is not AttemptState.FINISHED)
        publisher = LeasePublisher(attempt, heartbeat, ledger, news)
        return RegionAttempt(RegionWork(task, attempt, died, heartbeat, publisher, workplace, heal), previous, news)

    def run(self) -> RegionOutcome | None:
        """Do the work and record how it ended; None if the run starts anew meanwhile, so that everything has to be done
        again.

        An attempt that lost its share to a faster one waits for that one, and ends as that one does.
        """
        started, outcome = time.monotonic(), None
        with self._end_recorded():
            try:
                self._take_over()
                with self._ending_with_lease(), unchanging_files():
                    outcome = self.work.do()
            except Exception as error:
                if not self._is_overtaken:
                    raise
                self._tell_overtaken(error)
            if outcome is None:
                outcome = self._outcome_of_faster(started)
        return self._settled(outcome)

    @contextmanager
    def _ending_with_lease(self) -> Iterator[None]:
        """Stop what the block has computed in Spark as soon as the lease is lost: nothing of it could be published.

        :raises LeaseLost: or Fenced, in place of what that ends the block with.
        """
        heartbeat, engine = self.work.heartbeat, self.work.workplace.engine
        heartbeat.when_lost = partial(engine.release, self.work.attempt)
        try:
            yield
        except Exception as error:
            if not heartbeat.lost.is_set() or isinstance(error, Fenced | LeaseLost):
                raise
            try:
                heartbeat.check()
            except StageholdError as loss:
                raise loss from error
        finally:
            heartbeat.when_lost = lambda: None

    @contextmanager
    def _end_recorded(self) -> Iterator[None]:
        """Record an error that ends the block early, and attach to the error what follows from it."""
        task, attempt, place = self.work.task, self.work.attempt, self.work.workplace
        try:
            with sigterms_told_apart(task, place.ledger), naming_storage(place.settings):
                yield
        except KeyboardInterrupt as asked:
            self.work.answers.close()
            journal.cancel(task, attempt, place.ledger, asked)
            raise
        except RunSuspended as suspended:
            journal.suspend(task, attempt, place.ledger, suspended)
            raise
        except BaseException as error:
            self.work.answers.close()
            verdict = journal.fail(task, attempt, place.ledger, place.settings, error)
            place.progress(f"{task.region.name}: {verdict}")
            attach(error, verdict)
            raise
        finally:
            self.news.tell()

    def _settled(self, outcome: RegionOutcome) -> RegionOutcome | None:
        """The run, after the attempt has done its work."""
        task, attempt, place = self.work.task, self.work.attempt, self.work.workplace
        journal.succeed(task, attempt, place.ledger, str(outcome))
        self.news.tell()
        if not counts(task, attempt, place.ledger):
            place.progress(f"{task.subject} begins again: the run failed meanwhile (failover: full)")
            return None
        while part := unattended_part(task, place.ledger, place.settings):
            place.progress(f"computing parts of {part.subject} again, since the run failed (failover: full)")
            self.work.heal(part)
        journal.settle(task, place.ledger, place.settings)
        if restore := fulfil_restore(task.request, place.ledger):
            journal.tell(task, place.ledger, "restored", _told(restore))
        return outcome

    @property
    def _is_overtaken(self) -> bool:
        speculates = self.work.task.pipeline.speculation is not None
        return speculates and not self.work.workplace.ledger.leases.holds(self.work.heartbeat.lease)

    def _tell_overtaken(self, error: Exception) -> None:
        subject, name = self.work.task.subject, type(error).__name__
        self.work.workplace.progress(f"{subject} was overtaken by a faster attempt ({name}); waiting for that one")

    def _outcome_of_faster(self, started: float) -> RegionOutcome:
        work, place = self.work, self.work.workplace
        plan = wait_for_faster(work.heartbeat.lease, place, work.finished_plan)
        work.refuse_blocked(plan)
        journal.tell(work.task, place.ledger, "superseded", "a faster attempt made every partition consumable")
        return RegionOutcome(
            sum(len(plan.records(name)) for name in work.tables.stages), 0, 0, time.monotonic() - started
        )

    def _take_over(self) -> None:
        """Fence every earlier attempt that may still be alive, and record what was committed and is not recorded."""
        task, place = self.work.task, self.work.workplace
        place.faults.reach(Point.AFTER_LEASE, task.region.name)
        check_restore(task.request)
        behind, attempt = self._ledger_is_behind, self.work.attempt
        if behind:
            place.progress(
                f"the ledger lacks epochs of {task.subject}, as after its loss, a sweep, a scrub or a new name: "
                "its tables' logs say what was committed"
            )
        if self.work.died or behind:
            self.work.tables.fence(Claim(attempt.epoch, attempt.attempt_id))
            self.work.tables.adopt(self.work.heartbeat.lease, None if behind else RECENT)
        put_lost_back(task.request, place.ledger, place.settings, place.progress)

    @property
    def _ledger_is_behind(self) -> bool:
        """Whether attempts may have committed or fenced here that the ledger does not know, for example after it was
        lost or put back.

        If the epochs of the region follow one another without a gap, since an attempt last finished on these
        partitions, there are no such attempts; the logs are read only if there is a gap. A gap without such attempts,
        as a sweep or a scrub leaves it, costs reading a log.
        """
        finished = max(
            (attempt.epoch for attempt in self.previous if attempt.state is AttemptState.FINISHED), default=0
        )
        known = self.work.workplace.ledger.attempts.epochs(self.work.attempt)
        missing = set(range(finished + 1, self.work.attempt.epoch)) - known
        return bool(missing) and self.work.tables.newest_epoch(self.work.task.share) > 0


def _told(restore: Restore) -> str:
    if restore.snapshot:
        return f"all of {restore.snapshot} is taken over or computed anew, so the run does not need it any more"
    if restore.work_order is not None:
        return f"{', '.join(restore.work_order.anew)} computed once more, as was asked for"
    return f"{restore.stage} and all that reads it is computed anew, as was asked for"


def counts(task: RegionTask, attempt: Attempt, ledger: Ledger) -> bool:
    """Whether the attempt's work counts. With `failover: full` it is lost if the run has failed elsewhere since the
    attempt began.
    """
    if task.pipeline.failover is not Failover.FULL:
        return True
    failed = last_failure(ledger.attempts.of_run(task.request.run_id))
    return failed is None or failed < attempt.started_at


def unattended_part(task: RegionTask, ledger: Ledger, settings: Settings) -> RegionTask | None:
    """A part of the run that was done before the run failed, and that no task will come for.

    None while a task is at work, or is still to have its first success: it makes what it reads again by itself, and the
    task that ends last makes the rest. Two tasks that end at once may both get the same part; its lease lets one of
    them make it.
    """
    if task.pipeline.failover is not Failover.FULL:
        return None
    attempts = ledger.attempts.of_run(task.request.run_id)
    if last_failure(attempts) is None:
        return None
    succeeded = [attempt for attempt in attempts if attempt.state is AttemptState.FINISHED]
    parts = [replace(task, region=region, share=share) for region, share in region_parts(task.pipeline)]
    ended = all(ATTEMPT.is_terminal(attempt.state) for attempt in attempts)
    if not ended or not all(_has_succeeded(part, succeeded) for part in parts):
        return None
    plan = IntervalView.of_run(task.request, ledger, settings).plan
    return next((part for part in (_to_make_again(part, plan) for part in parts) if part.only), None)


def _has_succeeded(part: RegionTask, succeeded: list[Attempt]) -> bool:
    return all_finished([attempt for attempt in succeeded if attempt.region == part.region.name], part.share)


def _to_make_again(part: RegionTask, plan: ResumePlan) -> RegionTask:
    own = plan.within(part.region.stages, part.share)
    again = {stage: frozenset(_made_anew(own.of(stage))) for stage in part.region.stages}
    return replace(part, only={stage: partitions for stage, partitions in again.items() if partitions})


def _made_anew(decisions: Iterable[Decision]) -> Iterator[int]:
    return (decision.partition for decision in decisions if isinstance(decision, RunDecision) and decision.anew)
