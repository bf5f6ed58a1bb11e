"""The completed checkpoints of a run: how many are kept, which are dropped, and what stays when the run has ended.

Pure: it says what to delete, and whoever asked deletes it. A new checkpoint is persisted before it is added, and only
then are older ones dropped, so a failure in between leaves too many and never too few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.errors import CheckpointStoreClosed
from stagehold.model.records import RunState
from stagehold.model.states import GLOBALLY_TERMINAL


class Retention(StrEnum):
    """Which checkpoints outlive their run; savepoints always do."""

    NEVER = "never"
    ON_FAILURE = "on_failure"  # kept when the run failed
    ON_CANCELLATION = "on_cancellation"  # kept unless the run finished
    # Flink deletes what a finished job leaves; a run of ours leaves what others begin with.
    UNLESS_CANCELED = "unless_canceled"
    ALWAYS = "always"


DELETED_AT = {
    Retention.NEVER: GLOBALLY_TERMINAL,
    Retention.ON_FAILURE: GLOBALLY_TERMINAL - {RunState.FAILED},
    Retention.ON_CANCELLATION: frozenset({RunState.FINISHED}),
    Retention.UNLESS_CANCELED: frozenset({RunState.CANCELED}),
    Retention.ALWAYS: frozenset(),
}


@dataclass(frozen=True)
class CompletedCheckpoint:
    """An entry of the store. What the run began with and claims is an ordinary checkpoint of its own."""

    id: int
    kind: SnapshotKind

    @property
    def ours(self) -> bool:
        """Whether it is deleted when it is subsumed."""
        return not self.kind.is_savepoint


@dataclass(frozen=True)
class CheckpointStore:
    """Entries in ascending order of id. ``retained`` is how many to keep; less than one is one."""

    retained: int = 1
    entries: tuple[CompletedCheckpoint, ...] = ()
    closed: bool = False

    @property
    def newest(self) -> CompletedCheckpoint | None:
        """The one that was completed last."""
        return self.entries[-1] if self.entries else None

    def add(self, entry: CompletedCheckpoint) -> tuple[CheckpointStore, tuple[CompletedCheckpoint, ...]]:
        """The store with ``entry``, and the entries it no longer holds, oldest first; of those only `ours` are to be
        deleted.

        The newest entry is never dropped, nor is the newest real checkpoint, even behind savepoints: a user may delete
        those. So one more than ``retained`` may stay.

        :raises CheckpointStoreClosed: the run has ended.
        """
        if self.closed:
            raise CheckpointStoreClosed(entry.id)
        entries = (*self.entries, entry)
        surplus = len(entries) - max(self.retained, 1)
        dropped = tuple(self._droppable(entries))[: max(surplus, 0)]
        return replace(self, entries=tuple(kept for kept in entries if kept not in dropped)), dropped

    def end(self, retention: Retention, state: RunState) -> tuple[CheckpointStore, tuple[CompletedCheckpoint, ...]]:
        """The closed store of a run that ended, and the entries to delete. After any state that is not globally
        terminal everything is kept: the run goes on elsewhere.
        """
        delete = state in DELETED_AT[retention]
        deleted = tuple(entry for entry in self.entries if delete and entry.ours)
        kept = tuple(entry for entry in self.entries if entry not in deleted)
        return replace(self, entries=kept, closed=True), deleted

    @staticmethod
    def _droppable(entries: tuple[CompletedCheckpoint, ...]) -> Iterator[CompletedCheckpoint]:
        *older, newest = entries
        newest_ours = next((entry for entry in reversed(entries) if entry.ours), None)
        stopped = newest.kind is SnapshotKind.STOP_WITH_SAVEPOINT
        return (entry for entry in older if stopped or entry is not newest_ours)
