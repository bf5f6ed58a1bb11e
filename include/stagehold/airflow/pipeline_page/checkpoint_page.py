"""The checkpoints of a pipeline's runs as its tab shows them, which is how Flink shows those of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stagehold.airflow.pipeline_page.pipeline_responses import (
    AttemptPart,
    CheckpointCounts,
    CheckpointLine,
    CheckpointPage,
    RegionParts,
    RestoreLine,
)
from stagehold.ledger.across.pipelines import CheckpointKey
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import (
    Acknowledgement,
    Answer,
    CheckpointRecord,
    CheckpointState,
)
from stagehold.model.records import Restore

NOBODY = (0, 0)  # finished runs are checkpointed without anybody's part


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
        restore=_restore_line(newest_restore) if newest_restore else None,
        checkpoints=tuple(_line(one, parts) for one in shown),
    )


def region_parts(acknowledgements: Iterable[Acknowledgement], most: int) -> tuple[RegionParts, ...]:
    """The regions in the order in which they were named, each with so many attempts at most."""
    by_region: dict[str, list[Acknowledgement]] = {}
    for one in acknowledgements:
        by_region.setdefault(one.region, []).append(one)
    return tuple(_region(region, parts, most) for region, parts in by_region.items())


def _line(record: CheckpointRecord, parts: Mapping[CheckpointKey, tuple[int, int]]) -> CheckpointLine:
    acknowledged, asked = parts.get((record.run_id, record.number), NOBODY)
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
        acknowledged=acknowledged,
        asked=asked,
        bytes_written=record.bytes_written,
        bytes_full=record.bytes_written + record.bytes_referenced,
        failure=record.failure,
        fails_run=record.fails_run,
    )


def _restore_line(restore: Restore) -> RestoreLine:
    """:param restore: of a checkpoint, not of a stage."""
    return RestoreLine(
        run_id=restore.run_id,
        manifest=restore.snapshot or "",
        requested_at=restore.requested_at,
        fulfilled_at=restore.fulfilled_at,
        claim_mode=restore.claim_mode,
    )


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
        attempts=tuple(_attempt_part(one) for one in parts[:most]),
    )


def _attempt_part(part: Acknowledgement) -> AttemptPart:
    return AttemptPart(
        attempt_id=part.attempt_id,
        share=part.share,
        asked_at=part.asked_at,
        answered_at=part.answered_at,
        answer=part.answer,
        reason=part.reason,
    )
