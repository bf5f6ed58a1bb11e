"""Which partitions exist, as far as the run knows: being tracked is the answer to "is it available?".

Only what the scheduler releases is tracked; a pipelined output is gone once it was read. Ids that are not tracked are
ignored everywhere, since telling of a loss or a release twice is normal. The tracker deletes nothing, it says what to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.model.records import RunState
from stagehold.model.states import GLOBALLY_TERMINAL
from stagehold.spec.outputs import ReleasedBy, properties_of
from stagehold.spec.pipeline import OutputType


@dataclass(frozen=True)
class TrackedPartition:
    """A partition that exists. ``worker`` holds its data; None means that the lake does, which outlives any worker."""

    id: str
    type: OutputType
    worker: str | None = None


@dataclass(frozen=True)
class Clearance:
    """What to delete, and what to hand to the user for keeping; both are tracked no more."""

    release: tuple[TrackedPartition, ...] = ()
    promote: tuple[TrackedPartition, ...] = ()


class PartitionTracker:
    """The partitions of one run, by id and by worker."""

    def __init__(self) -> None:
        self._partitions: dict[str, TrackedPartition] = {}
        self._on_worker: dict[str, dict[str, None]] = {}

    def track(self, partition: TrackedPartition) -> None:
        """Begin to track; a partition that is tracked already is replaced, as it was produced again."""
        if properties_of(partition.type).released_by is not ReleasedBy.SCHEDULER:
            return
        self.stop_tracking([partition.id])
        self._partitions[partition.id] = partition
        if partition.worker is not None:
            self._on_worker.setdefault(partition.worker, {})[partition.id] = None

    def is_tracked(self, partition: str) -> bool:
        return partition in self._partitions

    def tracked(self) -> tuple[TrackedPartition, ...]:
        return tuple(self._partitions.values())

    def tracked_on(self, worker: str) -> tuple[TrackedPartition, ...]:
        return tuple(self._partitions[name] for name in self._on_worker.get(worker, ()))

    def stop_tracking(self, partitions: Iterable[str]) -> tuple[TrackedPartition, ...]:
        """Forget partitions without deleting anything; those that were tracked."""
        forgotten = tuple(self._partitions.pop(name) for name in tuple(partitions) if name in self._partitions)
        for partition in forgotten:
            if partition.worker is not None:
                del self._on_worker[partition.worker][partition.id]
        return forgotten

    def release(self, partitions: Iterable[str]) -> Clearance:
        """Forget partitions and have them deleted."""
        return Clearance(release=self.stop_tracking(partitions))

    def promote(self, partitions: Iterable[str]) -> Clearance:
        """Forget partitions and hand them to the user."""
        return Clearance(promote=self.stop_tracking(partitions))

    def lose_worker(self, worker: str) -> tuple[TrackedPartition, ...]:
        """A worker is gone, and with it what only it held: that is how partitions become unavailable."""
        lost = self.stop_tracking(self._on_worker.get(worker, ()))
        self._on_worker.pop(worker, None)
        return lost

    def end_run(self, state: RunState) -> Clearance:
        """A finished run leaves its persistent partitions to the user; a failed or cancelled one leaves nothing.

        A run that has not ended for good, as a suspended one, keeps everything: whoever takes it over needs it.
        """
        if state not in GLOBALLY_TERMINAL:
            return Clearance()
        everything = self.stop_tracking(self._partitions)
        kept = {part.id for part in everything if state is RunState.FINISHED and properties_of(part.type).persistent}
        return Clearance(
            release=tuple(part for part in everything if part.id not in kept),
            promote=tuple(part for part in everything if part.id in kept),
        )
