"""Speculative attempts: a task that is done with its own share computes a slow one's as well, and who commits first wins.

The helper works without the slow share's lease, so nothing is taken from an attempt that ends in time. Only when it has
a wave to publish does it take the lease over, which fences the slow attempt; that one finds its partitions consumable
and ends well. Until then nobody sees anything of the helper but files that no commit names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from stagehold.errors import LeaseHeld
from stagehold.lake.files import files_at
from stagehold.lake.staging import DATA_FOLDER
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, Lease
from stagehold.plan.decisions import Decision
from stagehold.plan.shares import Share, all_finished, newest_covering, region_shares
from stagehold.plan.slow_partitions import SpeculationSettings, TimedAttempt, slow_attempts, speculate
from stagehold.run import book
from stagehold.run.attempt import RegionAttempt
from stagehold.run.holder import this_process
from stagehold.run.overtaken import POLL_SECONDS
from stagehold.run.region_task import SPECULATION, Progress, RegionOutcome, RegionTask
from stagehold.run.rights import Right
from stagehold.run.sessions import release_session, session_id
from stagehold.settings import Settings

Heal = Callable[[RegionTask], None]


@dataclass(frozen=True)
class Helper:
    """A task that is done with its own share."""

    task: RegionTask
    ledger: Ledger
    settings: Settings
    progress: Progress
    heal: Heal

    def help_slow_shares(self) -> None:
        """Compute what slow tasks of the region have left, for as long as one is under way and enough have finished to tell.

        Does nothing without `speculation`. A speculative attempt that fails costs nothing, so it is only mentioned; the
        slow task, or its next try, still has to do the work then.
        """
        if self.task.pipeline.speculation is None or self.task.share is None:
            return
        rules = SpeculationSettings(**self.task.pipeline.speculation.model_dump())
        shares = [share for share in region_shares(self.task.pipeline, self.task.region) if share is not None]
        while True:
            timed = list(self._timed(shares))
            if not any(one.state is AttemptState.RUNNING for one in timed) or not _enough_finished(timed, len(shares), rules):
                return
            for found in speculate(timed, slow_attempts(timed, len(shares), rules), rules):
                if not self._help(shares[found.partition], places=rules.attempts_at_a_time - 1):
                    return
            time.sleep(POLL_SECONDS)

    def _timed(self, shares: Sequence[Share]) -> Iterator[TimedAttempt]:
        """The newest attempts of every share that this run has begun; the rules take a share for a partition."""
        attempts = [attempt for attempt in self.ledger.attempts.of_run(self.task.run_id) if attempt.region == self.task.region.name]
        now = datetime.now(UTC)
        for index, share in enumerate(shares):
            finished = all_finished(attempts, share)
            for attempt in newest_covering(attempts, share):
                seconds = ((attempt.ended_at or now) - attempt.started_at).total_seconds()
                state = AttemptState.FINISHED if finished else attempt.state
                yield TimedAttempt(index, attempt.epoch, state, "", seconds)

    def _help(self, share: Share, *, places: int) -> bool:
        """Make a speculative attempt, unless as many as allowed are under way. False when it failed."""
        task = replace(self.task, share=share, owner=f"{self.task.owner}/{SPECULATION}")
        lease = self._place(task, places)
        if lease is None:
            return True
        try:
            with Heartbeat(self.ledger, lease, self.settings.lease_seconds) as heartbeat:
                attempt = book.attempt_of(task, lease.epoch, f"{lease.name.removeprefix(task.lease_name)}.{lease.epoch}")
                SpeculativeAttempt(task, attempt, (), self.ledger, heartbeat, self.settings, self.progress, self.heal).run()
                return True
        except Exception as error:  # noqa: BLE001 - whatever a stage function raises
            self.progress(f"the speculative attempt of {task.subject} failed: {type(error).__name__}: {error}")
            return False
        finally:
            self.ledger.leases.release(lease)

    def _place(self, task: RegionTask, places: int) -> Lease | None:
        """One of the places for helpers of a share, each of which is a lease; None when all are taken."""
        for place in range(places):
            try:
                name = f"{task.lease_name}/{SPECULATION}/{task.share}/{place}"
                return self.ledger.leases.acquire(name, str(this_process(task.owner)), self.settings.lease_seconds)
            except LeaseHeld:
                continue
        return None


def _enough_finished(timed: Sequence[TimedAttempt], shares: int, rules: SpeculationSettings) -> bool:
    """With too few, whoever finishes later looks for slow ones."""
    return len({one.partition for one in timed if one.state is AttemptState.FINISHED}) >= rules.finished_share * shares


@dataclass(frozen=True)
class SpeculativeAttempt(RegionAttempt):
    """An attempt whose lease is a helper's place; the share's own comes with the first wave that is ready.

    In the ledger it exists from that moment on, with the epoch of the share's lease.
    """

    _won: list[Right] = field(default_factory=list)
    _begun: dict[str, Callable[[int], None]] = field(default_factory=dict)
    _holding: ExitStack = field(default_factory=ExitStack)

    def run(self) -> RegionOutcome:
        self.progress(f"{self.task.subject} is slow: computing what is left of it, too")
        with self._holding:
            self._holding.callback(self._forget_files)
            try:
                outcome = self._work()
            except KeyboardInterrupt:
                for right in self._won:
                    book.cancel(self.task, right.attempt, self.ledger)
                raise
            except BaseException as error:
                for right in self._won:
                    book.fail(self.task, right.attempt, self.ledger, self.settings, error)
                raise
            for right in self._won:
                book.succeed(self.task, right.attempt, self.ledger, self.settings, f"overtook a slow attempt; computed {outcome.computed}")
            return outcome

    def _forget_files(self) -> None:
        """What nobody will publish goes with the attempt, which the ledger does not know if it did not win."""
        for stage in () if self._won else self._stored_stages:
            files_at(self._location(stage).uri).delete(f"{DATA_FOLDER}/{self.attempt.attempt_id}")

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:
        """Without the lease the table is left as it is; files can be staged before there is one."""
        self._begun[stage] = prepare
        for right in self._won:
            prepare(right.attempt.epoch)

    def secure(self, stage: str, decisions: Sequence[Decision]) -> Right:
        """Take the share over if there is still something of the wave to publish; what the slow attempt published counts."""
        if not self._won and self._open(stage, decisions):
            self._take_over()
        if not self._won:
            return Right(self.attempt, self.heartbeat, frozenset())
        return replace(self._won[0], partitions=self._open(stage, decisions))

    def _open(self, stage: str, decisions: Sequence[Decision]) -> frozenset[int]:
        """Partitions of which nothing was recorded since it was decided to compute them."""
        newest = {record.partition: record.attempt_id for record in self.ledger.partitions.newest(self._cell(stage))}
        known = {decision.partition: decision.record and decision.record.attempt_id for decision in decisions}
        return frozenset(partition for partition, attempt_id in known.items() if newest.get(partition) == attempt_id)

    def _take_over(self) -> None:
        """Fence the slow attempt, record what it could publish but not record, and stop its work in Spark."""
        task, seconds = self.task, self.settings.lease_seconds
        overtaken = self.ledger.attempts.newest(task.pipeline.name, task.interval, task.region.name, task.share)
        lease = self.ledger.leases.take(task.lease_name, task.share, str(this_process(task.owner)), seconds, lambda _: True)
        self._holding.callback(self.ledger.leases.release, lease)
        heartbeat = self._holding.enter_context(Heartbeat(self.ledger, lease, seconds))
        attempt = replace(self.attempt, epoch=lease.epoch)
        self.ledger.attempts.start(attempt)
        self._fence(lease.epoch)
        for prepare in self._begun.values():
            prepare(lease.epoch)
        self._adopt(lease)
        self._won.append(Right(attempt, heartbeat, frozenset()))
        book.tell(task, self.ledger, SPECULATION, f"took {task.subject} over with epoch {lease.epoch}")
        for slow in overtaken:
            if slow.state is AttemptState.RUNNING:
                release_session(self.settings, session_id(self.settings, slow.attempt_id))
