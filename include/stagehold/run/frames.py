"""Turns partitions to compute into one Spark frame: reads inputs, calls stage functions, marks each row's partition.

A function is given just the rows of the partitions it computes: one partition's for source splits and `forward`
inputs, the wave's key groups for `keyed` ones, everything for `broadcast` and `gather`. One that makes its rows one by one
is given many partitions' at once: it makes the same of them, and one scan of 16 files takes a third of the time of 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.columns import PARTITION, is_reserved
from stagehold.lake.read import partition_of_file, read_partitions, recorded_schema, written_schemas
from stagehold.model.context import StageContext, is_stage
from stagehold.model.key_groups import group_column, range_of
from stagehold.model.records import PartitionRecord
from stagehold.model.spec import Exchange, Input, OutputType, Pipeline, Stage
from stagehold.plan.fusion import is_divisible
from stagehold.plan.isolation.verdict import Isolation
from stagehold.plan.key_checks import Key
from stagehold.plan.resume import Action, Decision
from stagehold.run.intermediates import Intermediates
from stagehold.run.isolation import at_home, given_input, judged, marked
from stagehold.run.key_columns import in_groups, key_group, key_of, partition_of_key, refuse_unlike_keys
from stagehold.run.project_modules import load_function
from stagehold.run.row_wise import WatchedContext, is_row_wise
from stagehold.run.source_frames import SourceFrames
from stagehold.run.sources import Sources
from stagehold.run.stage_call import StageCall
from stagehold.run.stage_failure import reporting_code, reporting_function

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


MOST_AT_ONCE = 32  # partitions in one scan: telling a row's file from n others takes n comparisons
MARK = f"{PARTITION}_mark"


@dataclass(frozen=True)
class FrameBuilder:
    """Builds frames for one region attempt. ``decisions`` hold the records to read, by stage.

    Asking Spark Connect for a frame's columns is a call to the server that plans the whole frame, so it is done once per
    stage, by `check`; never per partition, wave or input.

    ``calls`` keeps each function's first call, and the second if it was for the same partitions: enough to compare them.
    ``isolations`` say of each keyed stage that was called so far, whether a wave's partitions may share a call.
    """

    spark: SparkSession
    pipeline: Pipeline
    decisions: Mapping[str, Sequence[Decision]]
    sources: Sources
    context: Callable[[Stage, tuple[int, ...]], StageContext]
    project: str
    intermediates: Intermediates
    calls: dict[str, list[StageCall]] = field(default_factory=dict)
    isolations: dict[str, Isolation] = field(default_factory=dict)
    _schemas: dict[str, StructType] = field(default_factory=dict)
    _keys: dict[str, list[Key]] = field(default_factory=dict)
    _source_frames: dict[str, SourceFrames] = field(default_factory=dict)
    _row_wise: set[str] = field(default_factory=set)

    def check(self, stage: Stage, partition: int) -> StructType:
        """The schema of `output`, after proving on one partition that the function's frame can be cut and stored.

        :raises StageContractBroken: it returns no frame, takes reserved names, or lacks a column that is needed.
        :raises KeyTypesUnlike: rows with equal keys could be in different partitions, of it or of its keyed readers.
        :raises KeyMayBeNull: its rows would belong to none of the partitions that make them.
        """
        if not is_stage(self._function(stage)):
            raise StageContractBroken(stage.name, f"{stage.job} is no stage function; put @stage on it")
        frame = self._call(stage, (partition,), keep_partition=stage.per_wave)
        if not hasattr(frame, "toArrow"):
            raise StageContractBroken(stage.name, f"its function returned {type(frame).__name__}, not a DataFrame")
        schema = self._schema(stage, frame, partition)
        columns = schema.fieldNames()
        if stage.per_wave and PARTITION not in columns:
            raise StageContractBroken(stage.name, f"its function dropped the column {PARTITION}, which a per_wave function must keep")
        taken = [column for column in columns if is_reserved(column) and not (stage.per_wave and column == PARTITION)]
        if taken:
            raise StageContractBroken(stage.name, f"its output has the reserved column {', '.join(taken)}; rename it")
        self._schemas[stage.name] = schema
        for reader, edge in self._keyed_readers(stage):
            refuse_unlike_keys(reader.name, [key_of(stage.name, edge.key, schema)])
        if _is_keyed(stage):
            self._isolation(stage, partition)
        return self._output_schema(stage, schema)

    def _schema(self, stage: Stage, frame: DataFrame, partition: int) -> StructType:
        """The columns of the function's frame, and on the way whether Spark can tell the file of each of its rows."""
        from pyspark.errors import AnalysisException
        from pyspark.sql.types import StructType

        together = self._together(stage, (partition,), MARK)
        if together is None:
            return frame.schema
        try:
            fields = together.schema.fields
        except AnalysisException:
            return frame.schema
        self._row_wise.add(stage.name)
        return StructType([field for field in fields if field.name != MARK])

    def _output_schema(self, stage: Stage, schema: StructType) -> StructType:
        """What `output` adds to the columns of the stage's function, in its order."""
        from pyspark.sql.types import IntegerType, StructType

        added = (*(() if stage.per_wave and not _is_keyed(stage) else (PARTITION,)), *self.group_columns(stage))
        return reduce(lambda grown, name: grown.add(name, IntegerType()), added, StructType(schema.fields))

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        """The stage's output for ``partitions``, with `_partition` and the group columns its keyed readers prune by."""
        frame = self._computed(stage, partitions)
        groups = {
            group_column(edge.key, reader.max_parallelism): key_group(edge.key, self._columns_of(stage, frame), reader.max_parallelism)
            for reader, edge in self._keyed_readers(stage)
        }
        return frame.withColumns(groups) if groups else frame

    def is_arranged(self, stage: Stage) -> bool:
        """True when each partition's rows come out of one Spark task, so that no shuffle is needed to write one file.

        Not where that task would have to compute everything which that partition needs of an output that is not stored.
        """
        return not (_is_keyed(stage) or stage.per_wave) and is_divisible(stage, self.pipeline)

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        """Names of the columns by which keyed readers find their groups in this output."""
        return tuple(dict.fromkeys(group_column(edge.key, reader.max_parallelism) for reader, edge in self._keyed_readers(stage)))

    def _keyed_readers(self, stage: Stage) -> list[tuple[Stage, Input]]:
        """Readers to prepare for; a published table is the users' and gets no columns of ours."""
        if stage.output.table is not None:
            return []
        edges = ((reader, reader.input(stage.name)) for reader in self.pipeline.readers(stage.name))
        return [(reader, edge) for reader, edge in edges if edge.exchange is Exchange.KEYED]

    def _computed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:

        if _is_keyed(stage):
            return self._keyed(stage, partitions)
        if stage.per_wave:
            return self._call(stage, partitions, keep_partition=True)
        if len(partitions) > 1 and stage.name in self._row_wise:
            starts = range(0, len(partitions), MOST_AT_ONCE)
            return _union([self._many(stage, partitions[start : start + MOST_AT_ONCE]) for start in starts])
        return self._one_by_one(stage, partitions)

    def _keyed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        """Rows by their keys; one call for each partition, unless the plan shows that several make the same of their rows."""
        from pyspark.sql import functions as F

        isolation = self._isolation(stage, partitions[0])
        belongs = partition_of_key(stage.key, self._schemas[stage.name], partitions=stage.partitions, max_parallelism=stage.max_parallelism)
        if isolation.together:
            return self._call(stage, partitions).withColumn(PARTITION, belongs)
        frames = [(one, self._call(stage, (one,))) for one in partitions]
        return _union([frame.where(at_home(stage, one, belongs)).withColumn(PARTITION, F.lit(one)) for one, frame in frames])

    def _isolation(self, stage: Stage, partition: int) -> Isolation:
        """Found once for each keyed stage, from the first call of its function, and whether its key may meet those of its inputs."""
        if stage.name not in self.isolations:
            if stage.name not in self.calls:
                self._call(stage, (partition,))
            call = self.calls[stage.name][0]
            schema, keys = self._columns_of(stage, call.frame), self._keys[stage.name]
            refuse_unlike_keys(stage.name, [*keys, key_of(stage.name, stage.key, schema)])
            given = [given_input(edge, keys) for edge in stage.inputs]
            self.isolations[stage.name] = judged(stage, call, given, schema.fieldNames())
        return self.isolations[stage.name]

    def _one_by_one(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        from pyspark.sql import functions as F

        frames = [(partition, self._call(stage, (partition,))) for partition in partitions]
        arranged = self.is_arranged(stage)
        return _union([(one.coalesce(1) if arranged else one).withColumn(PARTITION, F.lit(partition)) for partition, one in frames])

    def _many(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        together = self._together(stage, partitions, PARTITION)
        return self._one_by_one(stage, partitions) if together is None else together

    def _together(self, stage: Stage, partitions: tuple[int, ...], column: str) -> DataFrame | None:
        """The function's rows for all ``partitions``, with each row's partition; None if that cannot be told after one call."""
        read = self._one_scan(stage, partitions)
        if read is None:
            return None
        given, partition = read
        context = WatchedContext.of(self.context(stage, partitions))
        frame = self._function(stage)(context, **{stage.inputs[0].stage if stage.inputs else "source": given})
        return None if context.asked or not is_row_wise(frame, given) else frame.withColumn(column, partition)

    def _one_scan(self, stage: Stage, partitions: tuple[int, ...]) -> tuple[DataFrame, Column] | None:
        """All that the function reads, and how its file tells a row's partition, if each partition has one file of its own."""
        if stage.per_wave:
            return None
        if stage.source is not None:
            return self._splits(stage).together(partitions)
        (edge, *others) = stage.inputs
        producer = self.pipeline.stage(edge.stage)
        if others or edge.exchange is not Exchange.FORWARD or not producer.output.type.stored:
            return None
        records = [record for record in self._records(producer, partitions) if record.files]
        if any(len(record.files) > 1 for record in records) or len({record.attempt_id for record in records}) != 1:
            return None
        reserved = [column for column in recorded_schema(records).fieldNames() if is_reserved(column)]
        return read_partitions(self.spark, records).drop(*reserved), partition_of_file()

    def _columns_of(self, stage: Stage, frame: DataFrame) -> StructType:
        """The columns of a stage's frame, asked for once: all its frames have the same."""
        if stage.name not in self._schemas:
            self._schemas[stage.name] = frame.schema
        return self._schemas[stage.name]

    def _call(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool = False) -> DataFrame:
        """Call the stage's function with its inputs for ``partitions``."""
        arguments = self._arguments(stage, partitions, keep_partition=keep_partition)
        call = StageCall.make(self.spark, self._function(stage), self.context(stage, partitions), arguments)
        known = self.calls.setdefault(stage.name, [])
        if len(known) < 2 and all(one.partitions == partitions for one in known):
            known.append(call)
        return call.frame

    def _function(self, stage: Stage) -> Callable[..., DataFrame]:
        project = Path(self.project)
        with reporting_code(stage, project):
            function = load_function(stage.job, project)
        return reporting_function(stage, project, function)

    def _arguments(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool) -> dict[str, DataFrame]:
        if stage.source is not None:
            return {"source": self._source(stage, partitions, keep_partition=keep_partition)}
        keys: list[Key] = []
        given = {edge.stage: self._input(stage, edge, partitions, keys, keep_partition=keep_partition) for edge in stage.inputs}
        refuse_unlike_keys(stage.name, keys)
        self._keys[stage.name] = keys
        return marked(given) if _is_keyed(stage) else given

    def _source(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool) -> DataFrame:
        from pyspark.sql import functions as F

        splits = [(partition, self._splits(stage).frame(partition)) for partition in partitions]
        return _union([frame.withColumn(PARTITION, F.lit(partition)) if keep_partition else frame for partition, frame in splits])

    def _splits(self, stage: Stage) -> SourceFrames:
        return self._source_frames.setdefault(stage.name, SourceFrames(self.spark, stage.name, self.sources.of(stage)))

    def _input(self, stage: Stage, edge: Input, partitions: tuple[int, ...], keys: list[Key], *, keep_partition: bool) -> DataFrame:
        """What ``edge`` gives the function, without the columns that are ours. If it is keyed, its key goes to ``keys``."""
        from pyspark.sql import functions as F

        producer = self.pipeline.stage(edge.stage)
        wanted = partitions if edge.exchange is Exchange.FORWARD else tuple(range(producer.partitions))
        if producer.output.type.stored:
            records = self._records(producer, wanted)
            frame = read_partitions(self.spark, records)
            columns = [column for column in recorded_schema(records).fieldNames() if is_reserved(column)]
        else:
            records, columns = [], [PARTITION]
            frame = self._fused(producer, wanted)
        if edge.exchange is Exchange.KEYED:
            schemas = written_schemas(records) if records else (self._columns_of(producer, frame),)
            keys += [key_of(producer.name, edge.key, schema) for schema in schemas]
            stored = group_column(edge.key, stage.max_parallelism)  # lets Parquet skip all other rows without reading them
            group = F.col(stored) if stored in columns else key_group(edge.key, schemas[0], stage.max_parallelism)
            frame = frame.where(in_groups(group, [range_of(one, stage.partitions, stage.max_parallelism) for one in partitions]))
        return frame.drop(*(column for column in columns if not (keep_partition and column == PARTITION)))

    def _fused(self, producer: Stage, wanted: tuple[int, ...]) -> DataFrame:
        """Rows of an output that is not stored: computed by each query that reads them, or once and kept."""
        from pyspark.sql import functions as F

        if producer.output.type is not OutputType.PIPELINED_BOUNDED:
            return self._computed(producer, wanted)
        if self.is_arranged(producer):
            return _union([self._kept(producer, (partition,)) for partition in wanted])
        needed = {decision.partition for decision in self.decisions[producer.name] if decision.action.computes}
        return self._kept(producer, tuple(sorted(needed.union(wanted)))).where(F.col(PARTITION).isin(*wanted))

    def _kept(self, producer: Stage, partitions: tuple[int, ...]) -> DataFrame:
        decided = {decision.partition: str(decision.key) for decision in self.decisions[producer.name]}
        keys = {partition: decided.get(partition, "") for partition in partitions}
        return self.intermediates.frame(producer.name, keys, lambda: self._computed(producer, partitions))

    def _records(self, producer: Stage, partitions: Sequence[int]) -> list[PartitionRecord]:
        """Records of the producer's partitions, all of which are consumable when a reader runs."""
        reused = {decision.partition: decision.record for decision in self.decisions[producer.name] if decision.action is Action.REUSE}
        return [record for partition in partitions if (record := reused.get(partition))]


def _is_keyed(stage: Stage) -> bool:
    return any(edge.exchange is Exchange.KEYED for edge in stage.inputs)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)
