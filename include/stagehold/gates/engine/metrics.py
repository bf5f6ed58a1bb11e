"""Resolves Great Expectations' metrics for all partitions of a frame.

A metric is a function of a frame and of other metrics. Conditions and aggregates are expressions, the same for every
partition, so they are made once. Values are asked of a `GroupedFrame` for each partition in turn, which asks Spark
once. An expression that depends on a partition's value, as a z-score does on its mean, is put together from those of
all partitions.

A few metrics, `OWN_METRICS`, are computed in another way than Great Expectations' for many partitions at once, with the
same results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypeSuffixes
from great_expectations.execution_engine.sparkdf_batch_data import SparkDFBatchData
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import get_metric_provider
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.metric_configuration import MetricConfiguration, MetricConfigurationID
from pyspark.sql import functions as F

from stagehold.gates.engine.asked_partitions import Awaited, Calls, Look, require_of_suite
from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.internals import count_unexpected, has_window
from stagehold.gates.engine.quantiles import at_ranks
from stagehold.lake.store.columns import quoted

EXPRESSIONS = tuple(f".{kind.value}" for kind in MetricPartialFunctionTypeSuffixes)
BATCH = "partition"  # the batch id in the domain of all metrics


def engine_of(frame: GroupedFrame) -> SparkDFExecutionEngine:
    """An engine that knows this frame alone."""
    engine = SparkDFExecutionEngine(spark=frame.sparkSession, persist=False)
    engine.load_batch_data(BATCH, SparkDFBatchData(engine, frame))
    return engine


class Metrics:
    """Values of metrics, found when somebody asks for them: those that are the ``same`` for all partitions, the ``own``
    values of each partition, and why others could not be found.
    """

    def __init__(self, frame: GroupedFrame, engine: SparkDFExecutionEngine) -> None:
        self.frame, self.engine = frame, engine
        self.same: dict[MetricConfigurationID, Any] = {}
        self.own: dict[MetricConfigurationID, dict[int, Any]] = {}
        self.failed: dict[MetricConfigurationID, Exception] = {}

    def resolve(self, metrics: Iterable[MetricConfiguration]) -> None:
        """Find all of the metrics, or why they cannot be found. One query finds all that is asked of the same rows."""
        waiting = list(metrics)
        while waiting:
            waiting = [metric for metric in waiting if self._is_awaited(metric)]
            self.frame.partitions.ask_wanted()

    def value(self, metric: MetricConfiguration, partition: int) -> Any:
        """The value of a metric for a partition.

        :raises Awaited: the value is known after the next query.
        """
        if metric.id in self.failed:
            raise self.failed[metric.id]
        if metric.id not in self.same and metric.id not in self.own:
            self._find(metric)
        return self.same[metric.id] if metric.id in self.same else self.own[metric.id][partition]

    def look(self, metric: MetricConfiguration, partition: int) -> Any:
        """The value, for a function whose answer follows from it."""
        value = self.value(metric, partition)
        if metric.id in self.own:
            self.frame.partitions.seen.append(Look(metric.id, self.own[metric.id].__getitem__))
        return value

    def _is_awaited(self, metric: MetricConfiguration) -> bool:
        try:
            self.value(metric, self.frame.partitions.numbers[0])
        except Awaited:
            return True
        except Exception as error:  # noqa: BLE001 - somebody's code, or what Spark says of it
            require_of_suite(error)
            self.failed[metric.id] = error
        return False

    def _find(self, metric: MetricConfiguration) -> None:
        with self.frame.partitions.noting():
            if get_metric_provider(metric.metric_name, self.engine)[1] is None:
                self._aggregate(metric)
            else:
                self._call_for_all(metric)

    def _call_for_all(self, metric: MetricConfiguration) -> None:
        """Find a metric by calling its code. Code that looks at nothing of a partition has the same answer for all."""
        numbers = self.frame.partitions.numbers
        calls = Calls(self.frame.partitions, lambda partition: self._call(metric, partition))
        first = calls.answer(numbers[0])
        if not calls.looked:
            self.same[metric.id] = first
            return
        values = {numbers[0]: first, **{number: calls.answer(number) for number in numbers[1:]}}
        if metric.metric_name.endswith(EXPRESSIONS):
            self.same[metric.id] = self._together(values)
        else:
            self.own[metric.id] = values

    def _call(self, metric: MetricConfiguration, partition: int) -> Any:
        """The metric, from the code that defines it."""
        provider, theirs = get_metric_provider(metric.metric_name, self.engine)
        return own_metric(metric.metric_name, theirs)(
            cls=provider,
            execution_engine=self.engine,
            metric_domain_kwargs=metric.metric_domain_kwargs,
            metric_value_kwargs=metric.metric_value_kwargs,
            metrics=self._given(metric, partition),
            runtime_configuration={},
        )

    def _given(self, metric: MetricConfiguration, partition: int) -> _Given:
        return _Given(metric.metric_dependencies or {}, self, partition)

    def _together(self, values: Mapping[int, Any]) -> Any:
        """One expression that is, in each partition's rows, the expression of that partition."""
        first = next(iter(values.values()))
        return (_choice(self.frame, {partition: value[0] for partition, value in values.items()}), *first[1:])

    def _aggregate(self, metric: MetricConfiguration) -> None:
        given = self._given(metric, self.frame.partitions.numbers[0])
        aggregate, domain, _ = given["metric_partial_fn"]
        values = self.engine.get_domain_records(dict(domain)).agg(aggregate).each()
        self.own[metric.id] = {partition: _serializable(row[0]) for partition, (row,) in values.items()}


