"""Shows a session's watch what a client asks besides executions, which pyspark shows by a hook of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from grpc import StreamUnaryClientInterceptor, UnaryUnaryClientInterceptor  # type: ignore[import-untyped]


class RequestWatch(Protocol):
    """May hand on another request than it was shown."""

    def on_execute_plan(self, request: Any) -> Any: ...
    def on_analysis(self, request: Any) -> Any: ...
    def on_settings(self, operation: Any) -> None: ...
    def on_artifact(self, name: str) -> None: ...
    def on_removal(self, relation_id: str) -> None: ...


class Unasked:
    """The answer to a request that was not sent."""

    def result(self) -> None:
        return None


class WatchInterceptor(UnaryUnaryClientInterceptor, StreamUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, watch: RequestWatch) -> None:
        self._watch = watch

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        kind = request.DESCRIPTOR.name
        if kind == "AnalyzePlanRequest":
            request = self._watch.on_analysis(request)
        elif kind == "ConfigRequest":
            self._watch.on_settings(request.operation)
        elif kind == "ExecutePlanRequest":  # how pyspark has the server forget rows that Python has forgotten
            self._watch.on_removal(request.plan.command.remove_cached_remote_relation_command.relation.relation_id)
            return Unasked()
        return continuation(details, request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Iterator[Any]) -> Any:
        return continuation(details, self._shown(requests))

    def _shown(self, requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            for artifact in (getattr(request, "batch", None) and request.batch.artifacts) or ():
                self._watch.on_artifact(artifact.name)
            if request.HasField("begin_chunk"):
                self._watch.on_artifact(request.begin_chunk.name)
            yield request
