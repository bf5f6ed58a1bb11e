"""What a stage keeps from interval to interval, as frames: given to its function for a partition, and taken from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.read import read_partitions, recorded_schema, united
from stagehold.lake.store.columns import PARTITION, STATE_GROUP, STATE_POSITION, is_reserved, quoted
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import spark_uri
from stagehold.model.keys.key_groups import range_of
from stagehold.model.records import PartitionRecord
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.plan.resume.situation import Rescaled
from stagehold.plan.state.earlier_state import Cut, Earlier, Given, Piece, old_partitions_read
from stagehold.run.functions.isolation import require_own_keys
from stagehold.run.functions.key_columns import in_groups, key_group, partition_of_key
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# What Spark's JSON calls types that it spells otherwise in SQL.
JSON_TYPES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


class StateFrames:
    """The state of one stage; ``earlier`` is what it goes on with."""

    def __init__(self, spark: SparkSession, stage: Stage, earlier: Earlier) -> None:
        self.spark, self.stage, self.earlier = spark, stage, earlier

    def before(self, partition: int) -> dict[str, DataFrame]:
        """What the partition begins with, by name."""
        return self.given(self.stage.states, partition)

    def given(self, shapes: Sequence[StateShape], partition: int) -> dict[str, DataFrame]:
        """The partition's own of states that are dealt like these."""
        cut = Cut(self.stage.partitions, self.stage.max_parallelism)
        return {
            shape.name: self._given(shape, self.earlier.given(shape, partition, cut), partition) for shape in shapes
        }

    def check(self, shape: StateShape, frame: DataFrame) -> None:
        """:raises StageContractBroken: what the function put is no frame, or has other columns than are declared."""
        if not hasattr(frame, "toArrow"):
            raise StageContractBroken(self.stage.name, f"its state {shape.name} is {type(frame).__name__}, not a frame")
        declared = {column.name: column.type for column in shape.columns}
        found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if found != declared:
            told, wanted = (
                ", ".join(f"{name} {kind}" for name, kind in columns.items()) for columns in (found, declared)
            )
            raise StageContractBroken(
                self.stage.name, f"its state {shape.name} has the columns {told}; declared are {wanted}: select or cast"
            )

    def after(self, shape: StateShape, frames: Sequence[tuple[int, DataFrame]]) -> DataFrame:
        """What partitions keep, as it is written: with each row's partition and its group or place."""
        return united([self._kept(shape, partition, frame) for partition, frame in frames])

    def _kept(self, shape: StateShape, partition: int, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        frame, stage = frame.select(*(quoted(column.name) for column in shape.columns)), self.stage
        if shape.kind.is_list:
            return _in_order(frame).withColumn(PARTITION, F.lit(partition))
        schema = state_schema(shape)
        belongs = partition_of_key(
            shape.key, schema, partitions=stage.partitions, max_parallelism=stage.max_parallelism
        )
        own = frame.where(require_own_keys(stage, partition, belongs, shape.key))
        group = key_group(shape.key, schema, stage.max_parallelism)
        return own.withColumn(STATE_GROUP, group).withColumn(PARTITION, F.lit(partition))

    def _given(self, shape: StateShape, given: Given, partition: int) -> DataFrame:
        schema = state_schema(shape)
        filled = [piece for piece in given.pieces if piece.part.files]
        if not filled:
            return self.spark.createDataFrame([], schema)
        for piece in filled:
            _refuse_other_columns(self.stage, shape, schema, piece)
        if given.elements is not None:
            return self._elements(given, schema).select(*map(quoted, schema.fieldNames()))
        frame = self._read(filled, schema)
        if not given.regrouped:
            return frame
        group = key_group(shape.key, schema, self.stage.max_parallelism)
        own = range_of(partition, self.stage.partitions, self.stage.max_parallelism)
        return frame.where(in_groups(group, [own]))

    def _elements(self, given: Given, schema: StructType) -> DataFrame:
        """The slice of a list whose elements count on from piece to piece."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import LongType, StructType

        assert given.elements is not None
        placed, start, frames = StructType([*schema.fields]).add(STATE_POSITION, LongType()), 0, []
        for piece in given.pieces:
            own = range(max(given.elements.start - start, 0), max(given.elements.stop - start, 0))
            start += piece.part.rows
            if piece.part.files and own:
                frames.append(self._read([piece], placed).where(F.col(STATE_POSITION).between(own.start, own.stop - 1)))
        if not frames:
            return self.spark.createDataFrame([], placed)
        return united(frames)

    def _read(self, pieces: Sequence[Piece], schema: StructType) -> DataFrame:
        paths = [f"{spark_uri(piece.table)}/{file.path}" for piece in pieces for file in piece.part.files]
        return self.spark.read.schema(schema).parquet(*paths)


def state_schema(shape: StateShape) -> StructType:
    """The declared columns."""
    from pyspark.sql.types import StructType

    fields = (
        {"name": column.name, "type": JSON_TYPES.get(column.type, column.type), "nullable": True, "metadata": {}}
        for column in shape.columns
    )
    return StructType.fromJson({"fields": list(fields)})


def _in_order(frame: DataFrame) -> DataFrame:
    """A list's frame with each element's place. Rows have no order, so it is that of all their values: whoever computes
    the list again deals out the same elements.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = [F.col(quoted(name)).asc_nulls_first() for name in frame.columns]
    place = F.row_number().over(Window.partitionBy(F.lit(0)).orderBy(*order)) - 1
    return frame.withColumn(STATE_POSITION, place.cast("bigint"))


def _refuse_other_columns(stage: Stage, shape: StateShape, schema: StructType, piece: Piece) -> None:
    """A column that is new is NULL in what was left before, and one that is gone is not read; but none can have another
    type, since Parquet would be misread.

    :raises StageContractBroken: names the columns.
    """
    from pyspark.sql.types import StructType

    footer = read_footer(piece.table, piece.part.files[0].path).spark_schema
    written = {field.name: field.dataType.simpleString() for field in StructType.fromJson(json.loads(footer)).fields}
    declared = {field.name: field.dataType.simpleString() for field in schema.fields}
    other = [
        f"{name} {kind}, and {written[name]} in what was kept"
        for name, kind in declared.items()
        if written.get(name, kind) != kind
    ]
    lost = [name for name in shape.key if name not in written]
    if other or lost:
        told = "; ".join((*other, *(f"the key {name}, which what was kept lacks" for name in lost)))
        raise StageContractBroken(
            stage.name, f"its state {shape.name} is declared with {told}. Give the state another name, to begin it anew"
        )


class Dealing:
    """Rows and state of one stage that a run takes over cut into other partitions: they are dealt anew by their keys,
    with no call of the stage's function.
    """

    def __init__(self, spark: SparkSession, stage: Stage, rescaled: Rescaled) -> None:
        self.spark, self.stage, self.rescaled = spark, stage, rescaled

    def rows(self, partitions: tuple[int, ...]) -> DataFrame:
        """Rows of ``partitions``, with `_partition`."""
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
            for partition in partitions
            for old in old_partitions_read(
                partition,
                partitions=self.stage.partitions,
                old_partitions=self.rescaled.partitions,
                max_parallelism=self.stage.max_parallelism,
            )
        }
        return [self.rescaled.records[old] for old in sorted(read)]


def _dealt(shape: StateShape) -> StateShape:
    return replace(shape, kind=StateKind.SPLIT) if shape.kind is StateKind.UNION else shape
