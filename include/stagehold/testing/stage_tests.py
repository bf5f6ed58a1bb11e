"""Calls stages of a project with rows of a test: whole and in cuts, as runs call them for partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.lake.declared_columns import as_declared, refuse_nulls, refuse_other_columns
from stagehold.lake.measure import count_nulls
from stagehold.lake.store.columns import refuse_unusable_columns
from stagehold.model.context import StageContext, StageCounters, StageSecrets, StageState, seed_of
from stagehold.model.keys.interval_key import interval_key, times_of
from stagehold.run.functions.stage_call import is_frame, returned_text
from stagehold.run.functions.state_frames import state_schema
from stagehold.settings import Settings
from stagehold.sources.declared_reads import stage_files
from stagehold.spark.session.project_modules import send_files, stage_function
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Exchange, Pipeline, Stage
from stagehold.spec.settings.source import INFER
from stagehold.testing.cuts import random_cut
from stagehold.testing.row_differences import Row, frozen, row_differences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERVAL = "2026-01-01"  # where a test names none
CUTS = 3
SOURCE = "source"
PARTITION = "_partition"  # which a stage that is `per_wave` keeps
Given = Any  # a frame, rows (mappings or tuples), or the path of a CSV or Parquet file


@dataclass(frozen=True)
class StageResult:
    """What a stage made of the rows of a test. ``state`` is what the next interval begins with, ``counters`` what its
    function counted.

    ``uncut`` says why the stage was called once only, if it was.
    """

    rows: Sequence[Row]
    columns: tuple[str, ...]
    state: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    uncut: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)

    def assert_rows(self, expected: Iterable[Row | Sequence[Any]]) -> None:
        """:raises AssertionError: other rows were made, in whatever order. Only columns that expected mappings name are
        compared.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        wanted = [row if isinstance(row, Mapping) else dict(zip(self.columns, row, strict=True)) for row in expected]
        named = tuple(dict.fromkeys(name for row in wanted for name in row)) or self.columns
        for name in set(named) - {*self.columns}:
            raise UnknownName("column", name, self.columns)
        found = [{name: row[name] for name in named} for row in self.rows]
        differences = row_differences([{name: row.get(name) for name in named} for row in wanted], found)
        if differences:
            raise AssertionError(differences.text())


