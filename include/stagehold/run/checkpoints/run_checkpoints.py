"""Writes numbered checkpoints of a run: all that it has reached, kept so that neither the ledger nor the code is needed
to read them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import CheckpointCorrupt, NothingToSave, SavepointTaken
from stagehold.extensions.checkpoint_listening import CHECKPOINT_LISTENERS
from stagehold.extensions.installed import installed
from stagehold.lake.checkpoints.manifest import CheckpointedRun, Manifest
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.location import lake_root
from stagehold.ledger.leases import Heartbeat
from stagehold.model.checkpoint_records import (
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    CheckpointTrigger,
)
from stagehold.model.records import Event, Lease, Run
from stagehold.run.checkpoints.checkpoint_contents import Base, Changes, protected
from stagehold.run.checkpoints.discarding import LONGEST, ClaimedSnapshot
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import CheckpointPoint
from stagehold.run.planning.planning import RunRequest, begins_with_of, counted


class RunCheckpoints:
    """The checkpoints of one run, for the holder of its coordinator lease, which is the lease of ``heartbeat``.

    If another process has taken the lease over, writing changes nothing in the ledger. In the lake it may leave a
    manifest without a row; the next holder clears it up.
    """

    def __init__(self, run: Run, request: RunRequest, workplace: Workplace, heartbeat: Heartbeat) -> None:
        self.run, self.request, self.workplace, self.heartbeat = run, request, workplace, heartbeat

    @property
    def store(self) -> CheckpointStore:
        """The run's own checkpoints that are kept, by number; with what it began with, if that is its own as well."""
        claimed = [self._claimed.number] if self._claimed else []
        numbers = sorted((*claimed, *self._own))
        entries = (CompletedCheckpoint(number, SnapshotKind.CHECKPOINT) for number in numbers)
        return CheckpointStore(self.request.pipeline.checkpoint.retained, tuple(entries))

    @property
    def _own(self) -> tuple[int, ...]:
        return tuple(record.number for record in self._known if record.kept and not record.savepoint)

    @property
    def _claimed(self) -> ClaimedSnapshot | None:
        return ClaimedSnapshot.of(self.request, self.workplace)

    @property
    def next_number(self) -> int:
        """The next number. Numbers are never used again, also after the loss of a ledger: the lake has them. They go on
        after the number of a checkpoint that the run began with.
        """
        known = (record.number for record in self._known)
        begins_with = begins_with_of(self.request)
        before = begins_with.plan.checkpoint.id if begins_with else 0
        return max((before, *known, *self._stored.numbers())) + 1

    def clear_up(self) -> None:
        """Clear up after an earlier holder of the lease that is no longer at work: it may have died at any step."""
        known = {record.number: record for record in self._known}
        for record in known.values():
            if record.state is CheckpointState.IN_PROGRESS and not self._completed_savepoint(record):
                reason, text = CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND, "whoever took it died before its end"
                self.fail(record, reason, text)
        known = {record.number: record for record in self._known}
        for number in self._stored.numbers():
            if number in known and not known[number].kept:
                self._stored.discard(number, datetime.now(UTC) - LONGEST)

    def take(self, trigger: CheckpointTrigger, savepoint: str | None = None) -> CheckpointRecord:
        """Take a checkpoint from beginning to end, while no attempt is at work that would have to be asked: nothing
        more will be recorded. A request for a ``savepoint`` is answered with how that ended.
        """
        record, requests = self.begin(self.next_number, trigger, savepoint), self.workplace.ledger.savepoint_requests
        try:
            manifest, covers = self.write(record)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            self.fail(record, CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE, text)
            if savepoint:
                requests.settle(savepoint, text)
            raise
        completed = self.complete(record, manifest, covers)
        if savepoint:
            requests.settle(savepoint)
        return completed

    def begin(self, number: int, trigger: CheckpointTrigger, savepoint: str | None = None) -> CheckpointRecord:
        """Use up the number. A ``savepoint`` belongs to the user and has this name."""
        run = self.run
        record = CheckpointRecord(
            run_id=run.run_id,
            number=number,
            pipeline=run.pipeline,
            interval=run.interval,
            trigger=trigger,
            state=CheckpointState.IN_PROGRESS,
            triggered_at=datetime.now(UTC),
            savepoint=savepoint,
        )
        begun = self.workplace.ledger.checkpoints.begin(record, self._lease)
        self.reach(CheckpointPoint.BEGUN, number)
        return begun

    def write(self, record: CheckpointRecord) -> tuple[Manifest, int]:
        """Make a checkpoint durable in the lake, a savepoint under its name. It covers rows up to the id that is
        returned with it.

        :raises SavepointTaken: another savepoint has the name.
        :raises NothingToSave: a newer run has replaced the data of this run, which has no checkpoint.
        """
        manifest, upto = self._write_old(record) if self._is_replaced(record) else self._write(record)
        if record.savepoint:
            self._name(record, record.savepoint)
        return manifest, upto

    def _write(self, record: CheckpointRecord) -> tuple[Manifest, int]:
        known = counted(self.request, self.workplace.ledger)
        base, upto = self._base(), self.workplace.ledger.partitions.highest_id()
        changed = Changes(known.pipeline, self.run.interval, self.workplace.ledger, base, upto)
        checkpoint = Checkpoint(
            id=record.number,
            kind=SnapshotKind.SAVEPOINT if record.savepoint else SnapshotKind.CHECKPOINT,
            pipeline=self.run.pipeline,
            interval=self.run.interval,
            run_id=self.run.run_id,
            taken_at=record.triggered_at,
            stages=tuple(protected(changed, record.savepoint) if record.savepoint else changed.snapshots()),
            name=record.savepoint,
        )
        return self._stored.write(checkpoint, known.pipeline, builds_on=base[0].number if base else None), upto

    def _is_replaced(self, record: CheckpointRecord) -> bool:
        """Whether the run is not the newest of its interval: the ledger has the data of the newest run."""
        newest = self.workplace.ledger.runs.newest(self.run.pipeline, self.run.interval)
        return record.savepoint is not None and newest is not None and newest.run_id != self.run.run_id

    def _write_old(self, record: CheckpointRecord) -> tuple[Manifest, int]:
        """Write the newest checkpoint of the run once more, for the user."""
        newest = max(self._own, default=None)
        if newest is None:
            raise NothingToSave(self.run.run_id)
        old = self._stored.read_checkpoint(newest)
        named = replace(old, id=record.number, kind=SnapshotKind.SAVEPOINT, name=record.savepoint)
        return self._stored.write(named, self.request.pipeline, builds_on=newest), 0

    def _name(self, record: CheckpointRecord, name: str) -> None:
        """Give the savepoint its name: from now on the user has it."""
        asked = self.workplace.ledger.savepoint_requests.get(name)
        savepoint = Savepoint(
            name=name,
            **vars(self._place),
            number=record.number,
            created_by=asked.requested_by if asked else "",
            reason=asked.reason if asked else "",
            created_at=record.triggered_at,
        )
        if not Savepoints(self.workplace.settings.lake_uri).create(savepoint):
            raise SavepointTaken(name, "made just now")

    def complete(self, record: CheckpointRecord, manifest: Manifest, covers: int) -> CheckpointRecord:
        """The manifest is there: record the checkpoint as complete."""
        self.reach(CheckpointPoint.WRITTEN, record.number)
        self.heartbeat.check()
        completed = self._complete(record, manifest, covers)
        self.reach(CheckpointPoint.RECORDED, record.number)
        return completed

    def fail(
        self, record: CheckpointRecord, reason: CheckpointFailure, text: str, *, fails_run: bool = False
    ) -> CheckpointRecord:
        ledger, untold = self.workplace.ledger, has_audience(self.request)
        return ledger.checkpoints.fail(record, self._lease, reason, text, fails_run=fails_run, untold=untold)

    @property
    def untold(self) -> tuple[CheckpointRecord, ...]:
        """The checkpoints whose ends are still to be told, by number."""
        return tuple(record for record in self._known if record.untold)

    def acknowledge(self, record: CheckpointRecord) -> None:
        """Record that all who have a part in the checkpoint know how it ended."""
        self.workplace.ledger.checkpoints.acknowledge(record, self._lease)

    def warn(self, number: int, text: str) -> None:
        """Say it, and keep it among the run's events."""
        self.workplace.warn(self.run.run_id, KIND, f"checkpoint {number}", text)

    def opened(self, record: CheckpointRecord) -> OpenedCheckpoint:
        """
        :raises CheckpointCorrupt: it cannot be read.
        """
        return self._stored.open(record.number)

    def discard(self, number: int, newest: int) -> None:
        """Delete a checkpoint that ``newest`` replaces, unless a run that goes on needs it, or a resume of this run
        would. Its row says so before it leaves the lake.
        """
        claimed, ledger = self._claimed, self.workplace.ledger
        if claimed and claimed.number == number:
            claimed.discard(self.workplace)
        address = self._stored.address(number)
        if ledger.restores.needing(address) or self._would_need(address):
            return
        for record in self._known:
            if record.number == number and record.kept:
                ledger.checkpoints.discard(record, self._lease)
        self.reach(CheckpointPoint.RELEASED, newest)
        self._stored.discard(number, datetime.now(UTC) - LONGEST)

    def _would_need(self, address: str) -> bool:
        """Whether the run began with this checkpoint and has not taken over all of it, however the run ended."""
        newest = self.workplace.ledger.restores.of_run(self.run.run_id)[:1]
        return any(restore.snapshot == address and restore.fulfilled_at is None for restore in newest)

    def anything_new(self) -> bool:
        """Whether anything was recorded of the run's interval since the newest of its checkpoints; or whether nobody
        knows what that has, as after a ledger was rebuilt.
        """
        ledger = self.workplace.ledger
        own = [record for record in self._known if record.kept and not record.savepoint]
        covered = ledger.checkpoints.covered(own[-1]) if own else 0
        return covered is None or ledger.partitions.newest_id(self.run.pipeline, self.run.interval) > covered

    def is_covered(self) -> bool:
        """Whether the process that saw the end of the run has taken its checkpoint. A periodic checkpoint that was
        begun at that moment does not count, whatever it contains.
        """
        ended = self.run.ended_at
        of_end = (record for record in self._known if record.kept and record.trigger is CheckpointTrigger.END_OF_RUN)
        return ended is not None and any(record.triggered_at >= ended for record in of_end)

    def reach(self, point: CheckpointPoint, number: int) -> None:
        self.workplace.faults.reach(point, self.run.pipeline, number)

    def _complete(self, record: CheckpointRecord, manifest: Manifest, covers: int) -> CheckpointRecord:
        own = [part for part in manifest.parts if part.written_by == record.number]
        written, everything = (sum(part.bytes for part in parts) for parts in (own, manifest.parts))
        return self.workplace.ledger.checkpoints.complete(
            record,
            self._lease,
            written=written,
            referenced=everything - written,
            covers=covers,
            # A plain savepoint is its user's alone, as in Flink.
            untold=record.trigger is not CheckpointTrigger.ASKED_FOR and has_audience(self.request),
        )

    def _completed_savepoint(self, record: CheckpointRecord) -> bool:
        """Whether the savepoint was made by a process that died before it could record that here."""
        made = record.savepoint and Savepoints(self.workplace.settings.lake_uri).find(record.savepoint)
        if not made or (made.run, made.number) != (self._place, record.number):
            return False
        self._complete(record, self._stored.read_manifest(record.number), 0)
        return True

    @property
    def _lease(self) -> Lease:
        return self.heartbeat.lease

    @property
    def _known(self) -> tuple[CheckpointRecord, ...]:
        return self.workplace.ledger.checkpoints.of_run(self.run.run_id)

    @property
    def _stored(self) -> StoredCheckpoints:
        return StoredCheckpoints(self.workplace.settings.lake_uri, self._place)

    @property
    def _place(self) -> CheckpointedRun:
        return CheckpointedRun(self.run.pipeline, self.run.interval, self.run.run_id)

    def _base(self) -> Base | None:
        """The newest checkpoint that can be read; the new one refers to what has not changed since."""
        for record in reversed(self._known):
            if not record.kept:
                continue
            try:
                manifest = self._stored.read_manifest(record.number)
            except CheckpointCorrupt as error:
                self.workplace.progress(str(error))
            else:
                if manifest.lake != lake_root(self.workplace.settings.lake_uri):
                    return None  # the lake was moved, and records in its parts name tables at the old place
                return manifest, self.workplace.ledger.checkpoints.covered(record) or 0
        return None


