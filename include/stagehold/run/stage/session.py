"""The session in which an attempt computes the waves of its stages, with a Spark Connect server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stagehold.gates.judge import Measured, judge_together, measure_and_judge
from stagehold.gates.setting_aside import SplitRows, Unmet, split_rows
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committer import Committer, committer_for
from stagehold.lake.commit.staging import StagedWave, WaveFiles, stage_frame
from stagehold.lake.location import TableLocation
from stagehold.lake.measure import RecordedContent, StagedContent, fingerprints, measure, state_fingerprints
from stagehold.model.records import PartitionRecord
from stagehold.run.stage.frames import FrameBuilder
from stagehold.run.stage.inputs import Reading
from stagehold.run.stage.intermediates import Intermediates
from stagehold.settings import Settings
from stagehold.spark.session.sessions import measuring_session
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SparkStageSession:
    """What `run.engine.Session` asks for."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark, self._settings, self._intermediates = spark, settings, Intermediates()

    def frames(self, reading: Reading) -> FrameBuilder:
        return FrameBuilder(self._spark, reading, self._intermediates)

    def committer(self, stage: Stage, location: TableLocation) -> Committer:
        only_writer = self._settings.only_spark_writer
        return committer_for(stage.output.committer, self._spark, location, only_writer=only_writer)

    def write(self, frame: DataFrame, files: WaveFiles) -> StagedWave:
        return stage_frame(frame, files)

    def measure(
        self, staged: StagedWave, schema: StructType, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        spark = measuring_session(self._spark)
        if suite is None:
            return Measured(measure(spark, staged, schema, partitions))
        each = dict.fromkeys(partitions, seconds / len(partitions))
        return measure_and_judge(spark, StagedContent(staged, schema), partitions, suite, each)

    def split(self, staged: StagedWave, schema: StructType, unmet: Sequence[Unmet], suite: Suite) -> SplitRows:
        partitions = sorted({number for one in unmet for number in one.partitions})
        frame = StagedContent(staged, schema).told_apart(measuring_session(self._spark), partitions)
        return split_rows(frame, unmet, suite)

    def judge(self, records: Sequence[PartitionRecord], suite: Suite) -> Measured:
        seconds = {record.partition: record.seconds or 0.0 for record in records}
        content = RecordedContent(records)
        return measure_and_judge(measuring_session(self._spark), content, tuple(seconds), suite, seconds)

    def judge_together(self, records: Sequence[PartitionRecord], suite: Suite) -> Sequence[GateVerdict]:
        return judge_together(measuring_session(self._spark), RecordedContent(records), suite)

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        spark = measuring_session(self._spark)
        found = fingerprints(spark, records)
        for name in sorted({part.name for record in records for part in record.kept}):
            found |= _other_state(name, records, state_fingerprints(spark, records, name))
        return found


def _other_state(name: str, records: Sequence[PartitionRecord], now: Mapping[int, str]) -> dict[int, str]:
    """What stands for the fingerprints of partitions whose state is not what was recorded."""
    kept = {record.partition: part.fingerprint for record in records for part in record.kept if part.name == name}
    return {partition: f"state {name}-changed-{found}" for partition, found in now.items() if found != kept[partition]}
