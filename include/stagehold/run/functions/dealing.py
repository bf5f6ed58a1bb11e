"""Rows and state of a stage that a run takes over cut into other partitions: dealt anew by their keys, with no call of
the stage's function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagehold.lake.read import read_partitions, recorded_schema
from stagehold.lake.store.columns import PARTITION, is_reserved
from stagehold.model.records import PartitionRecord
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.plan.resume.decisions import Rescaled
from stagehold.plan.state.earlier import Earlier
from stagehold.plan.state.rescale import old_partitions_read
from stagehold.run.functions.key_columns import partition_of_key
from stagehold.run.functions.state_frames import StateFrames
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Dealing:
    """Of one stage."""

    spark: SparkSession
    stage: Stage
    rescaled: Rescaled

    def rows(self, partitions: tuple[int, ...]) -> DataFrame:
        """Those of ``partitions``, with `_partition`."""
        from pyspark.sql import functions as F

        stage, records = self.stage, self._records(partitions)
        schema = recorded_schema(records)
        own = [name for name in schema.fieldNames() if not is_reserved(name)]
        belongs = partition_of_key(
            stage.key, schema, partitions=stage.partitions, max_parallelism=stage.max_parallelism
        )
        frame = read_partitions(self.spark, records).select(*own).withColumn(PARTITION, belongs)
        return frame.where(F.col(PARTITION).isin(*partitions))

    def kept(self, partition: int) -> Mapping[str, DataFrame]:
        """What the partition keeps. A list that all partitions are given is dealt like any other here: giving it to all
        and keeping that would multiply it.
        """
        records = tuple(self.rescaled.records[old] for old in range(self.rescaled.partitions))
        states = StateFrames(self.spark, self.stage, Earlier(self.rescaled.interval, records))
        return states.given([_dealt(shape) for shape in self.stage.states], partition)

    def _records(self, partitions: tuple[int, ...]) -> list[PartitionRecord]:
        read = {
            old
            for one in partitions
            for old in old_partitions_read(
                one,
                partitions=self.stage.partitions,
                old_partitions=self.rescaled.partitions,
                max_parallelism=self.stage.max_parallelism,
            )
        }
        return [self.rescaled.records[old] for old in sorted(read)]


def _dealt(shape: StateShape) -> StateShape:
    return replace(shape, kind=StateKind.SPLIT) if shape.kind is StateKind.UNION else shape
