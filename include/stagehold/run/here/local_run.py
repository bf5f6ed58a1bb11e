"""Runs a whole pipeline without Airflow: the same attempts, one region after the other, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import UnknownName
from stagehold.gates.judge import import_great_expectations
from stagehold.model.keys.interval_key import moment_of
from stagehold.plan.imagined.code_changes import stage_changes
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.plan.split.task_slots import NO_LIMIT, task_slots
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.region import run_region
from stagehold.run.journal import journal
from stagehold.run.journal.endings import OutageTries, recorded
from stagehold.run.journal.journal import verdict_of
from stagehold.run.planning.code_choices import record_acceptances
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.refusal import refuse_broken_code, refuse_too_early
from stagehold.run.planning.restoring import check_restore, remark_on
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.cancel_watch import cancel_watch
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server, start_server
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode


def run_locally(request: RunRequest, settings: Settings, progress: Progress) -> RegionOutcome:
    """Run every region in order; consumable partitions are reused, and a run that only reuses starts no Spark.

    A region that fails is run again as the pipeline's restart strategy says, after its delay. A KeyboardInterrupt
    cancels the run, also while it waits for that, and so does `stagehold cancel`.

    :raises StageholdError: from the first region that may not restart; partitions that it made consumable stay.
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
    """Refuse a schedule that no number of tasks could run. One process runs one task at a time, which is enough for any
    mode.

    :raises ScheduleRefused: the schedule mode cannot run the pipeline.
    """
    if pipeline.schedule_mode is not ScheduleMode.LAZY_FROM_SOURCES:
        task_slots(pipeline, NO_LIMIT)
    if pipeline.schedule_mode is ScheduleMode.EAGER:
        progress("schedule_mode eager starts all tasks at once in Airflow; in this one process they follow each other")


def _cancel(request: RunRequest, settings: Settings) -> None:
    """Cancel the run. An attempt that was interrupted has done this already; between two attempts nobody has."""
    with open_ledger(settings) as ledger, suppress(UnknownName):
        journal.cancel_run(request.run_id, ledger)


def _accepted_plan(request: RunRequest, settings: Settings, progress: Progress) -> ResumePlan:
    """The plan of a run that begins: from now on a resume of it works for the same restore."""
    task = next(_tasks(request))
    restarts = Restarts(task, progress)
    while True:
        try:
            return _accept(task, settings, progress)
        except Exception as error:  # noqa: BLE001 - whatever it was, the restart strategy decides
            restarts.wait(error)


def _accept(task: RegionTask, settings: Settings, progress: Progress) -> ResumePlan:
    """Accept the plan. If it cannot be made, that is a failure of the first region, which would begin now. If a
    restore, code or an interval is refused, nothing begins.
    """
    request = task.request
    with open_ledger(settings) as ledger:
        refuse_lost_ledger(request, ledger, settings)
        check_restore(request)
        with recorded(task, ledger, settings, progress):
            view = IntervalView.of_run(request, ledger, settings)
            known, plan = view.situation, view.plan
        refuse_broken_code(request.pipeline, plan, settings)
        refuse_too_early(request.pipeline, plan)
        if plan.stages_that_compute():
            task.find_secrets(settings)
        if remark := remark_on(request, ledger):
            progress(remark)
        ledger.runs.create(journal.run_of(request, task.launcher))
        ledger.runs.begin_life(request.run_id)
        if request.restore:
            ledger.restores.ask(request.restore)
            record_acceptances(request, ledger, settings)
        if request.restore and request.restore.snapshot:
            for change in stage_changes(known, plan):
                progress(str(change))
        return plan


def _run_with_restarts(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    restarts, tries = Restarts(task, progress), count()
    while True:
        try:
            if next(tries) and not settings.spark_remote:
                start_server(settings)
            return run_region(task, settings, progress)
        except Exception as error:  # noqa: BLE001 - whatever it was, the restart strategy decides
            restarts.wait(error)


class Restarts:
    """Restarts of one region, as its pipeline's restart strategy allows them. If the ledger is away, it cannot be
    asked, and there are some tries.
    """

    def __init__(self, task: RegionTask, progress: Progress) -> None:
        self._task, self._progress = task, progress
        self._outages = OutageTries(task, progress)

    def wait(self, error: Exception) -> None:
        """Wait before the next try; raises ``error`` if there is no other try."""
        verdict = verdict_of(error)
        if verdict is None or verdict.decision is None or not verdict.decision.restart:
            return self._outages.wait(error)
        self._outages = OutageTries(self._task, self._progress)
        delay = verdict.decision.delay.total_seconds()
        self._progress(f"{self._task.region.name} runs again in {delay:.1f} s: {error}")
        time.sleep(delay)
        return None


@contextmanager
def _spark_if_needed(plan: ResumePlan, request: RunRequest, settings: Settings) -> Iterator[None]:
    gated = any(stage.gate for stage in request.pipeline.stages)
    meanwhile = import_great_expectations if gated else None
    with spark_server(settings, f"run {request.run_id}", meanwhile) if plan.needs_session else nullcontext():
        TIMINGS.passed(Lap.SERVER)
        yield


def _tasks(request: RunRequest) -> Iterator[RegionTask]:
    """The tasks. Shares come one after the other, too: they would use the same Spark server, which is busy with one."""
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
