"""What the function of a stage is given for some of its partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.lake.read import partition_of_file, read_partitions, recorded_schema, united, written_schemas
from stagehold.lake.store.columns import PARTITION, is_reserved
from stagehold.model.context import StageContext
from stagehold.model.keys.key_groups import group_column, range_of
from stagehold.model.records import PartitionRecord
from stagehold.plan.isolation.key_checks import Key
from stagehold.plan.resume.decisions import Decision
from stagehold.plan.resume.situation import Rescaled
from stagehold.plan.state.earlier_state import Earlier
from stagehold.run.functions.function_errors import reporting_code
from stagehold.run.functions.isolation import marked
from stagehold.run.functions.key_columns import in_groups, key_group, key_of, refuse_unlike_keys
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.python_source import PythonReader
from stagehold.sources.source_reading import ReadsSplits, SourceFrames
from stagehold.spark.connect import WITHOUT_CONSTRAINTS, kept_by_spark
from stagehold.spec.pipeline import Exchange, Input, Pipeline, Stage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Reading:
    """What frames are made from: a plan's ``decisions`` hold the records to read, by stage; ``earlier`` is what stages
    that keep state go on with, ``rescaled`` what is dealt anew. The script of a stage writes to ``script_output``.
    """

    pipeline: Pipeline
    decisions: Mapping[str, Sequence[Decision]]
    sources: Sources
    context: Callable[[Stage, tuple[int, ...]], StageContext]
    project: str
    earlier: Mapping[str, Earlier] = field(default_factory=dict)
    rescaled: Mapping[str, Rescaled] = field(default_factory=dict)
    script_output: Callable[[Stage], str] = field(default=lambda _: "")


class StageInputs:
    """``fused`` gives a reader rows of an output that is not stored, ``columns`` the columns of a stage's frame."""

    def __init__(
        self,
        spark: SparkSession,
        reading: Reading,
        fused: Callable[[Stage, Input, tuple[int, ...]], DataFrame],
        columns: Callable[[Stage, DataFrame], StructType],
    ) -> None:
        self._spark, self._reading = spark, reading
        self._fused, self._columns_of = fused, columns
        self._source_frames: dict[str, SourceFrames] = {}

    def of(
        self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool
    ) -> tuple[dict[str, DataFrame], Sequence[Key]]:
        """The function's arguments for ``partitions``, and the keys by which they were chosen.

        :raises KeyTypesUnlike: equal keys of two inputs could be in different partitions.
        """
        if stage.source is not None:
            return {"source": self._source(stage, partitions, keep_partition=keep_partition)}, ()
        keys: list[Key] = []
        given = {
            edge.given_as: self._input(stage, edge, partitions, keys, keep_partition=keep_partition)
            for edge in stage.inputs
        }
        refuse_unlike_keys(stage.name, keys)
        return (marked(given) if is_keyed(stage) else given), keys

    def in_one_scan(self, stage: Stage, partitions: tuple[int, ...]) -> tuple[DataFrame, Column] | None:
        """All that the function reads, and how its file tells a row's partition, if each has one file of its own."""
        if stage.per_wave or stage.states:
            return None
        if stage.source is not None:
            return self._splits(stage).together(partitions)
        (edge, *others) = stage.inputs
        producer = self._reading.pipeline.stage(edge.stage)
        if others or edge.exchange is not Exchange.FORWARD or not producer.output.stored:
            return None
        records = [record for record in self._records(producer, partitions) if record.files]
        if any(len(record.files) > 1 for record in records) or len({record.written_by for record in records}) != 1:
            return None
        reserved = [column for column in recorded_schema(records).fieldNames() if is_reserved(column)]
        return read_partitions(self._spark, records).drop(*reserved), partition_of_file()

    def _source(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool) -> DataFrame:
        from pyspark.sql import functions as F

        splits = [(partition, self._splits(stage).frame(partition)) for partition in partitions]
        return united(
            [frame.withColumn(PARTITION, F.lit(partition)) if keep_partition else frame for partition, frame in splits]
        )

    def _splits(self, stage: Stage) -> SourceFrames:
        if stage.name not in self._source_frames:
            sources, secret = self._reading.sources, self._reading.context(stage, ()).secret
            read = self._read_by(stage) if stage.source and stage.source.reader else None
            frames = SourceFrames(self._spark, stage.name, sources.of(stage), secret, read)
            self._source_frames[stage.name] = frames
        return self._source_frames[stage.name]

    def _read_by(self, stage: Stage) -> ReadsSplits:
        """How the project's own code reads the stage's source; what it raises is told as of a stage's function."""
        project = Path(self._reading.project)
        context = partial(self._reading.context, stage, ())
        assert stage.source is not None, f"{stage.name} has no source"
        reporting = partial(reporting_code, stage, project)
        return PythonReader(stage.name, stage.source, project, context, reporting).frame

    def _input(
        self, stage: Stage, edge: Input, partitions: tuple[int, ...], keys: list[Key], *, keep_partition: bool
    ) -> DataFrame:
        """What ``edge`` gives the function, without the columns that are ours. A keyed edge adds to ``keys``."""
        from pyspark.sql import functions as F

        producer = self._reading.pipeline.stage(edge.stage)
        wanted = partitions if edge.exchange is Exchange.FORWARD else tuple(range(producer.partitions))
        if producer.output.stored:
            records = self._records(producer, wanted)
            frame = read_partitions(self._spark, records)
            columns = [column for column in recorded_schema(records).fieldNames() if is_reserved(column)]
        else:
            records, columns = [], [PARTITION]
            frame = self._fused(stage, edge, wanted)
        if edge.exchange is Exchange.KEYED:
            schemas = written_schemas(records) if records else (self._columns_of(producer, frame),)
            keys += [key_of(producer.name, edge.key, schema) for schema in schemas]
            # lets Parquet skip all other rows without reading them
            stored = group_column(edge.key, stage.max_parallelism)
            group = F.col(stored) if stored in columns else key_group(edge.key, schemas[0], stage.max_parallelism)
            frame = frame.where(
                in_groups(
                    group, [range_of(partition, stage.partitions, stage.max_parallelism) for partition in partitions]
                )
            )
        return frame.drop(*(column for column in columns if not (keep_partition and column == PARTITION)))

    def _records(self, producer: Stage, partitions: Sequence[int]) -> list[PartitionRecord]:
        """Records of the producer's partitions, all of which are consumable when a reader runs."""
        reused = {decision.partition: decision.reused for decision in self._reading.decisions[producer.name]}
        return [record for partition in partitions if (record := reused.get(partition))]


def is_keyed(stage: Stage) -> bool:
    return any(edge.exchange is Exchange.KEYED for edge in stage.inputs)


Keys = Mapping[int, str]  # by partition, what its rows follow from


class Intermediates:
    """The `pipelined_bounded` outputs of one Spark session.

    They are in Spark's own storage: memory as far as it goes, then disk. The session holds them, and nothing else does:
    when it is released, by whomever, they are gone. So nobody has to clean up after an attempt that was killed.
    """

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[Keys, DataFrame]]] = defaultdict(list)

    def frame(self, stage: str, keys: Keys, compute: Callable[[], DataFrame]) -> DataFrame:
        """A frame that holds the partitions in ``keys``, and maybe others; ``compute`` makes it if none does yet.

        Its rows are computed when they are first read, those before a shuffle at once.
        """
        from stagehold.spark.calls.call_watch import settings_in_force  # slow to import, and a run may reuse everything

        for kept, frame in self._kept[stage]:
            if keys.items() <= kept.items():
                return frame
        computed = compute()
        with settings_in_force(computed.sparkSession, WITHOUT_CONSTRAINTS):
            frame = kept_by_spark(computed)
        self._kept[stage].append((keys, frame))
        return frame
