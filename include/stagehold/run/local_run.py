"""A whole pipeline without Airflow: the same attempts, one region after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

from stagehold.ledger.ledger import Ledger
from stagehold.plan.regions import stage_regions
from stagehold.plan.resume import ResumePlan
from stagehold.plan.shares import region_shares
from stagehold.run.planning import RunRequest, plan_run
from stagehold.run.region import run_region
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.server import spark_server
from stagehold.settings import Settings


def run_locally(request: RunRequest, settings: Settings, progress: Progress) -> RegionOutcome:
    """Run every region in order; what is consumable already is reused, and a run that only reuses starts no Spark.

    :raises StageholdError: from the first region that fails; what it made consumable stays.
    """
    with _spark_if_needed(current_plan(request, settings), settings):
        outcomes = [run_region(task, settings, progress) for task in _tasks(request)]
    return RegionOutcome(
        reused=sum(outcome.reused for outcome in outcomes),
        computed=sum(outcome.computed for outcome in outcomes),
        waves=sum(outcome.waves for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
    )


def current_plan(request: RunRequest, settings: Settings) -> ResumePlan:
    """What a run asked for now would do."""
    with Ledger.open(settings.ledger_url) as ledger:
        return plan_run(request, ledger, settings)


@contextmanager
def _spark_if_needed(plan: ResumePlan, settings: Settings) -> Iterator[None]:
    with spark_server(settings) if plan.stages_that_compute() else nullcontext():
        yield


def _tasks(request: RunRequest) -> Iterator[RegionTask]:
    """Shares come one after the other, too: they would use the same Spark server, which is busy with one."""
    parts = ((region, share) for region in stage_regions(request.pipeline) for share in region_shares(request.pipeline, region))
    for region, share in parts:
        yield RegionTask(
            pipeline=request.pipeline,
            region=region,
            run_id=request.run_id,
            interval=request.interval,
            logical_date=logical_date_of(request.interval),
            params=request.params,
            restore_from_stage=request.restore_from_stage,
            owner=f"cli/{request.run_id}" if share is None else f"cli/{request.run_id}/{share}",
            launcher="cli",
            share=share,
        )


def logical_date_of(interval: str) -> datetime | None:
    """The date an interval key stands for; None for keys that are no date."""
    try:
        date = datetime.fromisoformat(interval)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
