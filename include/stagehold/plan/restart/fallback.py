"""`pipelined_with_batch_fallback`: what is stored after an attempt failed that computed several stages at once.

An output in its stored form is still of its type: regions, keys and the commits that say what was read of a source stay
as they are. So what was published before the failure counts, and what is stored counts for whoever plans without it.
"""

from __future__ import annotations

from collections.abc import Iterable

from stagehold.model.records import Attempt
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.pipeline import Fallback, Pipeline

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