Listener = Callable[[CheckpointRecord, Workplace], None]
KIND = "checkpoint"

log = logging.getLogger(__name__)


def say(record: CheckpointRecord, workplace: Workplace) -> None:
    workplace.progress(_text(record))


def note(record: CheckpointRecord, workplace: Workplace) -> None:
    subject, now = f"checkpoint {record.number}", datetime.now(UTC)
    workplace.ledger.events.append(Event(record.run_id, KIND, subject, _text(record), now))


LISTENERS: tuple[Listener, ...] = (say, note)


def tell(listeners: Sequence[Listener], record: CheckpointRecord, workplace: Workplace) -> None:
    """Notify all listeners of a checkpoint. A listener that fails does not stop the others, nor the checkpoint."""
    for listener in listeners:
        try:
            listener(record, workplace)
        except Exception:
            log.warning("%s was not told of checkpoint %d", listener, record.number, exc_info=True)


def _text(record: CheckpointRecord) -> str:
    named = f"checkpoint {record.number} of run {record.run_id}"
    return f"{named} failed: {record.failure}" if record.failure else f"{named} is complete"


def has_audience(request: RunRequest) -> bool:
    """Whether anybody has a part in the checkpoints of such a run."""
    return bool(installed(CHECKPOINT_LISTENERS)) or any(stage.on_complete for stage in request.pipeline.stages)
