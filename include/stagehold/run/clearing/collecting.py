"""Deletes files of one interval that nobody needs any more, and tables of which nothing is left."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stagehold.lake.available import present_files
from stagehold.lake.published import files_of_snapshot
from stagehold.lake.store.files import files_at
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.garbage import Garbage, Why, garbage, may_have_garbage
from stagehold.run.clearing.pins import IntervalCheckpoints, Pins
from stagehold.run.clearing.place import Cleared, ClearedInterval
from stagehold.spec.pipeline import Stage

READERS_TIME = timedelta(days=1)  # whoever reads a version of a published table may have begun when it was the newest


@dataclass(frozen=True)
class StageGarbage:
    """What may go of one stage; with ``whole_table`` everything that is in its table's folder."""

    place: ClearedInterval
    stage: Stage
    files: tuple[Garbage, ...]
    whole_table: bool = False

    @property
    def cleared(self) -> tuple[Cleared, ...]:
        """What there is to say of it, by reason."""
        by_why = {why: [one for one in self.files if one.why is why] for why in Why}
        return tuple(
            self.place.cleared(self.stage.name, why, len(files), sum(one.bytes for one in files))
            for why, files in by_why.items()
            if files
        )

    def delete(self) -> None:
        """A crash in the middle leaves some of it, for the next time."""
        uri = self.place.location(self.stage).uri
        files_at(uri).remove([one.path for one in self.files])
        if self.whole_table:
            folder, _, name = uri.rpartition("/")
            files_at(folder).delete(name)


def delete_garbage(
    place: ClearedInterval, stages: Collection[str], hearts: Mapping[str, Heartbeat], older_than: datetime
) -> tuple[Cleared, ...]:
    """Delete what may go of stages that are held; nothing while a checkpoint is being taken.

    :raises CheckpointCorrupt: nobody knows what a checkpoint needs.
    """
    cleared: list[Cleared] = []
    for found in find_all_garbage(place, older_than):
        if found.stage.name in stages:
            hearts[found.stage.name].check()
            found.delete()
            cleared.extend(found.cleared)
    return tuple(cleared)


def find_all_garbage(place: ClearedInterval, older_than: datetime) -> Iterator[StageGarbage]:
    """What may go of the interval now, stage by stage; nothing while a checkpoint is being taken. It is sure only of
    stages that are held.

    :raises CheckpointCorrupt: nobody knows what a checkpoint needs.
    """
    pins = IntervalCheckpoints(place).pins()
    if pins is None:
        return
    for stage in place.stages:
        if found := _find_garbage(place, stage, pins, older_than):
            yield found


def _find_garbage(place: ClearedInterval, stage: Stage, pins: Pins, older_than: datetime) -> StageGarbage | None:
    history = place.ledger.partitions.history(place.cell(stage))
    if not may_have_garbage(history):
        return None
    uri, pinned = place.location(stage).uri, pins.get(stage.id, frozenset())
    paths = (file.path for record in history for file in record.all_files)
    present = present_files(uri, paths)
    if stage.output.table is not None:
        older_than = min(older_than, datetime.now(UTC) - READERS_TIME)
    needed = pinned if stage.output.table is None else pinned | files_of_snapshot(uri)
    whole = stage.output.table is None and _nothing_left(history, pinned)
    files = garbage(history, present, needed, older_than)
    worth_it = files or (whole and files_at(uri).facts(""))
    return StageGarbage(place, stage, files, whole) if worth_it else None


def superseded_left(place: ClearedInterval, stage: Stage) -> bool:
    """Whether files are still there that only records name which are not the newest."""
    history = place.ledger.partitions.history(place.cell(stage))
    newest = {record.partition: record for record in history}
    current = {file.path for record in newest.values() for file in record.all_files}
    older = {file.path for record in history for file in record.all_files} - current
    return bool(older) and bool(present_files(place.location(stage).uri, older))


def _nothing_left(history: Sequence[PartitionRecord], pinned: frozenset[str]) -> bool:
    """Whether a table that a stage owns has only data that was released. Its log goes with it: the ledger remembers
    epochs, and so does the chronicle.
    """
    newest = {record.partition: record for record in history}
    named = (file.path for record in history for file in record.all_files)
    return all(one.state is PartitionState.RELEASED for one in newest.values()) and pinned.isdisjoint(named)
