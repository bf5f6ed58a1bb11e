"""What is no longer needed of an interval: files, whole tables and checkpoints; and what checkpoints still point to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.lake.available import present_files
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.commit.delta_log import LOG_FOLDER
from stagehold.lake.published import files_of_snapshot
from stagehold.lake.store.files import files_at
from stagehold.ledger.leases import Heartbeat
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState
from stagehold.model.records import PartitionRecord, Run
from stagehold.model.standing import PartitionState
from stagehold.model.states import GLOBALLY_TERMINAL
from stagehold.plan.garbage import Garbage, Why, garbage, may_have_garbage
from stagehold.run.checkpoints.checkpoint_contents import delete_copies
from stagehold.run.checkpoints.discarding import LONGEST, coordinator_lease, take_coordinator_lease
from stagehold.run.clearing.cleared_interval import Cleared, ClearedInterval
from stagehold.spec.pipeline import Stage

Pins = Mapping[str, frozenset[str]]  # files that have to stay, by the id of their stage


class IntervalCheckpoints:
    """The checkpoints of all runs of an interval."""

    def __init__(self, place: ClearedInterval) -> None:
        self.place = place

    def pins(self) -> Pins | None:
        """Files that checkpoints need, by the id of their stage. None while a checkpoint is being taken: what it points
        to is not known yet.

        A checkpoint that is begun after this reads the ledger after this, too.

        :raises CheckpointCorrupt: a checkpoint that is kept cannot be read.
        """
        records = self._records()
        if any(self._is_being_taken(record) for record in records):
            return None
        pinned: dict[str, set[str]] = defaultdict(set)
        for checkpoint in (*self._kept_ones(), *self._savepoints()):
            for record in (record for stage in checkpoint.stages for record in stage.partitions):
                if record.state.keeps_files:
                    pinned[record.cell.stage].update(file.path for file in record.all_files)
        return {stage: frozenset(paths) for stage, paths in pinned.items()}

    def _kept_ones(self) -> Iterator[Checkpoint]:
        return (self._stored(record).read_checkpoint(record.number) for record in self.kept())

    def _savepoints(self) -> Iterator[Checkpoint]:
        """The savepoints, listed in the lake, so that the loss of a ledger loses none."""
        savepoints, own = Savepoints(self.place.workplace.settings.lake_uri), self.place
        for savepoint in savepoints.all():
            if (savepoint.pipeline, savepoint.interval, savepoint.root) == (
                own.pipeline.name,
                own.request.interval,
                "",
            ):
                yield savepoints.stored(savepoint).read_checkpoint(savepoint.number)

    def drop_all(self) -> tuple[Cleared, ...]:
        """Delete the checkpoints that are kept: no run will go on from them that has not begun to."""
        return self.drop([record for record in self.kept() if not self._needed(record)])

    def kept(self) -> tuple[CheckpointRecord, ...]:
        """Checkpoints that belong to the runs: a savepoint belongs to its user."""
        return tuple(record for record in self._records() if record.kept and not record.savepoint)

    def _needed(self, record: CheckpointRecord) -> bool:
        """Whether a run that goes on began with it and has not taken over all of it."""
        address = self._stored(record).address(record.number)
        return bool(self.place.ledger.restores.needing(address))

    def replaced(self, older_than: datetime) -> tuple[CheckpointRecord, ...]:
        """Checkpoints of runs that ended before that moment and that a newer run of the interval has replaced."""
        runs = self._runs()
        newest = max(runs.values(), key=lambda run: (run.started_at, run.run_id), default=None)
        over = {run.run_id for run in runs.values() if run != newest and _ended_before(run, older_than)}
        return tuple(record for record in self.kept() if record.run_id in over and not self._needed(record))

    def dead(self) -> tuple[CheckpointRecord, ...]:
        """Checkpoints that no longer count, and are still there: the process that was to delete them died."""
        named = {
            (savepoint.run_id, savepoint.number)
            for savepoint in Savepoints(self.place.workplace.settings.lake_uri).all()
        }
        nameless = (record for record in self._records() if (record.run_id, record.number) not in named)
        ended = (record for record in nameless if record.state is not CheckpointState.IN_PROGRESS)
        dead = [record for record in ended if record.savepoint or not record.kept]
        there = {record.run_id: self._stored(record).numbers() for record in dead}
        return tuple(record for record in dead if record.number in there[record.run_id])

    def announced(self, records: Sequence[CheckpointRecord]) -> tuple[Cleared, ...]:
        """What `drop` would delete, about: without parts that others refer to, and with those that nothing refers
        to.
        """
        size = sum(record.bytes_written for record in records)
        return (self.place.cleared("", Why.CHECKPOINT, len(records), size),) if records else ()

    def drop(self, records: Sequence[CheckpointRecord]) -> tuple[Cleared, ...]:
        """Delete the checkpoints. Their rows go first, so that no run restores a checkpoint that is about to go.

        :raises LeaseHeld: a process takes checkpoints of one of these runs.
        """
        if not records:
            return ()
        places = {record.run_id: self._stored(record) for record in records}
        before = _facts(places.values())
        for run_id in places:
            self._drop_of_run(run_id, places[run_id], [record for record in records if record.run_id == run_id])
        files, size = (was - now for was, now in zip(before, _facts(places.values()), strict=True))
        return (self.place.cleared("", Why.CHECKPOINT, files, size),)

    def _drop_of_run(self, run_id: str, stored: StoredCheckpoints, records: Sequence[CheckpointRecord]) -> None:
        """:raises LeaseHeld: somebody takes checkpoints of the run."""
        ledger = self.place.ledger
        lease = take_coordinator_lease(ledger.runs.get(run_id), self.place.workplace)
        try:
            for record in records:
                if record.savepoint and record.number in stored.numbers():
                    delete_copies(stored.read_checkpoint(record.number), record.savepoint)
                if record.kept:
                    ledger.checkpoints.discard(record, lease)
                stored.discard(record.number, datetime.now(UTC) - LONGEST)
        finally:
            ledger.leases.release(lease)

    def _runs(self) -> Mapping[str, Run]:
        return {record.run_id: self.place.ledger.runs.get(record.run_id) for record in self._records()}

    def _records(self) -> tuple[CheckpointRecord, ...]:
        return self.place.ledger.checkpoints.of_interval(self.place.pipeline.name, self.place.request.interval)

    def _is_being_taken(self, record: CheckpointRecord) -> bool:
        """Whether a process is taking the checkpoint. If that process died, it is not: without the coordinator's lease
        no checkpoint is completed.
        """
        if record.state is not CheckpointState.IN_PROGRESS:
            return False
        return self.place.ledger.leases.alive(coordinator_lease(self.place.ledger.runs.get(record.run_id)))

    def _stored(self, record: CheckpointRecord) -> StoredCheckpoints:
        run = CheckpointedRun(record.pipeline, record.interval, record.run_id)
        return StoredCheckpoints(self.place.workplace.settings.lake_uri, run)


def _facts(places: Collection[StoredCheckpoints]) -> tuple[int, int]:
    """Number and size of all files."""
    sizes = [size for place in places for size in place.sizes()]
    return len(sizes), sum(sizes)


def _ended_before(run: Run, moment: datetime) -> bool:
    return run.state in GLOBALLY_TERMINAL and (run.ended_at or run.started_at) < moment


READERS_TIME = timedelta(days=1)  # a reader of a published table may have begun when its version was the newest


class AgeLimits:
    """The moments before which files must have been replaced to be deleted: for tables that stages own, and for
    published ones, whose readers have ``readers_time``.
    """

    def __init__(self, older_than: datetime, readers_time: timedelta = READERS_TIME) -> None:
        self.own, self.published = older_than, min(older_than, datetime.now(UTC) - readers_time)


class StageGarbage:
    """What may be deleted of one stage; with ``whole_table`` everything in its table's folder."""

    def __init__(
        self, place: ClearedInterval, stage: Stage, files: tuple[Garbage, ...], whole_table: bool = False
    ) -> None:
        self.place, self.stage, self.files, self.whole_table = place, stage, files, whole_table

    @property
    def cleared(self) -> tuple[Cleared, ...]:
        """The amounts by reason."""
        by_why = {why: [file for file in self.files if file.why is why] for why in Why}
        return tuple(
            self.place.cleared(self.stage.name, why, len(files), sum(file.bytes for file in files))
            for why, files in by_why.items()
            if files
        )

    def delete(self) -> None:
        """Delete the files. A crash in the middle leaves some of them, for the next time."""
        uri = self.place.location(self.stage).uri
        files_at(uri).remove([file.path for file in self.files])
        if self.whole_table:
            folder, _, name = uri.rpartition("/")
            files_at(folder).delete(name)


