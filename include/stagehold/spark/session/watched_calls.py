"""Lets a clock see every call that a Spark Connect client makes, and what the server says of its progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grpc import (  # type: ignore[import-untyped]
    StreamUnaryClientInterceptor,
    UnaryStreamClientInterceptor,
    UnaryUnaryClientInterceptor,
)

from stagehold.model.pulse import QueryStage
from stagehold.spark.session.watchdog import Call, CallClock


class CallWatcher(UnaryUnaryClientInterceptor, UnaryStreamClientInterceptor, StreamUnaryClientInterceptor):  # type: ignore[misc]
    """Executions tell their progress. Calls that plan (schema, explain) say nothing until they end."""

    def __init__(self, clock: CallClock, *, own_queries: bool = False) -> None:
        """:param own_queries: they are ours, so how their stages stand is told nobody."""
        self._clock, self._own_queries = clock, own_queries

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        with self._clock.waiting(_name(details)):
            return continuation(details, request)

    intercept_stream_unary = intercept_unary_unary

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        answers = continuation(details, request)
        return WatchedAnswers(answers, self._clock, _name(details), request.operation_id, self._own_queries)


class Deadline(UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """A deadline for making and releasing sessions: a server that does not do it soon is as good as gone."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details._replace(timeout=self._seconds), request)


class WatchedAnswers:
    """The answers to an execution; each but a report of progress that says nothing new is progress."""

    def __init__(self, answers: Any, clock: CallClock, name: str, operation: str, own_query: bool = False) -> None:
        self._answers, self._clock, self._name, self._operation = answers, clock, name, operation
        self._own_query = own_query

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._clock.waiting(self._name, self._operation) as call:
            answer = next(self._answers)
            if _is_progress(answer, call):
                self._clock.progressed(call)
            if answer.HasField("execution_progress") and not self._own_query:
                self._clock.tell_stages(_stages(answer.execution_progress))
            for observed in answer.observed_metrics:
                self._clock.tell_observed(observed.name, [_whole_number(value) for value in observed.values])
            return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answers, name)


def _is_progress(answer: Any, call: Call) -> bool:
    if not answer.HasField("execution_progress"):
        return True
    said, before = answer.execution_progress.SerializeToString(deterministic=True), call.seen
    call.seen = said
    return bool(said != before)


def _stages(progress: Any) -> list[QueryStage]:
    return [
        QueryStage(stage.stage_id, stage.num_tasks, stage.num_completed_tasks, stage.input_bytes_read)
        for stage in progress.stages
    ]


def _whole_number(literal: Any) -> int:
    """NULL, as the sum of no rows is, is 0; so is what is no whole number, of which nobody asked us for."""
    return int(literal.long) if literal.WhichOneof("literal_type") == "long" else 0


def _name(details: Any) -> str:
    """The name of a call: `ExecutePlan` of gRPC's `/spark.connect.SparkConnectService/ExecutePlan`."""
    return str(details.method).rpartition("/")[2]
