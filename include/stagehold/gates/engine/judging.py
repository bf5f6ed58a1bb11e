"""Judges each partition of a frame by expectations, as Great Expectations' Spark engine judges it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from great_expectations.expectations.expectation import Expectation
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validation_graph import ValidationGraph

from stagehold.gates.engine.blame import require_of_suite
from stagehold.gates.engine.calls import Calls
from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.internals import verdict
from stagehold.gates.engine.metrics import BATCH, Metrics, engine_of

Wanted = Mapping[str, MetricConfiguration]  # by name
COUNTS = {"result_format": "BOOLEAN_ONLY"}
SAMPLES = {"result_format": "BASIC", "partial_unexpected_count": 20}


@dataclass(frozen=True)
class Judged:
    """What Great Expectations says of a partition."""

    partition: int
    success: bool
    result: Mapping[str, Any]


def judge_frame(
    frame: GroupedFrame, expectations: Mapping[int, Expectation], *, samples: bool = True
) -> tuple[Mapping[int, Sequence[Judged]], Mapping[int, Exception]]:
    """A result of each expectation for each partition of the frame; or none of an expectation, and why.

    :param samples: whether results of what failed show values that were not expected.
    """
    return _Judging(frame).judge({at: _of_batch(one) for at, one in expectations.items()}, samples=samples)


class _Judging:
    def __init__(self, frame: GroupedFrame) -> None:
        self._partitions, self._engine = frame.partitions, engine_of(frame)
        self._metrics = Metrics(frame, self._engine)
        self._unjudged: dict[int, Exception] = {}

    def judge(
        self, expectations: Mapping[int, Expectation], *, samples: bool
    ) -> tuple[Mapping[int, Sequence[Judged]], Mapping[int, Exception]]:
        found = self._judge(expectations, COUNTS)
        failed = {at: expectations[at] for at, some in found.items() if not all(one.success for one in some)}
        if samples and failed:
            found |= {at: _where_failed(found[at], some) for at, some in self._judge(failed, SAMPLES).items()}
        return found, self._unjudged

    def _judge(self, expectations: Mapping[int, Expectation], asked: Mapping[str, Any]) -> dict[int, Sequence[Judged]]:
        wanted: dict[int, Wanted] = {}
        for at, one in expectations.items():
            with self._noting(at):
                wanted[at] = self._wanted(one, asked)
        self._metrics.resolve(one for some in wanted.values() for one in some.values())
        found: dict[int, Sequence[Judged]] = {}
        for at, some in wanted.items():
            with self._noting(at):
                found[at] = list(self._results(expectations[at], some))
        return found

    def _wanted(self, expectation: Expectation, asked: Mapping[str, Any]) -> Wanted:
        """By name, with all that they depend on."""
        runtime = {"result_format": dict(asked)}
        needed = expectation.get_validation_dependencies(self._engine, runtime)
        graph = ValidationGraph(execution_engine=self._engine)
        for one in needed.get_metric_configurations():
            graph.build_metric_dependency_graph(one, runtime)
        return dict(needed.metric_configurations)

    def _results(self, expectation: Expectation, wanted: Wanted) -> Iterator[Judged]:
        def said(partition: int) -> Any:
            metrics = {name: self._metrics.look(one, partition) for name, one in wanted.items()}
            return verdict(expectation, metrics, SAMPLES, self._engine)

        calls = Calls(self._partitions, said)
        for partition in self._partitions.numbers:
            one = calls.answer(partition)
            yield Judged(partition, bool(one["success"]), one.get("result") or {})

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
