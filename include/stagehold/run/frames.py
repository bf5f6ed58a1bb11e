"""Turns partitions to compute into one Spark frame: reads inputs, calls stage functions, marks each row's partition.

A function is given just the rows of the partitions it computes: one partition's for source splits and `forward`
inputs, the wave's key groups for `keyed` ones, everything for `broadcast` and `gather`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.columns import PARTITION, is_reserved
from stagehold.lake.read import read_partitions
from stagehold.model.context import StageContext
from stagehold.model.key_groups import group_column, range_of
from stagehold.model.spec import Exchange, Input, Pipeline, Stage
from stagehold.plan.resume import Decision
from stagehold.run.key_columns import key_group, partition_of_key
from stagehold.run.sources import Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class FrameBuilder:
    """Builds frames for one region attempt. ``decisions`` hold the records to read, by stage."""

    spark: SparkSession
    pipeline: Pipeline
    decisions: Mapping[str, Sequence[Decision]]
    splits: Mapping[str, Sequence[Split]]
    context: Callable[[Stage, tuple[int, ...]], StageContext]
    project: str

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        """The stage's output for ``partitions``, with ``_partition`` and the group columns its keyed readers prune by.

        :raises StageContractBroken: when the function's frame cannot be cut into partitions.
        """
        return self._with_group_columns(stage, self._computed(stage, partitions))

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        """Names of the columns by which keyed readers of a stored, unpublished output find their groups."""
        if stage.output.table is not None:
            return ()
        return tuple(dict.fromkeys(group_column(edge.key, reader.max_parallelism) for reader, edge in self._keyed_readers(stage)))

    def _keyed_readers(self, stage: Stage) -> list[tuple[Stage, Input]]:
        edges = ((reader, reader.input(stage.name)) for reader in self.pipeline.readers(stage.name))
        return [(reader, edge) for reader, edge in edges if edge.exchange is Exchange.KEYED]

    def _with_group_columns(self, stage: Stage, frame: DataFrame) -> DataFrame:
        if stage.output.table is not None:
            return frame
        columns = {
            group_column(edge.key, reader.max_parallelism): key_group(self._keys(stage, frame, edge.key), reader.max_parallelism)
            for reader, edge in self._keyed_readers(stage)
        }
        return frame.withColumns(columns) if columns else frame

    def _computed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        if any(edge.exchange is Exchange.KEYED for edge in stage.inputs):
            return self._keyed(stage, partitions)
        if stage.per_wave:
            return self._per_wave(stage, partitions)
        from pyspark.sql import functions as F

        def one(partition: int) -> DataFrame:
            frame = self._call(stage, (partition,), self._arguments(stage, (partition,)))
            return frame.withColumn(PARTITION, F.lit(partition))

        return _union([one(partition) for partition in partitions])

    def _keyed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        frame = self._call(stage, partitions, self._arguments(stage, partitions))
        keys = self._keys(stage, frame, stage.key)
        return frame.withColumn(PARTITION, partition_of_key(keys, stage.partitions, stage.max_parallelism))

    def _per_wave(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        frame = self._call(stage, partitions, self._arguments(stage, partitions, keep_partition=True), reserved=(PARTITION,))
        if PARTITION not in frame.columns:
            raise StageContractBroken(stage.name, f"its function dropped the column {PARTITION}, which a per_wave function must keep")
        return frame

    def _keys(self, stage: Stage, frame: DataFrame, key: Sequence[str]) -> list[str]:
        absent = [column for column in key if column not in frame.columns]
        if absent:
            offered = ", ".join(frame.columns)
            raise StageContractBroken(stage.name, f"its output has no key column {', '.join(absent)}; it has {offered}")
        return list(key)

    def _call(
        self, stage: Stage, partitions: tuple[int, ...], frames: Mapping[str, DataFrame], reserved: tuple[str, ...] = ()
    ) -> DataFrame:
        frame = self._function(stage)(self.context(stage, partitions), **frames)
        if not hasattr(frame, "toArrow"):
            raise StageContractBroken(stage.name, f"its function returned {type(frame).__name__}, not a DataFrame")
        taken = [column for column in frame.columns if column not in reserved and is_reserved(column)]
        if taken:
            raise StageContractBroken(stage.name, f"its output has the reserved column {', '.join(taken)}; rename it")
        return frame

    def _function(self, stage: Stage) -> Callable[..., DataFrame]:
        if self.project not in sys.path:
            sys.path.insert(0, self.project)
        module, function = stage.job.split(":")
        return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]

    def _arguments(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool = False) -> dict[str, DataFrame]:
        if stage.source is not None:
            return {"source": self._source(stage, partitions, keep_partition=keep_partition)}
        return {edge.stage: self._input(stage, edge, partitions, keep_partition=keep_partition) for edge in stage.inputs}

    def _source(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool) -> DataFrame:
        from pyspark.sql import functions as F

        schema = self._source_schemas[stage.name]

        def one(partition: int) -> DataFrame:
            paths = [file.path for file in self.splits[stage.name][partition].files]
            frame = self.spark.read.schema(schema).parquet(*paths) if paths else self.spark.createDataFrame([], schema)
            return frame.withColumn(PARTITION, F.lit(partition)) if keep_partition else frame

        return _union([one(partition) for partition in partitions])

    @cached_property
    def _source_schemas(self) -> Mapping[str, StructType]:
        """Schema of each source, from its first file: inferring it per split would cost a Spark job each."""
        first = {name: next(file.path for split in splits for file in split.files) for name, splits in self.splits.items() if splits}
        return {name: self.spark.read.parquet(path).schema for name, path in first.items()}

    def _input(self, stage: Stage, edge: Input, partitions: tuple[int, ...], *, keep_partition: bool) -> DataFrame:
        producer = self.pipeline.stage(edge.stage)
        wanted = partitions if edge.exchange is Exchange.FORWARD else tuple(range(producer.partitions))
        frame = self._stored(producer, wanted) if producer.output.type.stored else self._computed(producer, wanted)
        if edge.exchange is Exchange.KEYED:
            frame = self._only_groups(frame, stage, edge, partitions)
        hidden = [column for column in frame.columns if is_reserved(column) and not (keep_partition and column == PARTITION)]
        return frame.drop(*hidden)

    def _stored(self, producer: Stage, partitions: Sequence[int]) -> DataFrame:
        records = [self.decisions[producer.name][partition].record for partition in partitions]
        return read_partitions(self.spark, [record for record in records if record is not None])

    def _only_groups(self, frame: DataFrame, stage: Stage, edge: Input, partitions: tuple[int, ...]) -> DataFrame:
        """Keep the key groups of the wave. The stored group column lets Parquet skip all else without reading it."""
        from pyspark.sql import functions as F

        stored = group_column(edge.key, stage.max_parallelism)
        group = F.col(stored) if stored in frame.columns else key_group(self._keys(stage, frame, edge.key), stage.max_parallelism)
        ranges = [range_of(partition, stage.partitions, stage.max_parallelism) for partition in partitions]
        return frame.where(reduce(lambda left, right: left | right, (group.between(*bounds) for bounds in _merged(ranges))))


def _merged(ranges: Sequence[range]) -> list[tuple[int, int]]:
    """Neighbouring ranges as one, so that a wave is usually a single comparison."""
    merged: list[tuple[int, int]] = []
    for groups in sorted(ranges, key=lambda groups: groups.start):
        if merged and merged[-1][1] + 1 >= groups.start:
            merged[-1] = (merged[-1][0], groups.stop - 1)
        else:
            merged.append((groups.start, groups.stop - 1))
    return merged


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)
