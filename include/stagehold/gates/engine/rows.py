"""Which rows of each partition an expectation does not expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from great_expectations.expectations.expectation import Expectation
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validation_graph import ValidationGraph
from pyspark.sql import functions as F

from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.metrics import BATCH, Metrics, engine_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONDITION = ".condition"  # how a metric ends that says of each row whether it is not expected
UNEXPECTED = "__unexpected"  # a column of our own
COUNTS = {"result_format": "BOOLEAN_ONLY"}


class NotOfRows(Exception):
    """The expectation does not say of each row whether it is expected."""


def unexpected_rows(frame: GroupedFrame, expectation: Expectation) -> DataFrame:
    """Those of all partitions, with all columns of the frame, hidden ones too.

    :raises NotOfRows: it is about a whole partition.
    """
    engine = engine_of(frame)
    wanted = f"{getattr(expectation, 'map_metric', None)}{CONDITION}"
    found = (one for one in _metrics(_of_batch(expectation), engine) if one.metric_name == wanted)
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


def _metrics(expectation: Expectation, engine: Any) -> Iterator[MetricConfiguration]:
    """All that it is judged by."""
    runtime = {"result_format": COUNTS}
    needed = expectation.get_validation_dependencies(engine, runtime).get_metric_configurations()
    graph = ValidationGraph(execution_engine=engine)
    for one in needed:
        graph.build_metric_dependency_graph(one, runtime)
    return (below for one in needed for below in _with_dependencies(one))


def _with_dependencies(metric: MetricConfiguration) -> Iterator[MetricConfiguration]:
    yield metric
    for one in (metric.metric_dependencies or {}).values():
        yield from _with_dependencies(one)


def _of_batch(expectation: Expectation) -> Expectation:
    configuration = expectation.configuration
    configuration.kwargs["batch_id"] = BATCH
    return configuration.to_domain_obj()
