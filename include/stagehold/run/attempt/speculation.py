"""Speculative attempts: a task that is done with its own share computes a slow one's as well, and who commits first
wins.

The helper works without the slow share's lease, so nothing is taken from an attempt that ends in time. Only when it has
a wave to publish does it take the lease over, which fences the slow attempt; that one finds its partitions consumable
and ends well. Until then nobody sees anything of the helper but files that no commit names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from stagehold.errors import LeaseHeld
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.files import files_at
from stagehold.ledger.leases import Heartbeat
from stagehold.model.partition_set import Share
from stagehold.model.pulse import Meter
from stagehold.model.records import Attempt, AttemptState, Lease
from stagehold.model.states import ATTEMPT, UNTIL_RUNNING, AttemptEvent
from stagehold.plan.resume.decisions import Decision
from stagehold.plan.split.shares import all_finished, newest_covering, region_shares
from stagehold.plan.waves.slow_partitions import TimedAttempt, partitions_to_help
from stagehold.run.attempt.region_work import Heal, RegionWork
from stagehold.run.delivery.wave import PublishRight
from stagehold.run.equipment.memory import memory_now
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.journal import journal
from stagehold.run.lease.lease_holder import this_process
from stagehold.run.lease.leasing import POLL_SECONDS, beating, kept_alive
from stagehold.run.planning.planning import in_its_form
from stagehold.run.planning.task import SPECULATION, RegionTask
from stagehold.run.stopping.stopping import sigterms_told_apart
from stagehold.spec.settings.run_settings import Speculation


class Helper:
    """A task that is done with its own share."""

    def __init__(self, task: RegionTask, workplace: Workplace, heal: Heal) -> None:
        self.task, self.workplace, self.heal = task, workplace, heal

    def help_slow_shares(self) -> None:
        """Compute what slow tasks of the region have left, for as long as one is under way and enough have finished to
        tell.

        Does nothing without `speculation`. A speculative attempt that fails costs nothing, so it is only mentioned; the
        slow task, or its next try, still has to do the work then.
        """
        rules = self.task.pipeline.speculation
        if rules is None or self.task.share is None:
            return
        shares = [share for share in region_shares(self.task.pipeline, self.task.region) if share is not None]
        while True:
            timed = list(self._timed(shares))
            if all(ATTEMPT.is_terminal(attempt.state) for attempt in timed) or not _enough_finished(
                timed, len(shares), rules
            ):
                return
            for slow in partitions_to_help(timed, len(shares), rules):
                if not self._help(shares[slow], places=rules.attempts_at_a_time - 1):
                    return
            self.workplace.sleep(POLL_SECONDS)

    def _timed(self, shares: Sequence[Share]) -> Iterator[TimedAttempt]:
        """The newest attempts of every share that this run has begun; the rules take a share for a partition."""
        attempts = [
            attempt
            for attempt in self.workplace.ledger.attempts.of_run(self.task.request.run_id)
            if attempt.region == self.task.region.name and attempt.began
        ]
        now = self.workplace.ledger.attempts.now()
        for index, share in enumerate(shares):
            finished = all_finished(attempts, share)
            for attempt in newest_covering(attempts, share):
                seconds = ((attempt.ended_at or now) - attempt.started_at).total_seconds()
                state = AttemptState.FINISHED if finished else attempt.state
                yield TimedAttempt(index, state, seconds)

    def _help(self, share: Share, *, places: int) -> bool:
        """Make a speculative attempt, unless as many as allowed are under way. False when it failed."""
        request = in_its_form(self.task.request, self.workplace.ledger)
        task = replace(self.task, request=request, share=share, owner=f"{self.task.owner}/{SPECULATION}")
        lease = self._place(task, places)
        if lease is None:
            return True
        place = self.workplace
        try:
            with kept_alive(lease, place, Meter(partial(memory_now, place.settings))) as heartbeat:
                SpeculativeAttempt(task, journal.attempt_of(task, place.ledger), heartbeat, place, self.heal).run()
                return True
        except Exception as error:  # noqa: BLE001 - whatever a stage function raises
            place.progress(f"the speculative attempt of {task.subject} failed: {type(error).__name__}: {error}")
            return False

    def _place(self, task: RegionTask, places: int) -> Lease | None:
        """A place for a helper of a share, which is a lease; None when all places are taken."""
        for place in range(places):
            try:
                name = f"{task.lease_name}/{SPECULATION}/{task.share}/{place}"
                return self.workplace.ledger.leases.acquire(
                    name, str(this_process(task.owner)), self.workplace.settings.lease_seconds
                )
            except LeaseHeld:
                continue
        return None


def _enough_finished(timed: Sequence[TimedAttempt], shares: int, rules: Speculation) -> bool:
    """Whether enough shares are done to tell slow ones; with too few, whoever finishes later looks for them."""
    return (
        len({attempt.partition for attempt in timed if attempt.state is AttemptState.FINISHED})
        >= rules.finished_share * shares
    )


class SpeculativeAttempt:
    """An attempt whose lease is a helper's place; the share's own comes with the first wave that is ready.

    In the ledger it exists from that moment on, with the epoch of the share's lease.
    """

    def __init__(
        self, task: RegionTask, attempt: Attempt, heartbeat: Heartbeat, workplace: Workplace, heal: Heal
    ) -> None:
        self._work = RegionWork(task, attempt, (), heartbeat, self, workplace, heal)
        self._task, self._attempt, self._heartbeat, self._workplace = task, attempt, heartbeat, workplace
        self._won: PublishRight | None = None
        self._begun: dict[str, Callable[[int], None]] = {}
        self._holding = ExitStack()

    def run(self) -> None:
        self._workplace.progress(f"{self._task.subject} is slow: computing what is left of it, too")
        with self._holding:
            self._holding.callback(self._forget_files)
            self._run_recorded()

    def _run_recorded(self) -> None:
        """The ledger hears how it ended, if it knows of it by then."""
        task, ledger, settings = self._task, self._workplace.ledger, self._workplace.settings
        try:
            with sigterms_told_apart(task, ledger):
                outcome = self._work.do()
        except KeyboardInterrupt as asked:
            if self._won:
                journal.cancel(task, self._won.attempt, ledger, asked)
            raise
        except BaseException as error:
            if self._won:
                journal.fail(task, self._won.attempt, ledger, settings, error)
            raise
        if self._won:
            summary = f"overtook a slow attempt; computed {outcome.computed}"
            journal.succeed(task, self._won.attempt, ledger, summary)
            journal.settle(task, ledger, settings)

    def _forget_files(self) -> None:
        """What nobody will publish goes with the attempt, which the ledger does not know if it did not win."""
        for stage in () if self._won else self._work.tables.stages:
            files_at(self._work.tables.location(stage).uri).delete(f"{DATA_FOLDER}/{self._attempt.attempt_id}")

    def report(self, event: AttemptEvent) -> None:
        """The ledger hears of a speculative attempt when it has the share's lease."""

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:
        """Begin a stage without changing its table, for which the helper has no lease; files can be staged before there
        is a table.
        """
        self._begun[stage] = prepare
        if self._won:
            prepare(self._won.attempt.epoch)

    def right_to(self, stage: str, decisions: Sequence[Decision]) -> PublishRight:
        """Take the share over if there is still something of the wave to publish;
        what the slow attempt published counts.
        """
        if self._won is None and self._open(stage, decisions):
            self._won = self._take_over()
        if self._won is None:
            return PublishRight(self._attempt, self._heartbeat, frozenset())
        return replace(self._won, partitions=self._open(stage, decisions))

    def _open(self, stage: str, decisions: Sequence[Decision]) -> frozenset[int]:
        """Partitions of which nothing was recorded since it was decided to compute them."""
        records = self._workplace.ledger.partitions.newest(self._work.tables.cell(stage))
        newest = {record.partition: record.attempt_id for record in records}
        known = {decision.partition: decision.record and decision.record.attempt_id for decision in decisions}
        return frozenset(partition for partition, attempt_id in known.items() if newest.get(partition) == attempt_id)

    def _take_over(self) -> PublishRight:
        """Fence the slow attempt, record what it could publish but not record, and stop its work in Spark."""
        task, ledger, seconds = self._task, self._workplace.ledger, self._workplace.settings.lease_seconds
        overtaken = ledger.attempts.newest(task.pipeline.name, task.request.interval, task.region.name, task.share)
        holder = str(this_process(task.owner))
        lease = ledger.leases.take(task.lease_name, task.share, holder, seconds, lambda _: True)
        self._holding.callback(ledger.leases.release, lease)
        heartbeat = self._holding.enter_context(beating(lease, self._workplace, self._heartbeat.meter))
        attempt = replace(self._attempt, epoch=lease.epoch)
        ledger.attempts.create(attempt, *UNTIL_RUNNING)
        self._work.tables.fence(Claim(lease.epoch, attempt.attempt_id))
        for prepare in self._begun.values():
            prepare(lease.epoch)
        self._work.tables.adopt(lease)
        journal.tell(task, ledger, SPECULATION, f"took {task.subject} over with epoch {lease.epoch}")
        for slow in overtaken:
            if not ATTEMPT.is_terminal(slow.state):
                self._workplace.engine.release(slow)
        return PublishRight(attempt, heartbeat, frozenset())
