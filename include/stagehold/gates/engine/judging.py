"""Judges each partition of a frame by expectations, as Great Expectations' Spark engine judges it alone, and finds the
unexpected rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from great_expectations.expectations.expectation import Expectation
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validation_graph import ValidationGraph
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from stagehold.gates.engine.asked_partitions import Calls, require_of_suite
from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.internals import verdict
from stagehold.gates.engine.metrics import BATCH, Metrics, engine_of
from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Wanted = Mapping[str, MetricConfiguration]  # by name
Variant = tuple[Expectation, tuple[int, ...]]  # an expectation with its arguments for these partitions
# How many variants are judged together, each for the partitions of all of them, which is work for the processor.
ASKED = 50  # while each would have a query of its own, which can be one query for all
ANSWERED = 4  # when all queries are answered
CONDITION = ".condition"  # how the name of a metric ends that says of each row whether it is unexpected
UNEXPECTED = "__unexpected"  # a column of our own
BATCH_IN_SQL = "{batch}"  # Great Expectations replaces it by a name
# Between these brackets Spark's grammar has a query and no other statement; the line's end closes a comment.
ONLY_A_QUERY = "EXPLAIN WITH asked AS (\n{}\n) SELECT * FROM asked"
COUNTS = {"result_format": "BOOLEAN_ONLY"}
SAMPLES = {"result_format": "BASIC", "partial_unexpected_count": 20}


@dataclass(frozen=True)
class Judged:
    """Great Expectations' result for a partition."""

    partition: int
    success: bool
    result: Mapping[str, Any]


def judge_frame(
    frame: GroupedFrame, expectations: Mapping[int, Expectation], *, samples: bool = True
) -> tuple[Mapping[int, Sequence[Judged]], Mapping[int, Exception]]:
    """The results of each expectation for each partition of the frame; or, by expectation, why there are none.

    :param samples: whether failed results show unexpected values.
    """
    return _Judging(frame).judge(
        {at: _of_batch(expectation) for at, expectation in expectations.items()}, samples=samples
    )


