"""The checkpoints of a pipeline's runs as its tab shows them, which is how Flink shows those of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.across.checkpoint_history import AcknowledgedParts, CheckpointKey
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import (
    Acknowledgement,
    Answer,
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    CheckpointTrigger,
)
from stagehold.model.records import Restore
from stagehold.model.restore_choices import ClaimMode

NOBODY = AcknowledgedParts(0, 0)  # finished runs are checkpointed without anybody's part


@dataclass(frozen=True)
class CheckpointCounts:
    """As Flink counts them: one that was replaced by newer ones was completed."""

    triggered: int
    in_progress: int
    completed: int
    failed: int
    restored: int


@dataclass(frozen=True)
class CheckpointLine:
    """One checkpoint or savepoint. ``bytes_written`` are those of its own files, ``bytes_full`` with what it shares
    with earlier ones. The lake has one that is completed unless it was ``replaced``.
    """

    run_id: str
    number: int
    interval: str
    state: CheckpointState
    replaced: bool
    trigger: CheckpointTrigger
    savepoint: str | None
    triggered_at: datetime
    ended_at: datetime | None
    acknowledged: int
    asked: int
    bytes_written: int
    bytes_full: int
    failure: str | None
    fails_run: bool

    @staticmethod
    def of(record: CheckpointRecord, parts: AcknowledgedParts) -> CheckpointLine:
        return CheckpointLine(
            run_id=record.run_id,
            number=record.number,
            interval=record.interval,
            state=record.state,
            replaced=record.discarded_at is not None,
            trigger=record.trigger,
            savepoint=record.savepoint,
            triggered_at=record.triggered_at,
            ended_at=record.ended_at,
            acknowledged=parts.acknowledged,
            asked=parts.asked,
            bytes_written=record.bytes_written,
            bytes_full=record.bytes_written + record.bytes_referenced,
            failure=record.failure,
            fails_run=record.fails_run,
        )


@dataclass(frozen=True)
class RestoreLine:
    """With what a run began. Not all of it is taken over while there is no ``fulfilled_at``."""

    run_id: str
    manifest: str
    requested_at: datetime
    fulfilled_at: datetime | None
    claim_mode: ClaimMode

    @staticmethod
    def of(restore: Restore) -> RestoreLine:
        """:param restore: one of a checkpoint, not of a stage."""
        manifest, mode = restore.snapshot or "", restore.claim_mode
        return RestoreLine(restore.run_id, manifest, restore.requested_at, restore.fulfilled_at, mode)


@dataclass(frozen=True)
class CheckpointPage:
    """The newest of all and of each kind, and a page of them, newest first."""

    counts: CheckpointCounts
    completed: CheckpointLine | None
    savepoint: CheckpointLine | None
    failed: CheckpointLine | None
    restore: RestoreLine | None
    checkpoints: tuple[CheckpointLine, ...]


@dataclass(frozen=True)
class AttemptPart:
    """One attempt's part in a checkpoint; without an answer it has not said yet."""

    attempt_id: str
    share: str | None
    asked_at: datetime
    answered_at: datetime | None
    answer: Answer | None
    reason: CheckpointFailure | None


@dataclass(frozen=True)
class RegionParts:
    """A region's attempts, one for each of its shares; ``answered_at`` is when the last of them answered."""

    region: str
    acknowledged: int
    asked: int
    asked_at: datetime
    answered_at: datetime | None
    attempts: tuple[AttemptPart, ...]


def checkpoint_page(pipeline: str, ledger: Ledger, limit: int, offset: int) -> CheckpointPage:
    """Seven queries, whatever there is; their answers grow with ``limit`` alone."""
    history = ledger.checkpoint_history
    shown = history.page(pipeline, limit, offset)
    latest = (
        history.latest(pipeline, CheckpointState.COMPLETED, savepoint=False),
        history.latest(pipeline, CheckpointState.COMPLETED, savepoint=True),
        history.latest(pipeline, CheckpointState.FAILED),
    )
    parts = history.parts({(one.run_id, one.number) for one in (*shown, *latest) if one is not None})
    restored, newest_restore = history.restored(pipeline)
    completed, savepoint, failed = (_line(one, parts) if one else None for one in latest)
    return CheckpointPage(
        counts=_counts(pipeline, ledger, restored),
        completed=completed,
        savepoint=savepoint,
        failed=failed,
        restore=RestoreLine.of(newest_restore) if newest_restore else None,
        checkpoints=tuple(_line(one, parts) for one in shown),
    )


def region_parts(acknowledgements: Iterable[Acknowledgement], most: int) -> tuple[RegionParts, ...]:
    """In the order in which regions were named; of each region so many attempts are told."""
    by_region: dict[str, list[Acknowledgement]] = {}
    for one in acknowledgements:
        by_region.setdefault(one.region, []).append(one)
    return tuple(_region(region, some, most) for region, some in by_region.items())


def _line(record: CheckpointRecord, parts: Mapping[CheckpointKey, AcknowledgedParts]) -> CheckpointLine:
    return CheckpointLine.of(record, parts.get((record.run_id, record.number), NOBODY))


def _counts(pipeline: str, ledger: Ledger, restored: int) -> CheckpointCounts:
    counts = ledger.checkpoint_history.counts(pipeline)
    return CheckpointCounts(
        triggered=sum(counts.values()),
        in_progress=counts.get(CheckpointState.IN_PROGRESS, 0),
        completed=counts.get(CheckpointState.COMPLETED, 0),
        failed=counts.get(CheckpointState.FAILED, 0),
        restored=restored,
    )


def _region(region: str, parts: Sequence[Acknowledgement], most: int) -> RegionParts:
    answers = [one.answered_at for one in parts if one.answered_at]
    return RegionParts(
        region=region,
        acknowledged=sum(one.answer is Answer.ACKNOWLEDGED for one in parts),
        asked=len(parts),
        asked_at=min(one.asked_at for one in parts),
        answered_at=max(answers) if len(answers) == len(parts) else None,
        attempts=tuple(
            AttemptPart(one.attempt_id, one.share, one.asked_at, one.answered_at, one.answer, one.reason)
            for one in parts[:most]
        ),
    )