class _Given(dict[str, MetricConfiguration]):
    """The metrics that another metric may look at, by name. Each is found when it is looked at: nearly all may look at
    the number of rows, and few do.
    """

    def __init__(self, depends: Mapping[str, MetricConfiguration], metrics: Metrics, partition: int) -> None:
        super().__init__(depends)
        self.metrics, self.partition = metrics, partition

    def __getitem__(self, name: str) -> Any:
        return self.metrics.look(super().__getitem__(name), self.partition)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - which does not find a metric


def _serializable(value: Any) -> Any:
    """The value as Great Expectations makes it serializable. Decimals are converted here: for each of them it would
    read the source code of all callers to see who asks.
    """
    return float(value) if isinstance(value, Decimal) else convert_to_json_serializable(data=value)


def _choice(frame: GroupedFrame, expressions: Mapping[int, Any]) -> Any:
    """The expression of each row's own partition, chosen by halves, so that few of many partitions are compared for a
    row.
    """
    numbers = sorted(expressions)
    if len(numbers) == 1:
        return expressions[numbers[0]]
    half = numbers[len(numbers) // 2]
    low = {number: expressions[number] for number in numbers if number < half}
    high = {number: expressions[number] for number in numbers if number >= half}
    is_low = F.col(quoted(frame.partitions.column)) < half
    return F.when(is_low, _choice(frame, low)).otherwise(_choice(frame, high))


NOT_IN_SET = "column.distinct_values.not_in_set"
BITS_OF_ONE, SHIFT = 64, 6  # of a bigint
TIMES, GROUP, ROWS, BITS = "__times", "__group", "__rows", "__bits"  # columns of our own
WHOLE_NUMBERS = frozenset(["tinyint", "smallint", "int", "bigint"])
FOR_ONE_TASK = 1_000_000  # rows to compare
MOST_COMBINATIONS = 2**62  # combinations of values
WORTH_IT = 4  # rows for each group; with fewer it is as much work as to compare the rows


def median(execution_engine: Any, metric_domain_kwargs: Mapping[str, Any], **_: Any) -> float:
    """Great Expectations asks for quantiles that depend on the number of rows, so other ones for each partition."""
    frame, _compute, named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
    column = named["column"]

    def middle(count: int) -> list[int]:
        return [math.floor((count + 1) / 2), math.ceil((count + 1) / 2)]

    found = frame.partitions.once((*frame.steps, ("median", column)), lambda: at_ranks(frame, column, middle))
    return float(np.mean(found)) if found else float("nan")


def histogram(
    execution_engine: Any, metric_domain_kwargs: Mapping[str, Any], metric_value_kwargs: Mapping[str, Any], **_: Any
) -> list[int]:
    """Great Expectations uses a transformer of Spark ML, which needs a frame of Spark's own. The last bin includes its
    upper bound.
    """
    frame, _compute, _named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
    assert isinstance(frame, GroupedFrame)
    column, bounds = F.col(metric_domain_kwargs["column"]).cast("double"), list(metric_value_kwargs["bins"])
    pairs = list(pairwise(bounds))
    inside = [(column >= F.lit(low)) & (column < F.lit(high)) for low, high in pairs[:-1]]
    inside += [(column >= F.lit(low)) & (column <= F.lit(high)) for low, high in pairs[-1:]]
    (row,) = frame.agg(*(F.count_if(condition) for condition in inside)).collect()
    return [int(count) for count in row]


def count_repeated(execution_engine: Any, metrics: Mapping[str, Any], **_: Any) -> int:
    """Great Expectations counts by a window, which sorts all rows; counting groups does not sort."""
    _condition, compute, named = metrics["unexpected_condition"]
    frame = execution_engine.get_domain_records({**compute, **named})
    columns = [named["column"]] if "column" in named else named["column_list"]
    steps = (*frame.steps, ("repeated", *columns))
    return int(frame.partitions.once(steps, lambda: repeated(frame, columns)))


def unexpected(execution_engine: Any, metrics: dict[str, Any], **others: Any) -> int:
    """Great Expectations adds a column to filter by, which is necessary if the condition is a window. Other conditions
    are counted in the query over all rows.
    """
    condition, compute, named = metrics["unexpected_condition"]
    if has_window(condition):
        return int(count_unexpected(execution_engine=execution_engine, metrics=metrics, **others))
    return int(execution_engine.get_domain_records({**compute, **named}).filter(condition).count())


def not_in_set(found: str, nothing: Any) -> Callable[..., Any]:
    """A metric of rows with a value outside of the set; ``nothing`` is its value if there are none, as usual."""

    def metric(
        execution_engine: Any,
        metric_domain_kwargs: Mapping[str, Any],
        metric_value_kwargs: Mapping[str, Any],
        **more: Any,
    ) -> Any:
        frame, _compute, named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
        column, values = F.col(named["column"]), metric_value_kwargs.get("value_set")
        strangers = frame.filter(column.isNotNull() & ~column.isin(values) if values else column.isNotNull())
        if not any(row[0] for (row,) in strangers.agg(F.count(F.lit(1))).each().values()):
            return nothing
        return get_metric_provider(found, execution_engine)[1](
            execution_engine=execution_engine,
            metric_domain_kwargs=metric_domain_kwargs,
            metric_value_kwargs=metric_value_kwargs,
            **more,
        )

    return metric


OWN_METRICS: Mapping[str, Callable[..., Any]] = {
    "column.median": median,
    "column.histogram": histogram,
    "column_values.unique.unexpected_count": count_repeated,
    "compound_columns.unique.unexpected_count": count_repeated,
    NOT_IN_SET: not_in_set(NOT_IN_SET, []),
    f"{NOT_IN_SET}.count": not_in_set(f"{NOT_IN_SET}.count", 0),
}


def own_metric(name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Our way to compute the metric; Great Expectations' way if we have none."""
    return OWN_METRICS.get(name, unexpected if theirs is count_unexpected else theirs)


def repeated(frame: GroupedFrame, columns: Sequence[str], for_one_task: int = FOR_ONE_TASK) -> Mapping[int, int]:
    """How many rows of each partition have values that other rows of it also have.

    Nearly always there are none. For whole numbers that lie close together, as keys do, that is seen without bringing
    equal rows together: 64 neighbouring numbers are a group, and each row sets a bit of its group. If no value is there
    twice, there are as many bits as rows.

    :param for_one_task: how many rows a task of Spark compares.
    :raises Awaited: for the range of values, or for the number itself.
    """
    kinds = dict(frame.dtypes)
    whole = [F.col(quoted(column)).cast("bigint") for column in columns if kinds.get(column) in WHOLE_NUMBERS]
    limits = [limit(number) for number in whole for limit in (F.min, F.max)]
    known = [row for (row,) in frame.agg(F.count(F.lit(1)), *limits).each().values()]
    if len(whole) == len(columns) and _all_differ(frame, columns, known):
        return dict.fromkeys(frame.partitions.numbers, 0)
    tasks = sum(row[0] for row in known) // for_one_task + 1
    times = frame.spread(tasks, *columns).groupBy(*columns).agg(F.count(F.lit(1)).alias(TIMES))
    found = times.filter(F.col(TIMES) > 1).agg(F.sum(TIMES)).each()
    return {partition: row[0] or 0 for partition, (row,) in found.items()}


def _all_differ(frame: GroupedFrame, columns: Sequence[str], known: Sequence[Sequence[Any]]) -> bool:
    """Whether it is certain that all rows differ. False as well if it would be too much work to find out.

    :param known: how many rows each partition has, and the smallest and the largest number of each column.
    """
    ranges = {name: [row[2 * at + 1 : 2 * at + 3] for row in known] for at, name in enumerate(columns)}
    whole = sorted(((name, *_low_and_values(limits)) for name, limits in ranges.items()), key=lambda column: -column[2])
    (widest, _, values), *others = whole
    inner = prod(values for _, _, values in others)
    groups = sum(_span(limits) * inner // BITS_OF_ONE + 1 for limits in ranges[widest])
    if inner * values > MOST_COMBINATIONS or groups * WORTH_IT > sum(row[0] for row in known):
        return False
    combined = F.lit(0).cast("bigint")
    for name, low, values in whole:
        offset = F.col(quoted(name)).cast("bigint") - F.lit(low).cast("bigint")
        combined = combined * F.lit(values).cast("bigint") + F.coalesce(offset, F.lit(values - 1))
    rows = frame.withColumn(GROUP, combined)
    bit = F.expr(f"shiftleft(1L, cast({GROUP} & {BITS_OF_ONE - 1} AS int))")
    grouped = rows.groupBy(F.shiftright(GROUP, SHIFT)).agg(F.count(F.lit(1)).alias(ROWS), F.bit_or(bit).alias(BITS))
    surplus = grouped.agg(F.sum(F.col(ROWS) - F.bit_count(BITS)))
    return not any(row[0] for (row,) in surplus.each().values())


def _low_and_values(ranges: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """The lowest number of a column, and how many values there are from it on; null counts as one of them."""
    filled = [limits for limits in ranges if limits[0] is not None]
    low, high = min((limits[0] for limits in filled), default=0), max((limits[1] for limits in filled), default=-1)
    return low, high - low + 2


def _span(limits: Sequence[Any]) -> int:
    return 1 if limits[0] is None else int(limits[1] - limits[0] + 2)