def delete_garbage(
    place: ClearedInterval, stages: Collection[str], hearts: Mapping[str, Heartbeat], limits: AgeLimits
) -> tuple[Cleared, ...]:
    """Delete what may be deleted of stages that are held; nothing while a checkpoint is being taken.

    :raises CheckpointCorrupt: what a checkpoint needs is unknown.
    """
    cleared: list[Cleared] = []
    for found in find_all_garbage(place, limits):
        if found.stage.name in stages:
            hearts[found.stage.name].check()
            found.delete()
            cleared.extend(found.cleared)
    return tuple(cleared)


def find_all_garbage(place: ClearedInterval, limits: AgeLimits) -> Iterator[StageGarbage]:
    """What may be deleted of the interval now, stage by stage; nothing while a checkpoint is being taken. It is certain
    only for stages that are held.

    :raises CheckpointCorrupt: what a checkpoint needs is unknown.
    """
    pins = IntervalCheckpoints(place).pins()
    if pins is None:
        return
    for stage in place.stages:
        if found := _find_garbage(place, stage, pins, limits):
            yield found


def _find_garbage(place: ClearedInterval, stage: Stage, pins: Pins, limits: AgeLimits) -> StageGarbage | None:
    history = place.ledger.partitions.history(place.cell(stage))
    if not may_have_garbage(history):
        return None
    uri, pinned = place.location(stage).uri, pins.get(stage.id, frozenset())
    paths = (file.path for record in history for file in record.all_files)
    present = present_files(uri, paths)
    older_than = limits.own if stage.output.table is None else limits.published
    needed = pinned if stage.output.table is None else pinned | files_of_snapshot(uri)
    whole = stage.output.table is None and _nothing_left(history, pinned) and _is_quiet(uri, limits.published)
    files = garbage(history, present, needed, older_than)
    worth_it = files or (whole and files_at(uri).facts(""))
    return StageGarbage(place, stage, files, whole) if worth_it else None


def _is_quiet(uri: str, since: datetime) -> bool:
    """Whether nobody has committed to a table since then. Names in a log are given again, other than those of data. So
    who deletes a log that is in use, having slept longer than its lease, takes it from whoever has begun again.
    """
    return all(file.modified < since for file in files_at(uri).facts(LOG_FOLDER).values())


def superseded_left(place: ClearedInterval, stage: Stage) -> bool:
    """Whether files are still there that only older records name."""
    history = place.ledger.partitions.history(place.cell(stage))
    newest = {record.partition: record for record in history}
    current = {file.path for record in newest.values() for file in record.all_files}
    older = {file.path for record in history for file in record.all_files} - current
    return bool(older) and bool(present_files(place.location(stage).uri, older))


def _nothing_left(history: Sequence[PartitionRecord], pinned: frozenset[str]) -> bool:
    """Whether a table that a stage owns has only released data. Its log may go, too: the ledger remembers epochs, as
    does the chronicle.
    """
    newest = {record.partition: record for record in history}
    named = (file.path for record in history for file in record.all_files)
    return all(record.state is PartitionState.RELEASED for record in newest.values()) and pinned.isdisjoint(named)
