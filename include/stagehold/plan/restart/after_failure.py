"""What becomes of a run's pipeline and records after an attempt of it failed.

`pipelined_with_batch_fallback`: which outputs are stored after the failure of an attempt that computed several stages
at once. An output in its stored form is still of its type: regions, keys, and the commits that have what was read of a
source stage stay as they are. So data that was published before the failure counts, and stored data counts for a plan
without it.

`failover: full`: a failure makes all worthless that its run has computed until then, in any region. Data that earlier
runs of the interval left counts as before. An attempt that was under way when another one failed belongs to what ended
then: so does everything that it records later, or that another process records for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from stagehold.model.records import Attempt, AttemptState, PartitionRecord
from stagehold.plan.restart.rules import FENCED
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.output_settings import Fallback

# To compute several stages in one go takes memory, disk and time; a stage function's own errors say nothing of it.
CAUSES = frozenset({"stalled", "out_of_memory", "disk_full", "executor_lost", "spark_gone"})


def may_fall_back(pipeline: Pipeline) -> bool:
    return any(stage.output.falls_back for stage in pipeline.stages)


def in_stored_form(pipeline: Pipeline, failed: Iterable[Attempt]) -> Pipeline:
    """The pipeline as it is computed after these failures, of which the first of each region counts.

    :param failed: attempts of one interval that failed by one of the `CAUSES`, oldest first.
    """
    first: dict[str, Fallback] = {}
    for attempt in failed:
        first.setdefault(attempt.region, Fallback(attempt.failure_rule or "", attempt.epoch))
    by_stage = {stage: first.get(region.name) for region in stage_regions(pipeline) for stage in region.stages}
    stages = tuple(
        stage.model_copy(update={"output": stage.output.model_copy(update={"fallback": by_stage[stage.name]})})
        if stage.output.falls_back
        else stage
        for stage in pipeline.stages
    )
    return pipeline.model_copy(update={"stages": stages})


Records = Mapping[str, Sequence[PartitionRecord]]


def last_failure(attempts: Sequence[Attempt]) -> datetime | None:
    """When an attempt of a run last failed. A try that never began, or was replaced by a newer one, has cost the run
    nothing.
    """
    failed = (
        attempt
        for attempt in attempts
        if attempt.state is AttemptState.FAILED and attempt.began and attempt.failure_rule != FENCED
    )
    return max((attempt.ended_at for attempt in failed if attempt.ended_at is not None), default=None)


def discarded(
    recorded: Records, run_id: str, attempts: Sequence[Attempt], *, as_of: datetime | None = None
) -> Mapping[str, frozenset[int]]:
    """Partitions, by stage, that the run computed before it last failed; a partition that was computed again since then
    counts.

    :param attempts: attempts of the run.
    :param as_of: later failures are not known yet; None for all.
    """
    failed = last_failure(
        [attempt for attempt in attempts if as_of is None or (attempt.ended_at and attempt.ended_at <= as_of)]
    )
    if failed is None:
        return {}
    counting = {attempt.attempt_id for attempt in attempts if attempt.started_at > failed}
    return {
        stage: frozenset(
            record.partition for record in records if record.run_id == run_id and record.attempt_id not in counting
        )
        for stage, records in recorded.items()
    }
