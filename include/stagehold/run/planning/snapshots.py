"""The checkpoint or savepoint that a run begins with, for planners and attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.checkpoints.restore import RestorePlan, StageRestore, require_restorable, restore_plan, under_present_ids
from stagehold.code.stage_code import looks_at_interval
from stagehold.errors import CheckpointCorrupt
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.relocation import Relocation
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.location import lake_root
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.keys.interval_text import names_interval
from stagehold.model.records import Cell, GateResult, PartitionCount, PartitionRecord, Restore
from stagehold.plan.resume.situation import Rescaled
from stagehold.plan.split.partition_counts import with_counts
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import RestoredPosition, is_incremental
from stagehold.sources.taken_positions import PublishedPosition, told_positions
from stagehold.spec.pipeline import Pipeline, Stage

ById = Mapping[str, tuple[PartitionRecord, ...]]


@dataclass(frozen=True)
class BeginsWith:
    """What a run takes over, for one of its intervals: it counts in place of the interval's own data, until the run has
    put it there or computed it.
    """

    plan: RestorePlan
    restore: Restore
    interval: str
    root: str  # of the lake that it lies in
    origin: str  # where that was when it was made

    @staticmethod
    def of(restore: Restore | None, pipeline: Pipeline, interval: str) -> BeginsWith | None:
        """The snapshot that a run begins with. None for a run that begins with the interval's own data. That includes a
        run that took over everything and then lost the snapshot: its owner may delete it.

        :raises CheckpointCorrupt: it cannot be read, and is needed.
        :raises RestoreRefused: it does not fit the pipeline.
        """
        if restore is None or not restore.snapshot:
            return None
        try:
            checkpoint, root, origin = _checkpoint(restore.snapshot)
        except CheckpointCorrupt:
            if restore.fulfilled_at is None:
                raise
            return None
        snapshots = under_present_ids(checkpoint.stages, pipeline)
        counts = {snapshot.shape.id: snapshot.parallelism for snapshot in snapshots}
        counted = with_counts(pipeline, counts).pipeline
        plan = restore_plan(checkpoint, counted, allow_non_restored=restore.allow_non_restored)
        return BeginsWith(require_restorable(plan), restore, interval, root, origin)

    @property
    def name(self) -> str:
        """The snapshot's name for people."""
        return str(self.plan.checkpoint)

    @property
    def is_of_this_interval(self) -> bool:
        taken = self.plan.checkpoint
        return (taken.pipeline, taken.interval) == (self.plan.pipeline, self.interval)

    def put_back(self, pipeline: Pipeline) -> frozenset[str]:
        """Stages whose data others than the pipeline's own stages see: in published tables, or in a later interval,
        which goes on with their state.
        """
        known = (pipeline.stage(stage_restore.stage) for stage_restore in self.plan.stages)
        return frozenset(stage.name for stage in known if stage.output.table is not None or stage.states)

    def in_place_of(
        self, recorded: ById, ledger: Ledger, tied: frozenset[str]
    ) -> tuple[ById, Mapping[str, frozenset[int]]]:
        """The records that count, by stage id, and which of them are still only in the snapshot. Partitions that
        attempts for this restore have put in place or computed are newer than the snapshot; all other data of the
        interval does not count. Stages that are ``tied`` to the snapshot's own interval take nothing over.
        """
        computed = ledger.restores.computed(self.restore)
        counting: dict[str, tuple[PartitionRecord, ...]] = {}
        waiting: dict[str, frozenset[int]] = {}
        for stage_id in {*recorded, *(stage_restore.snapshot.shape.id for stage_restore in self.plan.stages)}:
            done = computed.get(stage_id, frozenset())
            own = {record.partition: record for record in recorded.get(stage_id, ()) if record.partition in done}
            taken = {
                record.partition: record
                for record in self._records(stage_id)
                if record.partition not in done and stage_id not in tied
            }
            merged = {**taken, **own}
            counting[stage_id] = tuple(merged[partition] for partition in sorted(merged))
            waiting[stage_id] = frozenset(taken)
        return {stage: records for stage, records in counting.items() if records}, waiting

    def verdicts(self, stage: Stage) -> tuple[GateResult, ...]:
        """The gate's verdicts on its partitions."""
        found = self._restored(stage.id)
        return found.snapshot.verdicts if found else ()

    def made_by(self, stage: Stage) -> frozenset[str]:
        """The code that made the stage's data in the snapshot, as far as the run could take it over."""
        keys = (
            ComputeKey.parse(record.compute_key) for record in self._records(stage.id) if record.state.counts_as_done
        )
        return frozenset(key.code for key in keys if key)

    def kept(self, stage: Stage) -> tuple[PartitionRecord, ...]:
        """The records of its partitions, with the state that they keep for later intervals."""
        found = self._restored(stage.id)
        return found.snapshot.partitions if found else ()

    def rescaled(self, pipeline: Pipeline, tied: frozenset[str] = frozenset()) -> Mapping[str, Rescaled]:
        """Stages that are cut into another number of partitions now, by name, as far as their data can be read: rows
        that were dealt by keys can be dealt anew.
        """
        found = {
            stage.name: self._rescaled(stage)
            for stage in pipeline.stages
            if stage.id not in tied and stage.output.stored and stage.key
        }
        return {name: rescaled for name, rescaled in found.items() if rescaled}

    def _rescaled(self, stage: Stage) -> Rescaled | None:
        found = self._restored(stage.id)
        if found is None or not found.rescaled or found.snapshot.max_parallelism != stage.max_parallelism:
            return None
        there = [record for record in found.snapshot.partitions if record.state.readable]
        lost = missing_files(there)
        records = {record.partition: record for record in there if record.partition not in lost}
        return Rescaled(records, found.snapshot.parallelism, self.plan.checkpoint.interval)

    @property
    def counts(self) -> Mapping[str, int]:
        """Into how many partitions each stage was cut, by its id."""
        return {
            stage_restore.snapshot.shape.id: stage_restore.snapshot.parallelism for stage_restore in self.plan.stages
        }

    def bytes(self, stage: Stage) -> int:
        found = self._restored(stage.id)
        return sum(record.bytes for record in found.snapshot.partitions) if found else 0

    def keep_counts(self, stages: Sequence[Stage], ledger: Ledger) -> None:
        """Record its numbers of partitions for the interval; numbers that the interval has already stay."""
        for stage in stages:
            if stage.auto_partitions and stage.id in self.counts:
                cell = Cell(self.plan.pipeline, stage.id, self.interval)
                count = PartitionCount(cell, self.counts[stage.id], self.bytes(stage), datetime.now(UTC))
                ledger.partition_counts.decide(count)

    def tied_to_another(self, pipeline: Pipeline, settings: Settings) -> frozenset[str]:
        """Ids of stages for which data of another interval does not count: they keep state, or their code, or that of
        stages computed along with them, depends on the interval.
        """
        if self.is_of_this_interval:
            return frozenset()
        looking: dict[str, bool] = {}
        for stage in pipeline.stages:
            along = (edge.stage for edge in stage.inputs if not pipeline.stage(edge.stage).output.stored)
            own = any(map(names_interval, stage.args)) or looks_at_interval(stage.entries, Path(settings.project))
            looking[stage.name] = own or any(looking[name] for name in along)  # a stage that keeps state is stored
        return frozenset(stage.id for stage in pipeline.stages if looking[stage.name] or stage.states)

    def positions(self, pipeline: Pipeline, settings: Settings) -> Mapping[str, RestoredPosition]:
        """The positions of incremental sources, by the names of their stages; files that were in the snapshot's lake
        are in this one.
        """
        moved = Relocation(self.root, lake_root(settings.production.lake_uri))
        found = ((stage, self._restored(stage.id)) for stage in pipeline.stages if is_incremental(stage))
        return {
            stage.name: (moved.position(stage_restore.snapshot.position), self._taken_by_others(stage, settings))
            for stage, stage_restore in found
            if stage_restore and stage_restore.snapshot.position
        }

    def _taken_by_others(self, stage: Stage, settings: Settings) -> Mapping[str, PublishedPosition]:
        """The positions of other intervals when it was made, if only the chronicle of another lake has them."""
        production = lake_root(settings.production.lake_uri)
        if self.root in (lake_root(settings.lake_uri), production):
            return {}
        taken = self.plan.checkpoint
        told = told_positions(self.root, taken.pipeline, stage.id, until=taken.taken_at)
        moved = Relocation(self.origin, production)
        return {
            interval: (run_id, moved.position(position))
            for interval, (run_id, position) in told.items()
            if interval != taken.interval
        }

    def adapted(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the max_parallelism that its stages take over."""
        taken = {stage_restore.stage: stage_restore.max_parallelism for stage_restore in self.plan.stages}
        stages = (
            stage.model_copy(update={"max_parallelism": taken.get(stage.name, stage.max_parallelism)})
            for stage in pipeline.stages
        )
        return pipeline.model_copy(update={"stages": tuple(stages)})

    def _records(self, stage_id: str) -> tuple[PartitionRecord, ...]:
        """The snapshot's records of a stage; none if it is cut differently now, since its partitions are others."""
        found = self._restored(stage_id)
        if found is None or found.rescaled:
            return ()
        own = found.snapshot.partitions
        cell = (
            replace(own[0].cell, stage=stage_id, interval=self.interval, pipeline=self.plan.pipeline) if own else None
        )
        return tuple(replace(record, cell=cell) for record in own if cell)

    def _restored(self, stage_id: str) -> StageRestore | None:
        return next(
            (stage_restore for stage_restore in self.plan.stages if stage_restore.snapshot.shape.id == stage_id), None
        )


@lru_cache(maxsize=4)
def _checkpoint(address: str) -> tuple[Checkpoint, str, str]:
    """A checkpoint with the present and the original root of its lake. A manifest never changes."""
    stored, number = StoredCheckpoints.holding(address)
    return stored.read_checkpoint(number), stored.lake, stored.read_manifest(number).lake
