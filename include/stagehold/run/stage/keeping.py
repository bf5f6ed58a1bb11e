"""Stages what a stage keeps from interval to interval beside the rows of its wave, so that one commit tells of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stagehold.lake.commit.staging import STATE_FOLDER, WaveFiles
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.store.columns import STATE_GROUP, STATE_POSITION
from stagehold.model.records import DataFile, StatePart
from stagehold.model.stage_state import StateShape
from stagehold.plan.state.earlier import Cut, Earlier
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.engine import Frames, Session
from stagehold.run.functions.state_frames import state_schema


@dataclass(frozen=True)
class Keeping:
    """Of one stage in one attempt; ``earlier`` is what it goes on with."""

    task: StageTask
    earlier: Earlier
    frames: Frames
    session: Session

    def keep(self, files: WaveFiles) -> Mapping[int, tuple[StatePart, ...]]:
        """Write what the partitions of a wave keep, whose rows were written just now."""
        kept: dict[int, list[StatePart]] = defaultdict(list)
        for shape in self.task.stage.states:
            for partition, part in self._parts(shape, files).items():
                kept[partition].append(part)
        return {partition: tuple(parts) for partition, parts in kept.items()}

    def _parts(self, shape: StateShape, rows: WaveFiles) -> Mapping[int, StatePart]:
        order = STATE_POSITION if shape.kind.is_list else STATE_GROUP
        files = replace(rows, below=f"{STATE_FOLDER}/{shape.name}", sort_by=(order,), arranged=False)
        staged = self.session.write(self.frames.kept(self.task.stage, shape, rows.partitions), files)
        measured = self.session.measure(staged, state_schema(shape), rows.partitions, None, 0).metrics
        return {one.partition: self._part(shape, one, staged.files.get(one.partition, ())) for one in measured}

    def _part(self, shape: StateShape, measured: PartitionMetrics, files: tuple[DataFile, ...]) -> StatePart:
        stage, earlier = self.task.stage, self.earlier
        cut = Cut(stage.partitions, stage.max_parallelism)
        return StatePart(
            name=shape.name,
            files=files,
            rows=measured.rows,
            fingerprint=measured.fingerprint,
            partitions=cut.partitions,
            max_parallelism=cut.max_parallelism,
            began=earlier.given(shape, measured.partition, cut).identity,
            after=earlier.interval if earlier.records else None,
        )
