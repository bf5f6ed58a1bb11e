"""Metrics that we compute in another way for many partitions at once, with Great Expectations' results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.expectations.registry import get_metric_provider
from pyspark.sql import functions as F

from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.internals import count_unexpected, has_window
from stagehold.gates.engine.quantiles import at_ranks
from stagehold.lake.store.columns import quoted

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
