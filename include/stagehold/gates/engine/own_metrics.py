"""Metrics that have to be asked otherwise of many partitions at once: what they give is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from great_expectations.core.metric_domain_types import MetricDomainTypes
from pyspark.sql import functions as F

from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.lake.columns import quoted

TIMES = "__times"  # a column of our own


def median(execution_engine: Any, metric_domain_kwargs: Mapping[str, Any], **_: Any) -> float:
    """Great Expectations asks for quantiles that follow from the number of rows, other ones for each partition."""
    frame, _compute, named = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
    value = F.col(quoted(named["column"])).cast("double")
    numbers = F.sort_array(F.collect_list(F.when(~F.isnan(value), value)))
    middle = (F.size(numbers) + 1) / 2
    found = [F.get(numbers, to(middle).cast("int") - 1) for to in (F.floor, F.ceil)]
    (row,) = frame.agg(*found).collect()
    return float("nan") if row[0] is None else float(np.mean(list(row)))


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


def repeated(execution_engine: Any, metrics: Mapping[str, Any], **_: Any) -> int:
    """Great Expectations counts by a window, which sorts all rows; counting groups does not."""
    _condition, compute, named = metrics["unexpected_condition"]
    frame = execution_engine.get_domain_records({**compute, **named})
    columns = [named["column"]] if "column" in named else named["column_list"]
    times = frame.groupBy(*columns).agg(F.count(F.lit(1)).alias(TIMES)).filter(F.col(TIMES) > 1)
    (row,) = times.agg(F.sum(TIMES)).collect()
    return int(row[0] or 0)


OWN_METRICS: Mapping[str, Callable[..., Any]] = {
    "column.median": median,
    "column.histogram": histogram,
    "column_values.unique.unexpected_count": repeated,
    "compound_columns.unique.unexpected_count": repeated,
}
