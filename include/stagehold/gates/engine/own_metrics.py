"""Metrics that have to be asked otherwise of many partitions at once: what they give is the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.expectations.registry import get_metric_provider
from pyspark.sql import functions as F

from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.internals import count_unexpected, has_window
from stagehold.gates.engine.quantiles import at_ranks
from stagehold.gates.engine.repeated import repeated

NOT_IN_SET = "column.distinct_values.not_in_set"


def median(execution_engine: Any, metric_domain_kwargs: Mapping[str, Any], **_: Any) -> float:
    """Great Expectations asks for quantiles that follow from the number of rows, other ones for each partition."""
    frame, _compute, named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
    column = named["column"]

    def middle(count: int) -> list[int]:
        return [math.floor((count + 1) / 2), math.ceil((count + 1) / 2)]

    found = frame.partitions.once((*frame.steps, ("median", column)), lambda: at_ranks(frame, column, middle))
    return float(np.mean(found)) if found else float("nan")


def histogram(
    execution_engine: Any, metric_domain_kwargs: Mapping[str, Any], metric_value_kwargs: Mapping[str, Any], **_: Any
) -> list[int]:
    """Great Expectations uses a transformer of Spark ML, which wants a frame of Spark's own. The last bin has its upper
    bound as well.
    """
    frame, _compute, _named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
    assert isinstance(frame, GroupedFrame)
    column, bounds = F.col(metric_domain_kwargs["column"]).cast("double"), list(metric_value_kwargs["bins"])
    pairs = list(pairwise(bounds))
    inside = [(column >= F.lit(low)) & (column < F.lit(high)) for low, high in pairs[:-1]]
    inside += [(column >= F.lit(low)) & (column <= F.lit(high)) for low, high in pairs[-1:]]
    (row,) = frame.agg(*(F.count_if(one) for one in inside)).collect()
    return [int(count) for count in row]


def count_repeated(execution_engine: Any, metrics: Mapping[str, Any], **_: Any) -> int:
    """Great Expectations counts by a window, which sorts all rows; counting groups does not."""
    _condition, compute, named = metrics["unexpected_condition"]
    frame = execution_engine.get_domain_records({**compute, **named})
    columns = [named["column"]] if "column" in named else named["column_list"]
    steps = (*frame.steps, ("repeated", *columns))
    return int(frame.partitions.once(steps, lambda: repeated(frame, columns)))


def unexpected(execution_engine: Any, metrics: dict[str, Any], **others: Any) -> int:
    """Great Expectations adds a column to filter by, as it must if the condition is a window; else it can be counted
    along with what is asked of all rows.
    """
    condition, compute, named = metrics["unexpected_condition"]
    if has_window(condition):
        return int(count_unexpected(execution_engine=execution_engine, metrics=metrics, **others))
    return int(execution_engine.get_domain_records({**compute, **named}).filter(condition).count())


def not_in_set(found: str, nothing: Any) -> Callable[..., Any]:
    """That metric of rows with a value outside of the set; ``nothing`` if there is none, as nearly always."""

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
    """How the metric is asked: as Great Expectations does, if there is no other way."""
    return OWN_METRICS.get(name, unexpected if theirs is count_unexpected else theirs)