class _Judging:
    def __init__(self, frame: GroupedFrame) -> None:
        self._partitions, self._engine = frame.partitions, engine_of(frame)
        self._metrics = Metrics(frame, self._engine)
        self._unjudged: dict[int, Exception] = {}

    def judge(
        self, expectations: Mapping[int, Expectation], *, samples: bool
    ) -> tuple[Mapping[int, Sequence[Judged]], Mapping[int, Exception]]:
        found = self._judge(expectations, COUNTS)
        failed = {
            at: expectations[at] for at, results in found.items() if not all(result.success for result in results)
        }
        if samples and failed:
            found |= {at: _where_failed(found[at], sampled) for at, sampled in self._judge(failed, SAMPLES).items()}
        return found, self._unjudged

    def _judge(self, expectations: Mapping[int, Expectation], asked: Mapping[str, Any]) -> dict[int, Sequence[Judged]]:
        wanted: dict[int, Wanted] = {}
        for at, expectation in expectations.items():
            with self._noting(at):
                wanted[at] = self._wanted(expectation, asked)
        self._metrics.resolve(metric for metrics in wanted.values() for metric in metrics.values())
        found: dict[int, Sequence[Judged]] = {}
        for at, metrics in wanted.items():
            with self._noting(at):
                found[at] = list(self._results(expectations[at], metrics))
        return found

    def _wanted(self, expectation: Expectation, asked: Mapping[str, Any]) -> Wanted:
        return _metrics(expectation, self._engine, asked)

    def _results(self, expectation: Expectation, wanted: Wanted) -> Iterator[Judged]:
        def said(partition: int) -> Any:
            metrics = {name: self._metrics.look(metric, partition) for name, metric in wanted.items()}
            return verdict(expectation, metrics, SAMPLES, self._engine)

        calls = Calls(self._partitions, said)
        for partition in self._partitions.numbers:
            result = calls.answer(partition)
            yield Judged(partition, bool(result["success"]), result.get("result") or {})

    @contextmanager
    def _noting(self, at: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - somebody's code
            require_of_suite(error)
            self._unjudged[at] = error


def _where_failed(counted: Sequence[Judged], sampled: Sequence[Judged]) -> Sequence[Judged]:
    return [first if first.success else second for first, second in zip(counted, sampled, strict=True)]


def _of_batch(expectation: Expectation) -> Expectation:
    configuration = expectation.configuration
    configuration.kwargs["batch_id"] = BATCH
    return configuration.to_domain_obj()


def sampled_rows(
    frame: GroupedFrame, expectation: Expectation, columns: Sequence[str], most: int
) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """These columns of at most so many unexpected rows of each partition of the frame. Rows with the lowest values come
    first, so that asking again gives the same rows.

    :raises NotOfRows: the expectation is about a whole partition.
    """
    rows, partition = unexpected_rows(frame, expectation), frame.partitions.column
    whole = [quoted(column) if column in rows.columns else column for column in columns]  # others are parts of one
    named = [F.col(column).alias(str(at)) for at, column in enumerate(whole)]
    order = Window.partitionBy(partition).orderBy(*map(str, range(len(columns))))
    told = rows.select(partition, *named).withColumn(UNEXPECTED, F.row_number().over(order))
    found: dict[int, list[Mapping[str, Any]]] = {}
    for number, *values, _ in told.filter(F.col(UNEXPECTED) <= most).orderBy(partition, UNEXPECTED).collect():
        found.setdefault(number, []).append(dict(zip(columns, map(_plain, values), strict=True)))
    return found


def _plain(value: Any) -> Any:
    """The value as JSON can have it."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


class NotOfRows(Exception):
    """The expectation does not say of each row whether it is expected."""


def unexpected_rows(frame: GroupedFrame, expectation: Expectation) -> DataFrame:
    """The unexpected rows of all partitions, with all columns of the frame, hidden ones too.

    :raises NotOfRows: the expectation is about a whole partition.
    """
    engine = engine_of(frame)
    wanted = f"{getattr(expectation, 'map_metric', None)}{CONDITION}"
    needed = _metrics(_of_batch(expectation), engine, COUNTS).values()
    found = (below for one in needed for below in _with_dependencies(one) if below.metric_name == wanted)
    metric = next(found, None)
    if metric is None:
        raise NotOfRows
    metrics = Metrics(frame, engine)
    metrics.resolve([metric])  # a deviation may have to be known first
    condition, domain, named = metrics.value(metric, frame.partitions.looked_at)
    records = engine.get_domain_records({**domain, **named})
    assert isinstance(records, GroupedFrame)
    marked = records.withColumn(UNEXPECTED, condition)  # windows cannot be filtered by
    return marked.filter(F.col(UNEXPECTED)).frame.drop(UNEXPECTED)


def _metrics(expectation: Expectation, engine: Any, asked: Mapping[str, Any]) -> Wanted:
    """The metrics that the expectation needs, by name, with all that these metrics depend on."""
    runtime = {"result_format": dict(asked)}
    needed = expectation.get_validation_dependencies(engine, runtime)
    graph = ValidationGraph(execution_engine=engine)
    for metric in needed.get_metric_configurations():
        graph.build_metric_dependency_graph(metric, runtime)
    return dict(needed.metric_configurations)


def _with_dependencies(metric: MetricConfiguration) -> Iterator[MetricConfiguration]:
    yield metric
    for dependency in (metric.metric_dependencies or {}).values():
        yield from _with_dependencies(dependency)


def sql_problem(expectation: Expectation, spark: SparkSession) -> str | None:
    """Why Spark may not be asked the SQL of an expectation; None if it has no SQL, or its SQL is one query.

    The SQL is parsed and not carried out, so names that do not exist are found later.
    """
    query = getattr(expectation, "unexpected_rows_query", None)
    if not isinstance(query, str):
        return None
    try:
        spark.sql(ONLY_A_QUERY.format(query.replace(BATCH_IN_SQL, "batch")))
    except ParseException as error:
        said = str(error).strip().splitlines()[0]
        return f"unexpected_rows_query is not one query (SELECT, or WITH and SELECT) that only reads: {said}"
    except PySparkException:
        pass  # it is a query, and its errors are told when it is carried out
    return None


def judge_variants(
    frame: GroupedFrame, variants: Mapping[int, Sequence[Variant]], at_once: int
) -> tuple[Mapping[int, Mapping[int, Judged]], Mapping[int, Exception]]:
    """The results of each expectation whose arguments differ between partitions, for each partition of its variants; or
    why there are none. This takes as few queries as if the arguments were the same.

    Nothing is asked again that was asked of all partitions of the frame before. No result shows values of rows.

    :param at_once: `ASKED` or `ANSWERED`.
    """
    judged: dict[int, dict[int, Judged]] = {at: {} for at in variants}
    unjudged: dict[int, Exception] = {}
    for block in _blocks(variants, at_once):
        numbers = sorted({number for _, (_, own) in block for number in own})
        asked = {place: expectation for place, (_, (expectation, _)) in enumerate(block)}
        found, failed = judge_frame(_among(frame, numbers), asked, samples=False)
        for place, results in found.items():
            at, (_, own) = block[place]
            judged[at].update((result.partition, result) for result in results if result.partition in own)
        unjudged |= {block[place][0]: why for place, why in failed.items()}
    return judged, unjudged


def _blocks(variants: Mapping[int, Sequence[Variant]], at_once: int) -> Iterator[Sequence[tuple[int, Variant]]]:
    """Variants with the places of their expectations; those of the same partitions are together."""
    every = [(at, variant) for at, own in variants.items() for variant in own]
    every.sort(key=lambda placed: (placed[1][1], placed[0]))
    for start in range(0, len(every), at_once):
        yield every[start : start + at_once]


def _among(frame: GroupedFrame, numbers: Sequence[int]) -> GroupedFrame:
    """The frame for these partitions alone. Its answers are about them, so it keeps its own."""
    return replace(frame, partitions=frame.partitions.among(numbers))
