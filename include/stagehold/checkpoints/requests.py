"""The queue of requests for checkpoints and savepoints, and which of them may start now."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.model.checkpoint_records import CheckpointFailure

MOST_QUEUED = 1000


PRE_FLIGHT = frozenset(
    {
        CheckpointFailure.TOO_MANY_CHECKPOINT_REQUESTS,
        CheckpointFailure.MINIMUM_TIME_BETWEEN_CHECKPOINTS,
        CheckpointFailure.NOT_ALL_REQUIRED_TASKS_RUNNING,
        CheckpointFailure.BLOCKING_OUTPUT_EXISTS,
        # Flink counts the preparing of a place to the time before, though an id is spent
        CheckpointFailure.IO_EXCEPTION,
    }
)


@dataclass(frozen=True)
class CheckpointRequest:
    """A wish for a checkpoint or savepoint. ``number`` tells requests apart and is the order in which they came."""

    kind: SnapshotKind
    at: int
    number: int
    periodic: bool = False
    name: str | None = None

    @property
    def forced(self) -> bool:
        """A savepoint waits for no slot and no pause: the user is waiting for it."""
        return self.kind.is_savepoint

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """Lowest first: savepoints, then what a user asked for, then the older."""
        return (not self.forced, self.periodic, self.at, self.number)


@dataclass(frozen=True)
class Load:
    """What the coordinator is busy with when it looks for the next request; times are milliseconds of one clock."""

    now: int
    preparing: bool
    pending: int
    discarding: int
    last_completion: int | None


# The request to start, if any; or the request refused because of the pause, with the milliseconds left of the pause.
Pick = tuple[CheckpointRequest | None, CheckpointRequest | None, int]
NOTHING: Pick = (None, None, 0)


class RequestQueue:
    """Requests by rank, at most ``limit`` of them."""

    def __init__(self, *, max_concurrent: int, min_pause: int, limit: int = MOST_QUEUED) -> None:
        self._max_concurrent, self._min_pause, self._limit = max_concurrent, min_pause, limit
        self._requests: list[CheckpointRequest] = []

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: CheckpointRequest) -> CheckpointRequest | None:
        """Queue a request; returns the request that has to be dropped for it, which may be itself.

        A full queue drops its lowest request, but never a user's: then it is the new one that is dropped.
        """
        if len(self._requests) >= self._limit and not self._requests[-1].periodic:
            return request
        insort(self._requests, request, key=lambda each: each.rank)
        return self._requests.pop() if len(self._requests) > self._limit else None

    def pick(self, load: Load) -> Pick:
        """Take the first request out if it may start under this load, or if it has to be refused.

        Nothing starts while another one is being prepared, or while deleting old checkpoints lags behind.
        """
        if not self._requests or load.preparing or load.discarding > self._max_concurrent:
            return NOTHING
        first = self._requests[0]
        if load.pending >= self._max_concurrent:
            return (self._requests.pop(0), None, 0) if first.forced else NOTHING
        pause_left = self._pause_left(load) if first.periodic and not first.forced else 0
        if pause_left > 0:
            return None, self._requests.pop(0), pause_left
        return self._requests.pop(0), None, 0

    @property
    def has_periodic(self) -> bool:
        """Whether a periodic request waits."""
        return any(request.periodic for request in self._requests)

    def drain(self) -> tuple[CheckpointRequest, ...]:
        """Take all requests out, in their order."""
        drained, self._requests = tuple(self._requests), []
        return drained

    def _pause_left(self, load: Load) -> int:
        """The pause is counted from the last completion of anything, a savepoint's too."""
        return 0 if load.last_completion is None else load.last_completion + self._min_pause - load.now
