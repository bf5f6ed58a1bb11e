"""Takes numbered checkpoints of a run: all that it has reached, kept where neither ledger nor code is needed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import CheckpointCorrupt, LeaseHeld, StageholdError
from stagehold.lake.checkpoints.manifest import CheckpointedRun, Manifest
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.records import Cell, Lease, PartitionState, Run
from stagehold.model.states import GLOBALLY_TERMINAL
from stagehold.run.attempt.ownership import this_process
from stagehold.run.faults import CheckpointPoint
from stagehold.run.planning.planning import RunRequest, counted
from stagehold.run.workplace import Workplace
from stagehold.spec.pipeline import Pipeline

MOMENT = 0.1
LONGEST = timedelta(hours=1)  # what nobody refers to after so long is of a writer that died
WORTH_KEEPING = (PartitionState.CONSUMABLE, PartitionState.BLOCKED)

log = logging.getLogger(__name__)


def leave_checkpoint(request: RunRequest, workplace: Workplace) -> None:
    """Take a checkpoint if the run has ended, and none was taken since.

    Fails nobody: what the run has reached is on record without it, and the next end of the run takes one. A process
    that dies between the end of the run and its checkpoint leaves none.
    """
    try:
        run = workplace.ledger.runs.get(request.run_id)
        if run.state in GLOBALLY_TERMINAL:
            RunCheckpoints(run, request, workplace).take_at_end()
    except LeaseHeld:
        log.info("somebody else takes a checkpoint of run %s", request.run_id)
    except Exception as error:
        told_on_purpose = isinstance(error, StageholdError)
        log.warning("no checkpoint was left of run %s", request.run_id, exc_info=not told_on_purpose)
        workplace.progress(f"no checkpoint was left of run {request.run_id}: {error}")


@dataclass(frozen=True)
class RunCheckpoints:
    """The checkpoints of one run, for whoever has its coordinator lease."""

    run: Run
    request: RunRequest
    workplace: Workplace

    def take_at_end(self) -> None:
        """:raises LeaseHeld: somebody else is at it, and goes on."""
        ledger, seconds = self.workplace.ledger, self.workplace.settings.lease_seconds
        lease = self._coordinator_lease()
        try:
            with Heartbeat(ledger, lease, seconds) as heartbeat:
                if not self._is_covered():
                    self._take(CheckpointTrigger.END_OF_RUN, heartbeat)
        finally:
            ledger.leases.release(lease)

    def _coordinator_lease(self) -> Lease:
        """Whoever died with it elsewhere has it until it ends; one that is renewed meanwhile is somebody's at work."""
        holder, seconds = this_process(f"checkpoint {uuid4().hex}"), self.workplace.settings.lease_seconds
        take = partial(
            self.workplace.ledger.leases.take,
            coordinator_lease(self.run),
            None,
            str(holder),
            seconds,
            holder.may_seize,
        )
        try:
            return take()
        except LeaseHeld as held:
            self.workplace.sleep(max(held.seconds_left, 0) + MOMENT)
            return take()

    def _is_covered(self) -> bool:
        """Another task of the run that saw its end took one."""
        ended = self.run.ended_at
        return ended is not None and any(one.triggered_at >= ended for one in self._completed)

    @property
    def _completed(self) -> list[CheckpointRecord]:
        """Those that are still kept, by number."""
        known = self.workplace.ledger.checkpoints.of_run(self.run.run_id)
        return [one for one in known if one.state is CheckpointState.COMPLETED and one.discarded_at is None]

    @property
    def _stored(self) -> StoredCheckpoints:
        place = CheckpointedRun(self.run.pipeline, self.run.interval, self.run.run_id)
        return StoredCheckpoints(self.workplace.settings.lake_uri, place)

    def _take(self, trigger: CheckpointTrigger, heartbeat: Heartbeat) -> None:
        ledger = self.workplace.ledger
        self._clear_up()
        record = ledger.checkpoints.begin(self._next(trigger))
        self._reach(CheckpointPoint.BEGUN, record)
        try:
            manifest = self._write(record)
        except Exception as error:
            ledger.checkpoints.fail(record, f"{type(error).__name__}: {error}")
            raise
        self._reach(CheckpointPoint.WRITTEN, record)
        own = [part for part in manifest.parts if part.written_by == record.number]
        heartbeat.check()
        written, everything = (sum(part.bytes for part in parts) for parts in (own, manifest.parts))
        ledger.checkpoints.complete(record, written=written, referenced=everything - written)
        self._reach(CheckpointPoint.RECORDED, record)
        self._release_older(record)
        self.workplace.progress(f"checkpoint {record.number} of run {self.run.run_id} is complete")

    def _next(self, trigger: CheckpointTrigger) -> CheckpointRecord:
        """Numbers never come again, also when the ledger was lost: the lake remembers."""
        known = (one.number for one in self.workplace.ledger.checkpoints.of_run(self.run.run_id))
        return CheckpointRecord(
            run_id=self.run.run_id,
            number=max((*known, *self._stored.numbers()), default=0) + 1,
            pipeline=self.run.pipeline,
            interval=self.run.interval,
            trigger=trigger,
            state=CheckpointState.IN_PROGRESS,
            triggered_at=datetime.now(UTC),
        )

    def _clear_up(self) -> None:
        """Whoever had the lease before and is not at work any more may have died at any step."""
        ledger, stored = self.workplace.ledger, self._stored
        known = {one.number: one for one in ledger.checkpoints.of_run(self.run.run_id)}
        for record in known.values():
            if record.state is CheckpointState.IN_PROGRESS:
                ledger.checkpoints.fail(record, "whoever took it died before it was complete")
        kept = {one.number for one in self._completed}
        for number in stored.numbers():
            if number in known and number not in kept:
                stored.discard(number, datetime.now(UTC) - LONGEST)

    def _write(self, record: CheckpointRecord) -> Manifest:
        known = counted(self.request, self.workplace.ledger)
        checkpoint = Checkpoint(
            id=record.number,
            kind=SnapshotKind.CHECKPOINT,
            pipeline=self.run.pipeline,
            interval=self.run.interval,
            run_id=self.run.run_id,
            taken_at=record.triggered_at,
            stages=tuple(self._snapshots(known.pipeline)),
        )
        return self._stored.write(checkpoint, known.pipeline, builds_on=self._base())

    def _base(self) -> int | None:
        """The newest checkpoint that can be read; what is unchanged since is referred to."""
        for one in reversed(self._completed):
            try:
                return self._stored.read_manifest(one.number).number
            except CheckpointCorrupt as error:
                self.workplace.progress(str(error))
        return None

    def _snapshots(self, pipeline: Pipeline) -> Iterator[StageSnapshot]:
        ledger = self.workplace.ledger
        recorded = ledger.partitions.newest_of(pipeline.name, self.run.interval)
        for stage, shape in zip(pipeline.stages, stage_shapes(pipeline), strict=True):
            cell = Cell(pipeline.name, stage.id, self.run.interval)
            partitions = tuple(
                one
                for one in recorded.get(stage.id, ())
                if one.state in WORTH_KEEPING and one.partition < stage.partitions
            )
            yield StageSnapshot(
                shape=shape,
                parallelism=stage.partitions,
                max_parallelism=stage.max_parallelism,
                partitions=partitions,
                verdicts=ledger.gates.newest(cell) if stage.gate else (),
                position=ledger.positions.taken_by(cell) if stage.source else None,
            )

    def _release_older(self, newest: CheckpointRecord) -> None:
        """By Flink's rule of how many are kept. A row says that one is gone before the lake forgets it."""
        entries = [CompletedCheckpoint(one.number, SnapshotKind.CHECKPOINT) for one in self._completed]
        store = CheckpointStore(self.request.pipeline.checkpoint.retained, tuple(entries[:-1]))
        _, dropped = store.add(entries[-1])
        gone = {entry.id for entry in dropped}
        for record in [one for one in self._completed if one.number in gone]:
            self.workplace.ledger.checkpoints.discard(record)
            self._reach(CheckpointPoint.RELEASED, newest)
            self._stored.discard(record.number, datetime.now(UTC) - LONGEST)

    def _reach(self, point: CheckpointPoint, record: CheckpointRecord) -> None:
        self.workplace.faults.reach(point, self.run.pipeline, record.number)


def coordinator_lease(run: Run) -> str:
    """Name of the lease without which nobody takes a checkpoint of the run."""
    return f"{run.pipeline}/{run.interval}/{run.run_id}/coordinator"
