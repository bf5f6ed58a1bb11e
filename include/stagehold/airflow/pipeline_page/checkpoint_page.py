"""The checkpoints of a pipeline's runs, as Flink's pages show those of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from stagehold.airflow.pipeline_page.pipeline_responses import (
    AttemptPart,
    CheckpointCounts,
    CheckpointLine,
    CheckpointPage,
    CheckpointSummary,
    RegionParts,
    RestoreLine,
    Spread,
    StagePart,
)
from stagehold.ledger.across.pipelines import AcknowledgedParts, CheckpointKey
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import (
    Acknowledgement,
    Answer,
    CheckpointRecord,
    CheckpointState,
)
from stagehold.model.records import Restore
from stagehold.model.standing import Amount
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.pipeline import Pipeline

MOST_SUMMED = 1_000  # of the newest completed checkpoints
NOBODY = AcknowledgedParts(0, 0)  # a checkpoint of a finished run needs no attempt


def checkpoint_page(pipeline: str, ledger: Ledger, limit: int, offset: int) -> CheckpointPage:
    """The page, by nine queries, however many checkpoints there are. Their answers grow only with ``limit``, and with
    the number of checkpoints that are summed up.
    """
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
        summary=_summary(pipeline, ledger),
        completed=completed,
        savepoint=savepoint,
        failed=failed,
        restore=_restore_line(newest_restore) if newest_restore else None,
        checkpoints=tuple(_line(one, parts) for one in shown),
    )


def _summary(pipeline: str, ledger: Ledger) -> CheckpointSummary | None:
    done = [one for one in ledger.checkpoint_history.completed(pipeline, MOST_SUMMED) if one.ended_at]
    if not done:
        return None
    parts = ledger.checkpoint_history.parts({(one.run_id, one.number) for one in done})
    aligned = [part.alignment for part in parts.values() if part.alignment is not None]
    return CheckpointSummary(
        checkpoints=len(done),
        duration=spread([(one.ended_at - one.triggered_at).total_seconds() for one in done if one.ended_at]),
        alignment=spread(aligned) if aligned else None,
        bytes_written=spread([one.bytes_written for one in done]),
        bytes_full=spread([one.bytes_written + one.bytes_referenced for one in done]),
    )


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value. A percentile is one of the values: the first one with at least so many values
    that are not above it.
    """
    placed = sorted(values)

    def percentile(share: float) -> float:
        return placed[max(0, ceil(share * len(placed)) - 1)]

    return Spread(
        least=placed[0],
        average=sum(placed) / len(placed),
        p50=percentile(0.5),
        p99=percentile(0.99),
        most=placed[-1],
    )


def stage_parts(pipeline: Pipeline, covered: Mapping[str, Amount]) -> tuple[StagePart, ...]:
    """The parts of stages, in the order of the pipeline; stages that it no longer has are left out."""
    regions = {stage: region.name for region in stage_regions(pipeline) for stage in region.stages}
    return tuple(
        StagePart(stage=stage.name, region=regions[stage.name], **vars(covered[stage.id]))
        for stage in pipeline.stages
        if stage.id in covered
    )


def region_parts(acknowledgements: Iterable[Acknowledgement], most: int) -> tuple[RegionParts, ...]:
    """The regions in the order in which they were named, each with so many attempts at most."""
    by_region: dict[str, list[Acknowledgement]] = {}
    for one in acknowledgements:
        by_region.setdefault(one.region, []).append(one)
    return tuple(_region(region, parts, most) for region, parts in by_region.items())


def _line(record: CheckpointRecord, parts: Mapping[CheckpointKey, AcknowledgedParts]) -> CheckpointLine:
    part = parts.get((record.run_id, record.number), NOBODY)
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
        acknowledged=part.acknowledged,
        asked=part.asked,
        bytes_written=record.bytes_written,
        bytes_full=record.bytes_written + record.bytes_referenced,
        alignment=part.alignment,
        failure=record.failure,
        fails_run=record.fails_run,
        untold=record.untold,
    )


def _restore_line(restore: Restore) -> RestoreLine:
    """The line of a restore.

    :param restore: of a checkpoint, not of a stage.
    """
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
