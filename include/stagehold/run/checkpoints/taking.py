"""Writes numbered checkpoints of a run: all that it has reached, kept where neither ledger nor code is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import CheckpointCorrupt
from stagehold.lake.checkpoints.manifest import CheckpointedRun, Manifest
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.checkpoint_records import (
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    CheckpointTrigger,
)
from stagehold.model.records import Cell, GateResult, Lease, PartitionRecord, Run
from stagehold.run.attempt.ownership import this_process
from stagehold.run.faults import CheckpointPoint
from stagehold.run.planning.planning import RunRequest, counted
from stagehold.run.workplace import Workplace
from stagehold.spec.pipeline import Pipeline, Stage

LONGEST = timedelta(hours=1)  # what nobody refers to after so long is of a writer that died
FEW = 1000  # so many partitions may be named in one query


@dataclass(frozen=True)
class _Base:
    """The checkpoint that the next one builds on, and the ids of rows that it has; 0 if nobody knows that."""

    manifest: Manifest
    covers: int


@dataclass(frozen=True)
class RunCheckpoints:
    """The checkpoints of one run, for whoever has its coordinator lease: that is the lease of ``heartbeat``.

    What is written under a lease that somebody has taken over changes nothing in the ledger. In the lake it may leave a
    manifest that no row counts; the next holder clears it up.
    """

    run: Run
    request: RunRequest
    workplace: Workplace
    heartbeat: Heartbeat

    @property
    def store(self) -> CheckpointStore:
        """Those that are kept, by number."""
        entries = (CompletedCheckpoint(one.number, SnapshotKind.CHECKPOINT) for one in self._known if one.kept)
        return CheckpointStore(self.request.pipeline.checkpoint.retained, tuple(entries))

    @property
    def next_number(self) -> int:
        """Numbers never come again, also when the ledger was lost: the lake remembers."""
        known = (one.number for one in self._known)
        return max((*known, *self._stored.numbers()), default=0) + 1

    def clear_up(self) -> None:
        """Whoever had the lease before and is not at work any more may have died at any step."""
        known = {one.number: one for one in self._known}
        for record in known.values():
            if record.state is CheckpointState.IN_PROGRESS:
                reason, text = CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND, "whoever took it died before its end"
                self.fail(record, reason, text)
        for number in self._stored.numbers():
            if number in known and not known[number].kept:
                self._stored.discard(number, datetime.now(UTC) - LONGEST)

    def begin(self, number: int, trigger: CheckpointTrigger) -> CheckpointRecord:
        """Spend the number."""
        run = self.run
        record = CheckpointRecord(
            run_id=run.run_id,
            number=number,
            pipeline=run.pipeline,
            interval=run.interval,
            trigger=trigger,
            state=CheckpointState.IN_PROGRESS,
            triggered_at=datetime.now(UTC),
        )
        begun = self.workplace.ledger.checkpoints.begin(record, self._lease)
        self.reach(CheckpointPoint.BEGUN, number)
        return begun

    def write(self, record: CheckpointRecord) -> tuple[Manifest, int]:
        """Make it durable in the lake; the ids of rows that it covers go up to the number that is given with it."""
        known = counted(self.request, self.workplace.ledger)
        base, upto = self._base(), self.workplace.ledger.partitions.highest_id()
        checkpoint = Checkpoint(
            id=record.number,
            kind=SnapshotKind.CHECKPOINT,
            pipeline=self.run.pipeline,
            interval=self.run.interval,
            run_id=self.run.run_id,
            taken_at=record.triggered_at,
            stages=tuple(self._snapshots(known.pipeline, base, upto)),
        )
        return self._stored.write(checkpoint, known.pipeline, builds_on=base.manifest.number if base else None), upto

    def complete(self, record: CheckpointRecord, manifest: Manifest, covers: int) -> CheckpointRecord:
        """The manifest is there: say so."""
        self.reach(CheckpointPoint.WRITTEN, record.number)
        self.heartbeat.check()
        own = [part for part in manifest.parts if part.written_by == record.number]
        written, everything = (sum(part.bytes for part in parts) for parts in (own, manifest.parts))
        completed = self.workplace.ledger.checkpoints.complete(
            record, self._lease, written=written, referenced=everything - written, covers=covers
        )
        self.reach(CheckpointPoint.RECORDED, record.number)
        return completed

    def fail(
        self, record: CheckpointRecord, reason: CheckpointFailure, text: str, *, fails_run: bool = False
    ) -> CheckpointRecord:
        return self.workplace.ledger.checkpoints.fail(record, self._lease, reason, text, fails_run=fails_run)

    def discard(self, number: int, newest: int) -> None:
        """Delete it for ``newest``. Its row says that it is gone before the lake forgets it."""
        for record in self._known:
            if record.number == number and record.kept:
                self.workplace.ledger.checkpoints.discard(record, self._lease)
        self.reach(CheckpointPoint.RELEASED, newest)
        self._stored.discard(number, datetime.now(UTC) - LONGEST)

    def is_covered(self) -> bool:
        """Whether somebody who saw the end of the run took its checkpoint. A periodic one that was begun at that moment
        does not count, whatever it has.
        """
        ended = self.run.ended_at
        of_end = (one for one in self._known if one.kept and one.trigger is CheckpointTrigger.END_OF_RUN)
        return ended is not None and any(one.triggered_at >= ended for one in of_end)

    def reach(self, point: CheckpointPoint, number: int) -> None:
        self.workplace.faults.reach(point, self.run.pipeline, number)

    @property
    def _lease(self) -> Lease:
        return self.heartbeat.lease

    @property
    def _known(self) -> tuple[CheckpointRecord, ...]:
        return self.workplace.ledger.checkpoints.of_run(self.run.run_id)

    @property
    def _stored(self) -> StoredCheckpoints:
        place = CheckpointedRun(self.run.pipeline, self.run.interval, self.run.run_id)
        return StoredCheckpoints(self.workplace.settings.lake_uri, place)

    def _base(self) -> _Base | None:
        """The newest checkpoint that can be read; what is unchanged since is referred to."""
        for one in reversed(self._known):
            if not one.kept:
                continue
            try:
                manifest = self._stored.read_manifest(one.number)
            except CheckpointCorrupt as error:
                self.workplace.progress(str(error))
            else:
                return _Base(manifest, self.workplace.ledger.checkpoints.covered(one) or 0)
        return None

    def _snapshots(self, pipeline: Pipeline, base: _Base | None, upto: int) -> Iterator[StageSnapshot]:
        """What changed since ``base``; all of it of a stage that this does not have, or cut differently."""
        between = partial(self.workplace.ledger.partitions.between, pipeline.name, self.run.interval, upto=upto)
        changed = between(after=base.covers if base else 0)
        for stage, shape in zip(pipeline.stages, stage_shapes(pipeline), strict=True):
            continued = base and base.manifest.continued(shape.id, stage.partitions, stage.max_parallelism)
            found = changed if continued or not base else between(after=0)
            records = tuple(one for one in found.get(stage.id, ()) if one.partition < stage.partitions)
            cell = Cell(pipeline.name, stage.id, self.run.interval)
            yield StageSnapshot(
                shape=shape,
                parallelism=stage.partitions,
                max_parallelism=stage.max_parallelism,
                partitions=records,
                verdicts=self._verdicts(stage, cell, records),
                position=self.workplace.ledger.positions.taken_by(cell) if stage.source else None,
            )

    def _verdicts(self, stage: Stage, cell: Cell, records: tuple[PartitionRecord, ...]) -> tuple[GateResult, ...]:
        """What the gate said was recorded with the partitions, so nothing is new of those that have no new record."""
        if not stage.gate or not records:
            return ()
        few = {one.partition for one in records} if len(records) <= FEW else None
        return self.workplace.ledger.gates.newest(cell, few)


def take_coordinator_lease(run: Run, workplace: Workplace) -> Lease:
    """The right to take checkpoints of the run. Who died with it on this host is robbed of it; who died elsewhere has
    it until it ends.

    :raises LeaseHeld: somebody lives who has it.
    """
    holder = this_process(f"checkpoint {uuid4().hex}")
    seconds = workplace.settings.lease_seconds
    return workplace.ledger.leases.take(coordinator_lease(run), None, str(holder), seconds, holder.may_seize)


def coordinator_lease(run: Run) -> str:
    """Name of the lease without which nobody takes a checkpoint of the run."""
    return f"{run.pipeline}/{run.interval}/{run.run_id}/coordinator"
