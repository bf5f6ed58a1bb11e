"""A whole pipeline without Airflow: the same attempts, one region after the other, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.interval_key import moment_of
from stagehold.model.records import RunState
from stagehold.plan.failure import diagnose
from stagehold.plan.failure_rules import LEDGER_UNAVAILABLE
from stagehold.plan.regions import stage_regions
from stagehold.plan.resume import ResumePlan
from stagehold.plan.run_restarts import RestartDecision, first_delay
from stagehold.plan.shares import region_shares
from stagehold.run.planning import RunRequest, plan_run
from stagehold.run.region import run_region
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.restoring import check_restore
from stagehold.run.server import spark_server, start_server
from stagehold.run.verdict import verdict_of
from stagehold.settings import Settings


def run_locally(request: RunRequest, settings: Settings, progress: Progress) -> RegionOutcome:
    """Run every region in order; what is consumable already is reused, and a run that only reuses starts no Spark.

    A region that fails is run again as the pipeline's restart strategy says, after its delay. A KeyboardInterrupt cancels the
    run, also while it waits for that.

    :raises StageholdError: from the first region that may not restart; what it made consumable stays.
    """
    try:
        with _spark_if_needed(_accepted_plan(request, settings), settings):
            outcomes = [_run_with_restarts(task, settings, progress) for task in _tasks(request)]
    except KeyboardInterrupt:
        _cancel(request, settings)
        raise
    return RegionOutcome(
        reused=sum(outcome.reused for outcome in outcomes),
        computed=sum(outcome.computed for outcome in outcomes),
        waves=sum(outcome.waves for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
        along=sum(outcome.along for outcome in outcomes),
    )


def _cancel(request: RunRequest, settings: Settings) -> None:
    """An attempt that was interrupted has done this already; between two attempts nobody has."""
    with Ledger.open(settings.ledger_url) as ledger, suppress(UnknownName):
        ledger.runs.finish(request.run_id, RunState.CANCELED)


def current_plan(request: RunRequest, settings: Settings) -> ResumePlan:
    """What a run asked for now would do.

    :raises NothingToRestore: it is to be restored, and nothing of its interval is on record.
    """
    with Ledger.open(settings.ledger_url) as ledger:
        check_restore(request, ledger)
        return plan_run(request, ledger, settings)


def _accepted_plan(request: RunRequest, settings: Settings) -> ResumePlan:
    """The plan of a run that begins: from now on a resume of it works for the same restore."""
    plan = current_plan(request, settings)
    if request.restore:
        with Ledger.open(settings.ledger_url) as ledger:
            ledger.restores.ask(request.restore)
    return plan


def _run_with_restarts(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    """The restart strategy says how often; a ledger that is away cannot be asked, and is given as many chances as the settings have."""
    unrecorded = 0
    while True:
        try:
            return run_region(task, settings, progress)
        except Exception as error:
            verdict = verdict_of(error)
            unrecorded = 0 if verdict else unrecorded + 1
            delay = _delay_of(verdict.decision) if verdict else _delay_without_ledger(error, task, settings.attempt_retries - unrecorded)
            if delay is None:
                raise
            progress(f"{task.region.name} runs again in {delay.total_seconds():.1f} s: {error}")
            time.sleep(delay.total_seconds())
        if not settings.spark_remote:
            start_server(settings)


def _delay_of(decision: RestartDecision | None) -> timedelta | None:
    return decision.delay if decision and decision.restart else None


def _delay_without_ledger(error: Exception, task: RegionTask, chances: int) -> timedelta | None:
    """Other errors of attempts that had not begun are the user's to see at once: somebody else works on the region, say."""
    if chances < 0 or diagnose(error).rule.name != LEDGER_UNAVAILABLE:
        return None
    return first_delay(task.pipeline.restart)


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
            logical_date=moment_of(request.interval, request.pipeline.schedule),
            params=request.params,
            restore=request.restore,
            owner=f"cli/{request.run_id}" if share is None else f"cli/{request.run_id}/{share}",
            launcher="cli",
            share=share,
        )