class StageTests:
    """The stages of a project's pipelines."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings
        self._scripts = TemporaryDirectory(prefix="stagehold-")  # what scripts write

    def run(
        self,
        name: str,
        inputs: Mapping[str, Given] | Given,
        *,
        interval: str = INTERVAL,
        params: Mapping[str, Any] | None = None,
        state: Mapping[str, Given] | None = None,
        secrets: Mapping[str, str] | None = None,
        cuts: int = CUTS,
        seed: int = 0,
    ) -> StageResult:
        """Call a stage, ``STAGE`` or ``PIPELINE.STAGE``, with ``inputs`` by name, or with that of its only one.

        It is called once with all rows, and for each of so many ``cuts`` with every part of them, as a run calls it for
        partitions: rows of a source or of a `forward` input may be in any partition, those of one key are together.

        :param secrets: values by their names; others that the pipeline declares are `test-NAME`, and none is looked up.
        :raises AssertionError: the answer follows from how the rows were cut
        :raises UnknownName: there is no such stage, input, state or secret
        """
        __tracebackhide__ = True
        pipeline, stage = self._find(name)
        frames = self._frames(stage, inputs)
        context = self._context(pipeline, stage, interval, params or {}, _secrets(pipeline, secrets or {}))
        send_files(self.spark, context.files.values())
        function = stage_function(stage, Path(self.settings.project), f"{self._scripts.name}/{uuid4()}")
        call = _Call(self.spark, stage, function, context)
        before = {shape.name: self._state(shape, (state or {}).get(shape.name, ())) for shape in stage.states}
        for unknown in set(state or {}) - set(before):
            raise UnknownName("state", unknown, tuple(before))
        rows, columns, after, counters = call.made(frames, before)
        uncut = _why_uncut(stage) if cuts else "cuts=0"
        if uncut is None:
            _refuse_cut_that_matters(call, stage, frames, rows, seed, cuts)
        return StageResult(rows, columns, after, uncut, counters.sums())

    def _find(self, name: str) -> tuple[Pipeline, Stage]:
        """:raises InvalidSpec: of a pipeline's file, if no other one has the stage."""
        loaded = load_each_pipeline(self.settings)
        pipelines = [each for each in loaded if isinstance(each, Pipeline)]
        found = {f"{each.name}.{stage.name}": (each, stage) for each in pipelines for stage in each.stages}
        named = [place for place in found if name in (place, place.partition(".")[2])]
        if len(named) == 1:
            return found[named[0]]
        broken = [each for each in loaded if isinstance(each, Exception)]
        if not named and broken:
            raise broken[0]
        raise UnknownName("stage", name, named or tuple(found))

    def _context(
        self, pipeline: Pipeline, stage: Stage, interval: str, params: Mapping[str, Any], secrets: StageSecrets
    ) -> StageContext:
        times = times_of(interval_key(interval, pipeline.schedule), pipeline.schedule)
        return StageContext(
            pipeline=pipeline.name,
            stage=stage.name,
            interval=times.key,
            logical_date=times.start,
            partitions=(0,),
            seed=seed_of(pipeline.name, stage.id, times.key),
            params={**pipeline.params, **stage.params, **params},
            interval_end=times.end,
            files=stage_files(stage, Path(self.settings.project)),
            secrets=secrets,
        )

    def _frames(self, stage: Stage, inputs: Mapping[str, Given] | Given) -> dict[str, DataFrame]:
        names = stage.frames
        given = inputs if isinstance(inputs, Mapping) else {names[0]: inputs} if len(names) == 1 else {}
        for unknown in given.keys() - {*names}:
            raise UnknownName("input", unknown, names)
        for missing in [name for name in names if name not in given]:
            raise InvalidArgument("inputs", f"nothing for {missing}", f"rows, a frame or a file for {', '.join(names)}")
        return {name: self._frame(stage, name, given[name]) for name in names}

    def _frame(self, stage: Stage, name: str, given: Given) -> DataFrame:
        if is_frame(given):
            return given  # type: ignore[no-any-return]
        declared = stage.source.ddl if stage.source and stage.source.ddl != INFER else None
        if isinstance(given, str | Path):
            return self._of_file(Path(self.settings.project, given), declared)
        rows = list(given)
        if not rows and declared is None:
            wanted = f"a frame, such as spark.createDataFrame([], 'id bigint'), since {name} has no declared columns"
            raise InvalidArgument("inputs", f"no rows for {name}", wanted)
        return self._of_rows(rows, declared)

    def _of_file(self, path: Path, declared: str | None) -> DataFrame:
        if path.suffix == ".parquet":
            return self.spark.read.parquet(str(path))
        if path.suffix != ".csv":
            raise InvalidArgument("inputs", str(path), "a file whose name ends in .csv or .parquet")
        reader = self.spark.read.option("header", "true")
        return (reader.schema(declared) if declared else reader.option("inferSchema", "true")).csv(str(path))

    def _of_rows(self, rows: Sequence[Any], declared: str | None) -> DataFrame:
        if declared is None:
            return self.spark.createDataFrame(rows)
        schema = self.spark.createDataFrame([], declared).schema
        types = {each.name: each.dataType.typeName() for each in schema.fields}
        named = [row if isinstance(row, Mapping) else dict(zip(types, row, strict=True)) for row in rows]
        for unknown in {name for row in named for name in row} - types.keys():
            raise UnknownName("column", unknown, tuple(types))
        values = [tuple(_as_type(kind, row.get(name)) for name, kind in types.items()) for row in named]
        return self.spark.createDataFrame(values, schema)

    def _state(self, shape: Any, given: Given) -> DataFrame:
        if is_frame(given):
            return given  # type: ignore[no-any-return]
        ddl = ", ".join(f"`{column.name}` {column.type}" for column in shape.columns)
        return self._of_rows(list(given), ddl) if given else self.spark.createDataFrame([], state_schema(shape))


