"""What a stage keeps from interval to interval, as frames: given to its function for a partition, and taken from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagehold.errors import StageContractBroken
from stagehold.lake.read import read_partitions, recorded_schema, united
from stagehold.lake.store.columns import IN_JSON, PARTITION, STATE_GROUP, STATE_POSITION, is_reserved, quoted
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import spark_uri
from stagehold.model.keys.key_groups import range_of
from stagehold.model.records import PartitionRecord
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.plan.resume.situation import Rescaled
from stagehold.plan.state.earlier_state import Cut, Earlier, Given, Piece, old_partitions_read, slice_of
from stagehold.run.functions.isolation import require_own_keys
from stagehold.run.functions.key_columns import in_groups, key_group, partition_of_key
from stagehold.spark.connect import kept_by_spark
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class StateFrames:
    """The state of one stage; ``earlier`` is what it goes on with. ``restore`` makes frames of what was kept in other
    shapes; it gives None where the author wrote nothing that could.
    """

    def __init__(
        self,
        spark: SparkSession,
        stage: Stage,
        earlier: Earlier,
        restore: Callable[[Mapping[str, DataFrame]], Any] = lambda _: None,
    ) -> None:
        self.spark, self.stage, self.earlier, self._restore = spark, stage, earlier, restore

    def before(self, partition: int) -> dict[str, DataFrame]:
        """What the partition begins with, by name.

        :raises StageContractBroken: it was kept in another shape, and nothing makes it into the one that is declared.
        """
        for shape in self.stage.states:
            if shape.name not in self._restored:
                self._refuse_other(shape)
        as_kept = self.given([shape for shape in self.stage.states if shape.name not in self._restored], partition)
        anew = {
            shape.name: self._dealt(shape, partition) for shape in self.stage.states if shape.name in self._restored
        }
        return {**as_kept, **anew}

    def given(self, shapes: Sequence[StateShape], partition: int) -> dict[str, DataFrame]:
        """The partition's own of states that are dealt like these."""
        cut = Cut(self.stage.partitions, self.stage.max_parallelism)
        return {
            shape.name: self._given(shape, self.earlier.given(shape, partition, cut), partition) for shape in shapes
        }

    def check(self, shape: StateShape, frame: DataFrame, what: str = "its state ") -> None:
        """:raises StageContractBroken: what the function put is no frame, or has other columns than are declared."""
        if not hasattr(frame, "toArrow"):
            raise StageContractBroken(self.stage.name, f"{what}{shape.name} is {type(frame).__name__}, not a frame")
        declared = {column.name: column.type for column in shape.columns}
        found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if found != declared:
            told, wanted = (
                ", ".join(f"{name} {kind}" for name, kind in columns.items()) for columns in (found, declared)
            )
            raise StageContractBroken(
                self.stage.name, f"{what}{shape.name} has the columns {told}; declared are {wanted}: select or cast"
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
        if given.elements is not None:
            return self._elements(given, schema).select(*map(quoted, schema.fieldNames()))
        frame = self._read(filled, schema)
        return self._own_groups(shape, frame, partition) if given.regrouped else frame

    @cached_property
    def _then(self) -> Mapping[str, StateShape]:
        """The shapes of what was kept, as far as they are known."""
        shapes = {name: self._shape_then(name, pieces) for name, pieces in self.earlier.pieces.items()}
        return {name: shape for name, shape in shapes.items() if shape}

    def _shape_then(self, name: str, pieces: Sequence[Piece]) -> StateShape | None:
        if pieces[0].part.shape:
            return StateShape.of(json.loads(pieces[0].part.shape))
        declared = next((shape for shape in self.stage.states if shape.name == name), None)
        filled = next((piece for piece in pieces if piece.part.files), None)
        return _shape_of_files(name, filled, declared) if filled else declared

    @cached_property
    def _restored(self) -> Mapping[str, DataFrame]:
        """What the author's restore function made of what was kept in other shapes, by name, for all partitions
        together. It is called once in a session.

        :raises StageContractBroken: it gives something else than frames in the shapes that the stage declares.
        """
        now = {shape.name: shape for shape in self.stage.states}
        if not self._then or self._then == now:
            return {}
        made = self._restore({name: self._whole(shape) for name, shape in self._then.items()})
        if made is None:
            return {}
        if not isinstance(made, Mapping):
            told = f"its restore function returned {type(made).__name__}, not frames by name"
            raise StageContractBroken(
                self.stage.name, f"{told}; give {{{', '.join(f'{name!r}: frame' for name in now)}}}"
            )
        if unknown := sorted(made.keys() - now.keys()):
            told = f"its restore function gives {', '.join(map(str, unknown))}, which it does not keep"
            raise StageContractBroken(self.stage.name, f"{told}; allowed: {', '.join(now)}")
        for name, frame in made.items():
            self.check(now[name], frame, "what its restore function gives as ")
        return {name: self._kept_whole(now[name], frame) for name, frame in made.items()}

    def _whole(self, shape: StateShape) -> DataFrame:
        """All that was kept under one name; of what all partitions hold, one copy."""
        pieces = self.earlier.pieces[shape.name]
        held = pieces[:1] if shape.kind is StateKind.BROADCAST else pieces
        filled, schema = [piece for piece in held if piece.part.files], state_schema(shape)
        return self._read(filled, schema) if filled else self.spark.createDataFrame([], schema)

    def _kept_whole(self, shape: StateShape, frame: DataFrame) -> DataFrame:
        """The frame as all partitions read it; the elements of a list that is dealt have their places."""
        own = frame.select(*(quoted(column.name) for column in shape.columns))
        return kept_by_spark(_in_order(own) if shape.kind is StateKind.SPLIT else own)

    def _dealt(self, shape: StateShape, partition: int) -> DataFrame:
        """The partition's own of what was made anew."""
        from pyspark.sql import functions as F

        frame, stage = self._restored[shape.name], self.stage
        if shape.kind is StateKind.SPLIT:
            own = slice_of(self._counts[shape.name], partition, stage.partitions)
            placed = frame.where(F.col(STATE_POSITION).between(own.start, own.stop - 1))
            return placed.drop(STATE_POSITION)
        return self._own_groups(shape, frame, partition) if shape.kind is StateKind.KEYED else frame

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        """The lengths of lists that were made anew and are dealt."""
        split = [shape.name for shape in self.stage.states if shape.kind is StateKind.SPLIT]
        return {name: self._restored[name].count() for name in split if name in self._restored}

    def _own_groups(self, shape: StateShape, frame: DataFrame, partition: int) -> DataFrame:
        group = key_group(shape.key, state_schema(shape), self.stage.max_parallelism)
        return frame.where(in_groups(group, [range_of(partition, self.stage.partitions, self.stage.max_parallelism)]))

    def _refuse_other(self, shape: StateShape) -> None:
        """A column that is new is NULL in what was left before, and one that is gone is not read; but none can have
        another type, since Parquet would be misread, and what was dealt otherwise is elsewhere.

        :raises StageContractBroken: names both shapes.
        """
        then, kept = self._then.get(shape.name), self.earlier.pieces.get(shape.name, ())
        if then is None or not any(piece.part.files for piece in kept):
            return
        if (then.kind, then.key) == (shape.kind, shape.key) and not _other_types(then, shape):
            return
        raise StageContractBroken(
            self.stage.name,
            f"its state {shape.name} is declared as {shape}; {self.earlier.interval} kept it as {then}. Write a "
            "function that makes the one of the other, `@stage(restore=...)`, or give the state another name, to begin "
            "it anew",
        )

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
        {"name": column.name, "type": IN_JSON.get(column.type, column.type), "nullable": True, "metadata": {}}
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


def _shape_of_files(name: str, piece: Piece, declared: StateShape | None) -> StateShape:
    """What the files tell of a shape that an earlier version did not record: all but the kinds of lists, and the keys,
    which are taken for those that are declared.
    """
    from pyspark.sql.types import StructType

    footer = read_footer(piece.table, piece.part.files[0].path).spark_schema
    types = {field.name: field.dataType.simpleString() for field in StructType.fromJson(json.loads(footer)).fields}
    columns = tuple(StateColumn(column, kind) for column, kind in types.items() if not is_reserved(column))
    keyed = STATE_GROUP in types
    if declared is None or declared.kind.is_list == keyed or not types.keys() >= {*declared.key}:
        return StateShape(name, StateKind.KEYED if keyed else StateKind.SPLIT, columns)
    return replace(declared, columns=columns)


def _other_types(then: StateShape, now: StateShape) -> bool:
    written = {column.name: column.type for column in then.columns}
    return any(written.get(column.name, column.type) != column.type for column in now.columns)


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
