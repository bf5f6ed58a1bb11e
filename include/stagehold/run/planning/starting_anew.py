"""What an attempt has to do after its work in a run that starts anew after each failure (`failover: full`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState
from stagehold.model.states import ATTEMPT
from stagehold.plan.restart.after_failure import last_failure
from stagehold.plan.resume.decisions import Decision, ResumePlan, RunDecision
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import all_finished, region_shares
from stagehold.run.planning.planning import IntervalView
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.settings.run_settings import Failover


def counts(task: RegionTask, attempt: Attempt, ledger: Ledger) -> bool:
    """Whether the run has not failed elsewhere since the attempt began; if it has, all that this one made is lost."""
    if task.pipeline.failover is not Failover.FULL:
        return True
    failed = last_failure(ledger.attempts.of_run(task.request.run_id))
    return failed is None or failed < attempt.started_at


def unattended_part(task: RegionTask, ledger: Ledger, settings: Settings) -> RegionTask | None:
    """A part of the run that was done before the run failed, and that no task will come for.

    None while a task is at work, or is still to have its first success: it makes what it reads again by itself, and who
    ends last makes the rest. Two that end at once may both be told of a part, and its lease lets one of them make it.
    """
    if task.pipeline.failover is not Failover.FULL:
        return None
    attempts = ledger.attempts.of_run(task.request.run_id)
    if last_failure(attempts) is None:
        return None
    succeeded = [one for one in attempts if one.state is AttemptState.FINISHED]
    parts = [
        replace(task, region=region, share=share)
        for region in stage_regions(task.pipeline)
        for share in region_shares(task.pipeline, region)
    ]
    ended = all(ATTEMPT.is_terminal(one.state) for one in attempts)
    if not ended or not all(_has_succeeded(part, succeeded) for part in parts):
        return None
    plan = IntervalView.of_run(task.request, ledger, settings).plan
    return next((part for part in (_to_make_again(part, plan) for part in parts) if part.only), None)


def _has_succeeded(part: RegionTask, succeeded: list[Attempt]) -> bool:
    return all_finished([one for one in succeeded if one.region == part.region.name], part.share)


def _to_make_again(part: RegionTask, plan: ResumePlan) -> RegionTask:
    own = plan.within(part.region.stages, part.share)
    again = {stage: frozenset(_made_anew(own.of(stage))) for stage in part.region.stages}
    return replace(part, only={stage: partitions for stage, partitions in again.items() if partitions})


def _made_anew(decisions: Iterable[Decision]) -> Iterator[int]:
    return (one.partition for one in decisions if isinstance(one, RunDecision) and one.anew)
