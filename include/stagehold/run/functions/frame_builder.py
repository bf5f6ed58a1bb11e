"""Turns partitions to compute into one Spark frame: reads inputs, calls stage functions, marks each row's partition.

A function gets only the rows of the partitions that it computes: one partition's for source splits and `forward`
inputs, the wave's key groups for `keyed` ones, everything for `broadcast` and `gather`. A function that makes its rows
one by one gets those of many partitions at once: it makes the same of them, and one scan of 16 files takes a third of
the time of 16 scans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from stagehold.code.side_reads import SideRead
from stagehold.errors import StageContractBroken
from stagehold.lake.declared_columns import as_declared, refuse_other_columns
from stagehold.lake.read import united
from stagehold.lake.store.columns import PARTITION, is_reserved, refuse_unusable_columns
from stagehold.model.context import StageState, is_stage
from stagehold.model.keys.key_groups import group_column
from stagehold.model.stage_state import StateShape
from stagehold.plan.isolation.key_checks import Key
from stagehold.plan.isolation.verdict import Isolation
from stagehold.plan.resume.decisions import RunDecision
from stagehold.plan.split.regions import is_divisible
from stagehold.run.functions.isolation import given_input, judged, require_own_keys
from stagehold.run.functions.key_columns import key_group, key_of, partition_of_key, refuse_unlike_keys
from stagehold.run.functions.stage_call import StageCall, StageCaller, is_frame, is_row_wise, returned_text
from stagehold.run.functions.stage_inputs import Intermediates, Reading, StageInputs, is_keyed
from stagehold.run.functions.state_frames import Dealing, StateFrames, state_schema
from stagehold.spark.calls.call_watch import settings_in_force, watch_of
from stagehold.spec.pipeline import Exchange, Input, OutputType, Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


MOST_AT_ONCE = 32  # partitions in one scan: telling a row's file from n others takes n comparisons
MARK = f"{PARTITION}_mark"


class FrameBuilder:
    """Builds the frames of one plan's stages, in one Spark session.

    Asking Spark Connect for a frame's columns is a call to the server that plans the whole frame. So it is done once
    per stage, by `check`, and never per partition, wave or input.

    ``isolations`` say for each keyed stage that was called so far whether a wave's partitions may share a call.
    ``observed`` always has what the newest query that wrote a frame observed.
    """

    def __init__(
        self,
        spark: SparkSession,
        reading: Reading,
        intermediates: Intermediates,
        observed: Mapping[str, int] | None = None,
    ) -> None:
        self.isolations: dict[str, Isolation] = {}
        self._spark, self._reading, self._intermediates = spark, reading, intermediates
        self._observed = {} if observed is None else observed
        self._caller = StageCaller(spark, reading.pipeline, reading.project, reading.script_output)
        self._inputs = StageInputs(spark, reading, self._fused, self._columns_of)
        # The first call of each function, and the second if its partition was the same.
        self._calls: dict[str, list[StageCall]] = {}
        self._schemas: dict[str, StructType] = {}
        self._keys: dict[str, Sequence[Key]] = {}
        self._states_of: dict[str, StateFrames] = {}
        self._counting: dict[tuple[str, int], StageCall] = {}  # calls that count, by the last one for each partition
        self._after: dict[tuple[str, int], Mapping[str, DataFrame]] = {}  # state, by the last call of each partition
        self._row_wise: set[str] = set()
        self._ready: dict[tuple[str, tuple[int, ...]], StageCall] = {}  # calls that did more than plan, to be used once
        self._in_force: Mapping[str, str] = {}

    @contextmanager
    def computing(self, stage: Stage) -> Iterator[None]:
        """Give the session the settings that ``stage`` declares, inside the block; the stage's frames are made and
        computed there.

        Rows that Spark keeps for frames which nobody uses any more are dropped afterwards.
        """
        self._in_force = self._reading.pipeline.spark_of(stage)
        try:
            with settings_in_force(self._spark, self._in_force):
                yield
        finally:
            self._in_force = {}
            if not self._ready:  # plans of ready calls may need the kept rows
                watch_of(self._spark, self._reading.project).forget_kept()

    @property
    def habits(self) -> Mapping[str, Sequence[str]]:
        """What functions that were called so far do beside planning, by stage."""
        return {name: calls[0].reasons_against_sharing for name, calls in self._calls.items() if calls[0].touches}

    @property
    def reads(self) -> Mapping[str, Sequence[SideRead]]:
        """What calls were seen to read beside their inputs, by stage."""
        return {
            name: [
                SideRead(kind, read, place)
                for reads in (*(call.reads for call in calls), self._caller.restore_reads.get(name, {}))
                for (kind, read), place in reads.items()
            ]
            for name, calls in self._calls.items()
        }

    def check(self, stage: Stage, partition: int) -> StructType:
        """The schema of `output`, after proving on one partition that the function's frame can be cut and stored.

        :raises StageContractBroken: it returns no frame, takes reserved names, lacks a column that is needed, or has
            one that cannot be stored.
        :raises ColumnsNotAsDeclared: its columns are not those that the stage declares.
        :raises KeyTypesUnlike: rows with equal keys could be in different partitions, of it or of its keyed readers.
        :raises KeyMayBeNull: its rows would belong to none of the partitions that make them.
        """
        if not is_stage(self._caller.function(stage)):
            raise StageContractBroken(stage.name, f"{stage.job} is no stage function; put @stage on it")
        call = self._call(stage, (partition,), keep_partition=stage.per_wave)
        if not is_frame(call.frame):
            raise StageContractBroken(stage.name, f"its function returned {returned_text(call.frame)}")
        if stage.per_wave and call.asks:
            raise StageContractBroken(
                stage.name, f"its function {call.asks}, and would be told about whole waves: take `per_wave` away"
            )
        schema = self._schema(stage, call, partition)
        columns = schema.fieldNames()
        if stage.per_wave and PARTITION not in columns:
            raise StageContractBroken(
                stage.name, f"its function dropped the column {PARTITION}, which a per_wave function must keep"
            )
        taken = [column for column in columns if is_reserved(column) and not (stage.per_wave and column == PARTITION)]
        if taken:
            raise StageContractBroken(stage.name, f"its output has the reserved column {', '.join(taken)}; rename it")
        refuse_unusable_columns(stage.name, schema)
        refuse_other_columns(stage, schema)
        self._schemas[stage.name] = schema
        for reader, edge in self._keyed_readers(stage):
            refuse_unlike_keys(reader.name, [key_of(stage.name, edge.key, schema)])
        if is_keyed(stage):
            self._isolation(stage, partition)
        self._check_state(stage, partition)
        return self._output_schema(stage, schema)

    def _check_state(self, stage: Stage, partition: int) -> None:
        for shape in stage.states:
            self._states(stage).check(shape, self._after[stage.name, partition][shape.name])
            if shape.key and is_keyed(stage):
                own = key_of(f"{stage.name}, state {shape.name}", shape.key, state_schema(shape))
                refuse_unlike_keys(stage.name, [*self._keys[stage.name], own])

    def _schema(self, stage: Stage, call: StageCall, partition: int) -> StructType:
        """The columns of the function's frame. It also finds out whether Spark can tell the file of each of its
        rows.
        """
        from pyspark.errors import AnalysisException
        from pyspark.sql.types import StructType

        together = self._together(stage, (partition,), MARK) if call.is_plan_alone else None
        if together is None:
            return call.frame.schema
        try:
            fields = together.schema.fields
        except AnalysisException:
            return call.frame.schema
        self._row_wise.add(stage.name)
        return StructType([field for field in fields if field.name != MARK])

    def _output_schema(self, stage: Stage, schema: StructType) -> StructType:
        """The columns of the stage's function as they are declared, with those that `output` adds, in its order."""
        from pyspark.sql.types import IntegerType

        added = (*(() if stage.per_wave and not is_keyed(stage) else (PARTITION,)), *self.group_columns(stage))
        declared = as_declared(schema, stage.output.columns)
        return reduce(lambda grown, name: grown.add(name, IntegerType()), added, declared)

    def call_again(self, stage: Stage, partition: int) -> Mapping[str, Sequence[StageCall]]:
        """The first two calls of every function that takes part in making this partition, both for this partition:
        random choices of a function only show in a second plan.
        """
        self._computed(stage, (partition,))
        for name, calls in self._calls.items():
            if calls[-1].touches:
                self._ready[name, calls[-1].partitions] = calls[-1]
        return self._calls

    def inputs(self, stage: Stage, partitions: tuple[int, ...]) -> dict[str, DataFrame]:
        """What the stage's function is given for ``partitions`` together."""
        return self._inputs.of(stage, partitions, keep_partition=False)[0]

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        """The stage's output for ``partitions``, with `_partition` and the group columns by which its keyed readers
        prune.
        """
        dealt = tuple(partition for partition in partitions if partition in self._dealt_anew(stage))
        called = tuple(partition for partition in partitions if partition not in dealt)
        frames = [self._dealing(stage).rows(dealt)] if dealt else []
        frame = united([self._computed(stage, called), *frames] if called else frames)
        self._ready.clear()
        groups = {
            group_column(edge.key, reader.max_parallelism): key_group(
                edge.key, self._columns_of(stage, frame), reader.max_parallelism
            )
            for reader, edge in self._keyed_readers(stage)
        }
        return frame.withColumns(groups) if groups else frame

    def kept(self, stage: Stage, shape: StateShape, partitions: tuple[int, ...]) -> DataFrame:
        """The state that the stage keeps under one name, from the calls that made `output` for these partitions."""
        dealt = self._dealt_anew(stage)
        frames = [
            (
                partition,
                (self._dealing(stage).kept(partition) if partition in dealt else self._after[stage.name, partition]),
            )
            for partition in partitions
        ]
        return self._states(stage).after(shape, [(partition, kept[shape.name]) for partition, kept in frames])

    def counted(self, stage: Stage, partitions: tuple[int, ...]) -> Mapping[int, tuple[tuple[str, int], ...]]:
        """What the calls that made `output` for these partitions counted, once that is written."""
        calls = {partition: self._counting.pop((stage.name, partition), None) for partition in partitions}
        return {partition: call.counted(self._observed) for partition, call in calls.items() if call}

    @property
    def counting(self) -> Sequence[Stage]:
        """The stages whose functions counted so far."""
        return [self._reading.pipeline.stage(name) for name in dict.fromkeys(name for name, _ in self._counting)]

    def _dealt_anew(self, stage: Stage) -> frozenset[int]:
        return frozenset(
            decision.partition
            for decision in self._reading.decisions[stage.name]
            if isinstance(decision, RunDecision) and decision.dealt
        )

    def _dealing(self, stage: Stage) -> Dealing:
        return Dealing(self._spark, stage, self._reading.rescaled[stage.name])

    def is_arranged(self, stage: Stage) -> bool:
        """Whether each partition's rows come out of one Spark task, so that no shuffle is needed to write one file.

        False if that task would have to compute everything which the partition needs of an output that is not stored.
        """
        return not (is_keyed(stage) or stage.per_wave) and is_divisible(stage, self._reading.pipeline)

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        """Names of the columns by which keyed readers find their groups in this output."""
        return tuple(
            dict.fromkeys(group_column(edge.key, reader.max_parallelism) for reader, edge in self._keyed_readers(stage))
        )

    def _keyed_readers(self, stage: Stage) -> list[tuple[Stage, Input]]:
        """Readers to prepare for; a published table belongs to the users and gets no columns of ours."""
        if stage.output.table is not None:
            return []
        edges = ((reader, reader.input(stage.name)) for reader in self._reading.pipeline.readers(stage.name))
        return [(reader, edge) for reader, edge in edges if edge.exchange is Exchange.KEYED]

    def _computed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        if is_keyed(stage):
            return self._keyed(stage, partitions)
        if stage.per_wave:
            return self._call(stage, partitions, keep_partition=True).frame
        if len(partitions) > 1 and stage.name in self._row_wise:
            starts = range(0, len(partitions), MOST_AT_ONCE)
            return united([self._many(stage, partitions[start : start + MOST_AT_ONCE]) for start in starts])
        return self._one_by_one(stage, partitions)

    def _keyed(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        """Rows by their keys; one call for each partition, unless the plan shows that several make the same of their
        rows.
        """
        from pyspark.sql import functions as F

        isolation = self._isolation(stage, partitions[0])
        belongs = partition_of_key(
            stage.key, self._schemas[stage.name], partitions=stage.partitions, max_parallelism=stage.max_parallelism
        )
        if isolation.together and not stage.states:
            call = self._call(stage, partitions)
            if len(partitions) == 1 or call.is_plan_alone:
                return call.frame.withColumn(PARTITION, belongs)
            self.isolations[stage.name] = Isolation(call.reasons_against_sharing)
        frames = [(partition, self._call(stage, (partition,)).frame) for partition in partitions]
        return united(
            [
                frame.where(require_own_keys(stage, number, belongs, stage.key)).withColumn(PARTITION, F.lit(number))
                for number, frame in frames
            ]
        )

    def _isolation(self, stage: Stage, partition: int) -> Isolation:
        """The isolation of a keyed stage, found once from the first call of its function; and whether its key may meet
        those of its inputs.
        """
        if stage.name not in self.isolations:
            if stage.name not in self._calls:
                self._call(stage, (partition,))
            call = self._calls[stage.name][0]
            schema, keys = self._columns_of(stage, call.frame), self._keys[stage.name]
            refuse_unlike_keys(stage.name, [*keys, key_of(stage.name, stage.key, schema)])
            given = [given_input(edge, keys) for edge in stage.inputs]
            self.isolations[stage.name] = judged(stage, call, given, schema.fieldNames())
        return self.isolations[stage.name]

    def _one_by_one(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        from pyspark.sql import functions as F

        frames = [(partition, self._call(stage, (partition,)).frame) for partition in partitions]
        arranged = self.is_arranged(stage)
        return united(
            [
                (frame.coalesce(1) if arranged else frame).withColumn(PARTITION, F.lit(partition))
                for partition, frame in frames
            ]
        )

    def _many(self, stage: Stage, partitions: tuple[int, ...]) -> DataFrame:
        together = self._together(stage, partitions, PARTITION)
        return self._one_by_one(stage, partitions) if together is None else together

    def _together(self, stage: Stage, partitions: tuple[int, ...], column: str) -> DataFrame | None:
        """The function's rows for all ``partitions``, with each row's partition; None if that cannot be told after one
        call.
        """
        read = self._inputs.in_one_scan(stage, partitions)
        if read is None:
            return None
        given, partition = read
        arguments = {stage.inputs[0].given_as if stage.inputs else "source": given}
        context = self._reading.context(stage, partitions)
        call = self._caller.call(stage, context, arguments, self._in_force)
        if not call.is_plan_alone or not is_row_wise(call.frame, given):
            return None
        return call.frame.withColumn(column, partition)

    def _columns_of(self, stage: Stage, frame: DataFrame) -> StructType:
        """The columns of a stage's frame. They are asked for once: all its frames have the same."""
        if stage.name not in self._schemas:
            self._schemas[stage.name] = frame.schema
        return self._schemas[stage.name]

    def _call(self, stage: Stage, partitions: tuple[int, ...], *, keep_partition: bool = False) -> StageCall:
        """Call the stage's function with its inputs for ``partitions``."""
        call = self._ready.pop((stage.name, partitions), None)
        if call is None:
            arguments, self._keys[stage.name] = self._inputs.of(stage, partitions, keep_partition=keep_partition)
            context = self._reading.context(stage, partitions)
            if stage.states:
                context = replace(context, state=StageState(self._states(stage).before(partitions[0])))
            call = self._caller.call(stage, context, arguments, self._in_force)
            self._keep_first(stage, partitions, call)
        if call.context.counters:
            self._counting[stage.name, partitions[0]] = call
        return call

    def _keep_first(self, stage: Stage, partitions: tuple[int, ...], call: StageCall) -> None:
        if stage.states:
            self._after[stage.name, partitions[0]] = call.after
        known = self._calls.setdefault(stage.name, [])
        if len(known) < 2 and all(call.partitions == partitions for call in known):
            known.append(call)

    def _states(self, stage: Stage) -> StateFrames:
        def restore(before: Mapping[str, DataFrame]) -> Any:
            return self._caller.restore(stage, self._reading.context(stage, ()), before, self._in_force)

        made = StateFrames(self._spark, stage, self._reading.earlier[stage.name], restore)
        return self._states_of.setdefault(stage.name, made)

    def _fused(self, reader: Stage, edge: Input, wanted: tuple[int, ...]) -> DataFrame:
        """Rows of an output that is not stored: computed by each query that reads them, or once and kept."""
        from pyspark.sql import functions as F

        producer = self._reading.pipeline.stage(edge.stage)
        if producer.output.type is not OutputType.PIPELINED_BOUNDED and not self._reads_again(reader, edge):
            return self._computed(producer, wanted)
        if self.is_arranged(producer):
            return united([self._kept(producer, (partition,)) for partition in wanted])
        needed = {decision.partition for decision in self._reading.decisions[producer.name] if decision.action.computes}
        return self._kept(producer, tuple(sorted(needed.union(wanted)))).where(F.col(PARTITION).isin(*wanted))

    def _reads_again(self, reader: Stage, edge: Input) -> bool:
        """Whether each call of the reader's function reads the same rows, so that one plan would compute them as often
        as the function is called.
        """
        isolation = self.isolations.get(reader.name)
        apart = not isolation.together if isolation else reader.name in self._schemas and not is_keyed(reader)
        return edge.exchange is not Exchange.FORWARD and reader.partitions > 1 and apart

    def _kept(self, producer: Stage, partitions: tuple[int, ...]) -> DataFrame:
        decided = {decision.partition: str(decision.key) for decision in self._reading.decisions[producer.name]}
        keys = {partition: decided.get(partition, "") for partition in partitions}
        return self._intermediates.frame(producer.name, keys, lambda: self._computed(producer, partitions))