@dataclass(frozen=True)
class _Call:
    """A stage's function, ready to be called with frames."""

    spark: SparkSession
    stage: Stage
    function: Callable[..., DataFrame]
    context: StageContext

    def made(
        self, frames: Mapping[str, DataFrame], before: Mapping[str, DataFrame]
    ) -> tuple[list[Row], tuple[str, ...], dict[str, list[Row]], StageCounters]:
        """The rows, their columns, the rows of the state that is left, and what its function counts.

        :raises AssertionError: the function returned no frame of Spark's
        :raises StageError: what a run would raise of its columns
        """
        from pyspark.sql import functions as F

        state = StageState(before)
        context = replace(self.context, state=state, counters=StageCounters())
        given = {
            name: frame.withColumn(PARTITION, F.lit(0)) if self.stage.per_wave else frame
            for name, frame in frames.items()
        }
        frame = self.function(context, **given)
        if not is_frame(frame):
            raise AssertionError(f"{self.stage.name} returned {returned_text(frame)}")
        self._refuse_columns(frame)
        columns = tuple(name for name in frame.columns if name != PARTITION)
        after = {name: rows_of(kept) for name, kept in state.after.items()}
        return rows_of(frame.select(*map(_quoted, columns))), columns, after, context.counters

    def _refuse_columns(self, frame: DataFrame) -> None:
        if self.stage.output.stored:
            refuse_unusable_columns(self.stage.name, frame.schema)
            refuse_other_columns(self.stage, frame.schema)
            declared = as_declared(frame.schema, self.stage.output.columns)
            refuse_nulls(self.stage, {0: count_nulls(frame, declared)})


def _secrets(pipeline: Pipeline, given: Mapping[str, str]) -> StageSecrets:
    for unknown in given.keys() - {*pipeline.secrets}:
        raise UnknownName("secret", unknown, pipeline.secrets)
    return StageSecrets({**{name: f"test-{name}" for name in pipeline.secrets}, **given})


def rows_of(frame: DataFrame) -> list[Row]:
    """Rows as mappings; moments have a zone, UTC."""
    return frame.toArrow().to_pylist()  # type: ignore[no-any-return]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _as_type(kind: str, value: Any) -> Any:
    """Texts stand for decimals, days and moments, as in a file."""
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(str(value))
    if kind == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    return datetime.fromisoformat(value) if kind.startswith("timestamp") and isinstance(value, str) else value


def _why_uncut(stage: Stage) -> str | None:
    """Why a stage's rows are not cut: nobody knows which rows of two inputs would be in one partition."""
    forward = [edge for edge in stage.inputs if edge.exchange is Exchange.FORWARD]
    keyed = [edge for edge in stage.inputs if edge.exchange is Exchange.KEYED]
    if stage.states:
        return "it keeps state"
    if stage.is_script:
        return "it is a script, which is run once"
    if stage.per_wave:
        return "it is per_wave"
    if len(forward) > 1 or (forward and keyed):
        return "it reads partitions of several inputs together"
    return None if stage.source or forward or keyed else "it reads everything at once"


def _refuse_cut_that_matters(
    call: _Call, stage: Stage, frames: Mapping[str, DataFrame], whole: Sequence[Row], seed: int, cuts: int
) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]

    __tracebackhide__ = True
    keys = (
        {SOURCE: ()} if stage.source else {edge.given_as: edge.key for edge in stage.inputs if _is_cut(edge.exchange)}
    )
    tables = {name: frames[name].toArrow() for name in keys}
    for number in range(cuts):
        chance = Random(seed + number)  # noqa: S311  # the same cuts each time
        parts = _parts({name: tables[name].to_pylist() for name in keys}, keys, chance)
        found: list[Row] = []
        for places in parts:
            given = {
                name: call.spark.createDataFrame(
                    tables[name].take(pa.array(places[name], pa.int64())), frames[name].schema
                )
                for name in keys
            }
            found += call.made({**frames, **given}, {})[0]
        if differences := row_differences(whole, found):
            cut = "; ".join(f"{name}: {[len(places[name]) for places in parts]} rows" for name in keys)
            told = differences.text("of the whole", "of the parts")
            raise AssertionError(
                f"the answer of {stage.name} follows from how its rows were cut into partitions ({cut}):\n{told}\n"
                "A run calls it for each partition with that one's rows. Let it look at one row, or at the rows of its "
                "key, or read what it needs whole (`exchange: gather`, or `broadcast`); cuts=0 calls it once"
            )


def _is_cut(exchange: Exchange) -> bool:
    return exchange in (Exchange.FORWARD, Exchange.KEYED)


def _parts(
    rows: Mapping[str, Sequence[Row]], keys: Mapping[str, Sequence[str]], random: Random
) -> list[dict[str, list[int]]]:
    """For each part the places of its rows, by input. Rows of all inputs with one key are in one part."""
    groups = [
        (name, place, tuple(frozen(row[column]) for column in keys[name]) if keys[name] else (name, place))
        for name in rows
        for place, row in enumerate(rows[name])
    ]
    parts = []
    for members in random_cut([group for _, _, group in groups], random):
        chosen = [groups[member] for member in members]
        parts.append({name: [place for other, place, _ in chosen if other == name] for name in rows})
    return parts
