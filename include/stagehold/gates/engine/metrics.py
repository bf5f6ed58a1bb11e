"""Resolves Great Expectations' metrics for all partitions of a frame.

A metric is a function of a frame and of other metrics. Conditions and aggregates are expressions, the same for every
partition, so they are made once. Values are asked of a `GroupedFrame` for each partition in turn, which asks Spark
once. An expression that depends on a partition's value, as a z-score does on its mean, is put together from those of
all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from great_expectations.core.metric_function_types import MetricPartialFunctionTypeSuffixes
from great_expectations.execution_engine.sparkdf_batch_data import SparkDFBatchData
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import get_metric_provider
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.metric_configuration import MetricConfiguration, MetricConfigurationID
from pyspark.sql import functions as F

from stagehold.gates.engine.asked_partitions import Awaited, Calls, Look, require_of_suite
from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.own_metrics import own_metric
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
