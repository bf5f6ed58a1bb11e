"""What the run of one interval is told to do, so that it does what was chosen for the whole backfill."""

from __future__ import annotations

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.backfill import BackfillChoice, Only, WorkOrder
from stagehold.plan.resume.planner import descendants
from stagehold.spec.pipeline import Pipeline


def check_choice(choice: BackfillChoice, pipeline: Pipeline) -> None:
    """
    :raises UnknownName: the pipeline has no stage of that name.
    :raises InvalidArgument: two things are asked for that exclude each other.
    """
    known = tuple(stage.name for stage in pipeline.stages)
    for name in (*choice.stages, *filter(None, (choice.restore_from_stage,))):
        if name not in known:
            raise UnknownName(f"stage of {pipeline.name}", name, known)
    if choice.restore_from_stage and choice.only in (Only.MISSING, Only.STALE):
        allowed = f"{Only.FAILED} or {Only.ALL} together with --restore-from-stage, which computes again what is there"
        raise InvalidArgument("--only", str(choice.only), allowed)


def order_of(choice: BackfillChoice, pipeline: Pipeline, *, has_failed: bool) -> WorkOrder:
    """
    :param has_failed: the interval's newest run failed, or a gate blocks something of it.
    """
    chosen = _chosen(choice, pipeline)
    if choice.only is Only.FAILED and not has_failed:
        return WorkOrder(())
    if choice.restore_from_stage or choice.only is Only.ALL:
        return WorkOrder(chosen, anew=chosen)
    return WorkOrder(chosen, only_recorded=choice.only is Only.STALE, as_recorded=choice.only is Only.MISSING)


def _chosen(choice: BackfillChoice, pipeline: Pipeline) -> tuple[str, ...]:
    """In the order of the pipeline."""
    follows = descendants(pipeline, choice.restore_from_stage) if choice.restore_from_stage else None
    return tuple(
        stage.name
        for stage in pipeline.stages
        if (not choice.stages or stage.name in choice.stages) and (follows is None or stage.name in follows)
    )
