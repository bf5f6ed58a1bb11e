"""The checkpoint or savepoint that a run begins with, as planners and attempts see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.checkpoints.restore import RestorePlan, StageRestore, require_restorable, restore_plan
from stagehold.lake.checkpoints.relocation import Relocation
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.lake.location import lake_root
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import GateResult, PartitionRecord, Restore
from stagehold.model.source_position import Position
from stagehold.plan.split.partition_counts import with_counts
from stagehold.sources.sources import is_incremental
from stagehold.spec.pipeline import Pipeline, Stage

ById = Mapping[str, tuple[PartitionRecord, ...]]


@dataclass(frozen=True)
class BeginsWith:
    """What a run takes over, for one of its intervals: in place of what the interval has, until the run has put it
    there or computed it.
    """

    plan: RestorePlan
    restore: Restore
    interval: str
    root: str  # of the lake that it lies in

    @staticmethod
    def of(restore: Restore | None, pipeline: Pipeline, interval: str) -> BeginsWith | None:
        """None for a run that begins with what its interval has.

        :raises CheckpointCorrupt: it cannot be read any more.
        :raises RestoreRefused: it does not fit the pipeline.
        """
        if restore is None or restore.snapshot is None:
            return None
        checkpoint, root = _checkpoint(restore.snapshot)
        counts = {one.shape.id: one.parallelism for one in checkpoint.stages}
        counted = with_counts(pipeline, counts).pipeline
        plan = restore_plan(checkpoint, counted, allow_non_restored=restore.allow_non_restored)
        return BeginsWith(require_restorable(plan), restore, interval, root)

    @property
    def name(self) -> str:
        """For people."""
        return str(self.plan.checkpoint)

    @property
    def is_of_this_interval(self) -> bool:
        taken = self.plan.checkpoint
        return (taken.pipeline, taken.interval) == (self.plan.pipeline, self.interval)

    def in_place_of(
        self, recorded: ById, ledger: Ledger, tied: frozenset[str]
    ) -> tuple[ById, Mapping[str, frozenset[int]]]:
        """The records that count, by stage id, and which of them are still in the snapshot alone. What attempts for
        this restore have put or computed is newer than that; whatever else the interval has does not count. Stages
        that are ``tied`` to the snapshot's own interval take nothing over.
        """
        computed = ledger.restores.computed(self.restore)
        counting: dict[str, tuple[PartitionRecord, ...]] = {}
        waiting: dict[str, frozenset[int]] = {}
        for stage_id in {*recorded, *(one.snapshot.shape.id for one in self.plan.stages)}:
            done = computed.get(stage_id, frozenset())
            own = {one.partition: one for one in recorded.get(stage_id, ()) if one.partition in done}
            taken = {
                one.partition: one
                for one in self._records(stage_id)
                if one.partition not in done and stage_id not in tied
            }
            merged = {**taken, **own}
            counting[stage_id] = tuple(merged[partition] for partition in sorted(merged))
            waiting[stage_id] = frozenset(taken)
        return {stage: records for stage, records in counting.items() if records}, waiting

    def verdicts(self, stage: Stage) -> tuple[GateResult, ...]:
        """What the gate had said of its partitions."""
        found = self._restored(stage.id)
        return found.snapshot.verdicts if found else ()

    def kept(self, stage: Stage) -> tuple[PartitionRecord, ...]:
        """The records of its partitions, with what they keep for later intervals."""
        found = self._restored(stage.id)
        return found.snapshot.partitions if found else ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Into how many partitions each stage was cut, by its id."""
        return {one.snapshot.shape.id: one.snapshot.parallelism for one in self.plan.stages}

    def bytes(self, stage: Stage) -> int:
        found = self._restored(stage.id)
        return sum(record.bytes for record in found.snapshot.partitions) if found else 0

    def positions(self, pipeline: Pipeline, lake_uri: str) -> Mapping[str, Position]:
        """What incremental sources had taken, by the names of their stages; what lay in the lake lies in this one."""
        found = {stage.name: self._restored(stage.id) for stage in pipeline.stages if is_incremental(stage)}
        moved = Relocation(self.root, lake_root(lake_uri))
        return {
            name: moved.position(one.snapshot.position) for name, one in found.items() if one and one.snapshot.position
        }

    def adapted(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the max_parallelism that its stages take over."""
        taken = {one.stage: one.max_parallelism for one in self.plan.stages}
        stages = (
            stage.model_copy(update={"max_parallelism": taken.get(stage.name, stage.max_parallelism)})
            for stage in pipeline.stages
        )
        return pipeline.model_copy(update={"stages": tuple(stages)})

    def _records(self, stage_id: str) -> tuple[PartitionRecord, ...]:
        """None of a stage that is cut differently now: its partitions are others."""
        found = self._restored(stage_id)
        if found is None or found.rescaled:
            return ()
        own = found.snapshot.partitions
        cell = (
            replace(own[0].cell, stage=stage_id, interval=self.interval, pipeline=self.plan.pipeline) if own else None
        )
        return tuple(replace(record, cell=cell) for record in own if cell)

    def _restored(self, stage_id: str) -> StageRestore | None:
        return next((one for one in self.plan.stages if one.snapshot.shape.id == stage_id), None)


@lru_cache(maxsize=4)
def _checkpoint(address: str) -> tuple[Checkpoint, str]:
    """With the root of its lake. A manifest never changes."""
    stored, number = StoredCheckpoints.holding(address)
    return stored.read_checkpoint(number), stored.lake
