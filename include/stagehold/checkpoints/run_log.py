"""The log that a batch run's coordinator leaves for the one after it, and what can be read from it.

Append-only. An event is written only after what it says is durable, so the log may know less than is true and never
more; even so nothing is believed of data that is not asked for again. Replaying an event twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stagehold.errors import RunLogCorrupt


@dataclass(frozen=True)
class StageInitialised:
    """The number of a stage's partitions was decided. It is never decided again, whatever the sizes are by then."""

    stage: str
    partitions: int


@dataclass(frozen=True)
class VertexFinished:
    """A partition of a stage was computed.

    :param snapshot: what the coordinators of sources knew by then was saved with this event.
    """

    vertex: str
    stage: str
    attempt_id: str
    snapshot: bool = True


@dataclass(frozen=True)
class VerticesReset:
    """Partitions will be computed again."""

    vertices: tuple[str, ...]


LogEvent = StageInitialised | VertexFinished | VerticesReset


@dataclass(frozen=True)
class Replayed:
    """What the log says: partitions of each initialised stage, and the finished vertices in the order they finished."""

    initialised: Mapping[str, int]
    finished: Mapping[str, VertexFinished]


def replay(log: Iterable[LogEvent]) -> Replayed:
    """Finishing adds a vertex, resetting removes it.

    The last ones to finish do not count until an event that comes with a snapshot: which splits they had been given is
    not known, so those would be read twice.

    :raises RunLogCorrupt: the events contradict each other.
    """
    initialised: dict[str, int] = {}
    finished: dict[str, VertexFinished] = {}
    for event in log:
        if isinstance(event, StageInitialised):
            if initialised.setdefault(event.stage, event.partitions) != event.partitions:
                raise RunLogCorrupt(
                    f"stage {event.stage} has {initialised[event.stage]} partitions and then {event.partitions}"
                )
        elif isinstance(event, VertexFinished):
            if event.stage not in initialised:
                raise RunLogCorrupt(f"{event.vertex} finished before its stage {event.stage} was initialised")
            finished.pop(event.vertex, None)  # so that the order is that of the last time
            finished[event.vertex] = event
        else:
            for vertex in event.vertices:
                finished.pop(vertex, None)
    return Replayed(initialised, _with_snapshot(finished))


def _with_snapshot(finished: Mapping[str, VertexFinished]) -> Mapping[str, VertexFinished]:
    events = list(finished.values())
    while events and not events[-1].snapshot:
        events.pop()
    return {event.vertex: event for event in events}
