"""A whole pipeline without Airflow: the same attempts, one region after the other, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from typing import TypeVar

from stagehold.errors import UnknownName
from stagehold.gates.judge import preload
from stagehold.lake.chronicle.chronicle import open_ledger
from stagehold.model.keys.interval_key import moment_of
from stagehold.plan.imagined.code_changes import stage_changes
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.plan.split.task_slots import NO_LIMIT, task_slots
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.region import run_region
from stagehold.run.journal import journal
from stagehold.run.journal.endings import despite_outages, recorded
from stagehold.run.journal.journal import verdict_of
from stagehold.run.planning.code_choices import record_acceptances
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import RunRequest, situation_of_run
from stagehold.run.planning.refusal import refuse_broken_code, refuse_too_early
from stagehold.run.planning.restoring import check_restore
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.cancel_watch import cancel_watch
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server, start_server
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode

T = TypeVar("T")


def run_locally(request: RunRequest, settings: Settings, progress: Progress) -> RegionOutcome:
    """Run every region in order; what is consumable already is reused, and a run that only reuses starts no Spark.

    A region that fails is run again as the pipeline's restart strategy says, after its delay. A KeyboardInterrupt
    cancels the run, also while it waits for that, and so does `stagehold cancel`.

    :raises StageholdError: from the first region that may not restart; what it made consumable stays.
    """
    _accept_schedule(request.pipeline, progress)
    try:
        plan = _accepted_plan(request, settings, progress)
        TIMINGS.passed(Lap.PLAN)
        cancelling = cancel_watch(request.run_id, request.pipeline.cancellation, settings)
        with cancelling, _spark_if_needed(plan, request, settings):
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


def _accept_schedule(pipeline: Pipeline, progress: Progress) -> None:
    """One process has one task at a time, which any mode could run; what no number of tasks can is refused here, too.

    :raises ScheduleRefused: the schedule mode cannot run the pipeline.
    """
    if pipeline.schedule_mode is not ScheduleMode.LAZY_FROM_SOURCES:
        task_slots(pipeline, NO_LIMIT)
    if pipeline.schedule_mode is ScheduleMode.EAGER:
        progress("schedule_mode eager starts all tasks at once in Airflow; in this one process they follow each other")


def _cancel(request: RunRequest, settings: Settings) -> None:
    """An attempt that was interrupted has done this already; between two attempts nobody has."""
    with open_ledger(settings) as ledger, suppress(UnknownName):
        journal.cancel_run(request.run_id, ledger)


def _accepted_plan(request: RunRequest, settings: Settings, progress: Progress) -> ResumePlan:
    """The plan of a run that begins: from now on a resume of it works for the same restore.

    A plan that cannot be made is a failure of the first region, which would begin now; a restore, code or an
    interval that is refused begins nothing.
    """
    task = next(_tasks(request))

    def accepted() -> ResumePlan:
        with open_ledger(settings) as ledger:
            refuse_lost_ledger(request, ledger, settings)
            check_restore(request, ledger)
            with recorded(task, ledger, settings, progress):
                known = situation_of_run(request, ledger, settings)
                plan = resume_plan(known)
            refuse_broken_code(request.pipeline, plan, settings)
            refuse_too_early(request.pipeline, plan)
            ledger.runs.create(journal.run_of(request, task.launcher))
            ledger.runs.begin_life(request.run_id)
            if request.restore:
                ledger.restores.ask(request.restore)
                record_acceptances(request, ledger, settings)
            if request.restore and request.restore.snapshot:
                for change in stage_changes(known, plan):
                    progress(str(change))
            return plan

    return _with_restarts(task, progress, accepted)


def _run_with_restarts(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    tries = count()

    def attempt() -> RegionOutcome:
        if next(tries) and not settings.spark_remote:
            start_server(settings)
        return run_region(task, settings, progress)

    return _with_restarts(task, progress, attempt)


def _with_restarts(task: RegionTask, progress: Progress, work: Callable[[], T]) -> T:
    """The restart strategy says how often; a ledger that is away cannot be asked, and is given some tries."""
    while True:
        try:
            return despite_outages(task, progress, work)
        except Exception as error:
            verdict = verdict_of(error)
            if verdict is None or verdict.decision is None or not verdict.decision.restart:
                raise
            delay = verdict.decision.delay.total_seconds()
            progress(f"{task.region.name} runs again in {delay:.1f} s: {error}")
        time.sleep(delay)


@contextmanager
def _spark_if_needed(plan: ResumePlan, request: RunRequest, settings: Settings) -> Iterator[None]:
    if plan.needs_session and any(stage.gate for stage in request.pipeline.stages):
        preload()  # beside Java's start, which leaves a core idle
    with spark_server(settings, f"run {request.run_id}") if plan.needs_session else nullcontext():
        TIMINGS.passed(Lap.SERVER)
        yield


def _tasks(request: RunRequest) -> Iterator[RegionTask]:
    """Shares come one after the other, too: they would use the same Spark server, which is busy with one."""
    parts = (
        (region, share)
        for region in stage_regions(request.pipeline)
        for share in region_shares(request.pipeline, region)
    )
    for region, share in parts:
        yield RegionTask(
            request=request,
            region=region,
            owner=f"cli/{request.run_id}" if share is None else f"cli/{request.run_id}/{share}",
            launcher="cli",
            logical_date=moment_of(request.interval, request.pipeline.schedule),
            share=share,
        )
