"""Runs a whole pipeline without Airflow: the same attempts, one region after the other in this process, or several
side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import UnknownName
from stagehold.extras import Extra, require
from stagehold.gates.judge import import_great_expectations
from stagehold.lake.catalog_entry import unregistered
from stagehold.model.checkpoint_records import part_name
from stagehold.model.keys.interval_key import moment_of
from stagehold.plan.imagined.code_changes import stage_changes
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.exchange_forms import exchange_forms
from stagehold.plan.split.regions import region_parts
from stagehold.plan.split.shares import asks_for_splits
from stagehold.plan.split.task_slots import NO_LIMIT, task_slots
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.side_by_side import run_side_by_side
from stagehold.run.here.submission import needs_server, region_runner
from stagehold.run.journal import journal
from stagehold.run.journal.endings import Restarts, recorded
from stagehold.run.planning.code_choices import record_acceptances
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.refusal import refuse_broken_code, refuse_too_early
from stagehold.run.planning.restoring import check_restore, remark_on
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.cancel_watch import cancel_watch
from stagehold.run.upkeep.lost_files import put_lost_back
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server, start_server
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.launch_settings import Launcher
from stagehold.spec.settings.run_settings import ScheduleMode


def run_locally(request: RunRequest, settings: Settings, progress: Progress, *, parallel: int = 1) -> RegionOutcome:
    """Run every region in order; consumable partitions are reused, and a run that only reuses starts no Spark.

    A region that fails is run again as the pipeline's restart strategy says, after its delay. A KeyboardInterrupt
    cancels the run, also while it waits for that, and so does `stagehold cancel`.

    :param parallel: how many attempts may go on at a time, each in a process of its own if there are several.
    :raises StageholdError: from the first region that may not restart; partitions that it made consumable stay.
    """
    tasks = tuple(_tasks(request, parallel))
    _accept_schedule(request.pipeline, len(tasks), parallel, progress)
    try:
        plan = _accepted_plan(request, settings, progress)
        TIMINGS.passed(Lap.PLAN)
        cancelling = cancel_watch(request.run_id, request.pipeline.cancellation, settings)
        with cancelling, _spark_if_needed(plan, request, settings):
            if plan.needs_session and min(parallel, len(tasks)) > 1:
                outcomes = run_side_by_side(tasks, settings, progress, parallel)
            else:
                outcomes = [_run_with_restarts(task, settings, progress) for task in tasks]
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


def _accept_schedule(pipeline: Pipeline, tasks: int, parallel: int, progress: Progress) -> None:
    """Refuse a schedule that no number of tasks could run. One task at a time is enough for any mode, as tasks work
    their partitions off in waves.

    :raises ScheduleRefused: the schedule mode cannot run the pipeline.
    """
    if pipeline.schedule_mode is not ScheduleMode.LAZY_FROM_SOURCES:
        task_slots(pipeline, NO_LIMIT)
    if pipeline.schedule_mode is ScheduleMode.EAGER and parallel < tasks:
        progress(
            f"schedule_mode eager starts all tasks at once, which --parallel {tasks} does here; with --parallel "
            f"{parallel} they follow each other"
        )


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
        put_lost_back(request, ledger, settings, progress)
        with recorded(task, ledger, settings, progress):
            view = IntervalView.of_run(request, ledger, settings)
            known, plan = view.situation, view.plan
        refuse_broken_code(request.pipeline, plan, settings)
        refuse_too_early(request.pipeline, plan)
        if plan.stages_that_compute():
            _require_packages(request.pipeline, settings)
            task.find_secrets(settings)
            for form in exchange_forms(known.pipeline):
                if form.whole:
                    progress(f"{form.producer} is {form.form} ({form.reason}): a kill costs {form.cost_of_kill}")
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


def _require_packages(pipeline: Pipeline, settings: Settings) -> None:
    """:raises PackageMissing: of Spark, where it is started here, or of what judges."""
    if pipeline.launcher is Launcher.SUBMIT or not settings.spark_remote:
        require(Extra.SERVER)
    if any(stage.gate for stage in pipeline.stages):
        require(Extra.GATES)


def _run_with_restarts(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    restarts, tries = Restarts(task, progress), count()
    while True:
        try:
            if next(tries) and needs_server(task.pipeline, settings):
                start_server(settings)
            return region_runner(task.pipeline)(task, settings, progress)
        except Exception as error:  # noqa: BLE001 - whatever it was, the restart strategy decides
            restarts.wait(error)


@contextmanager
def _spark_if_needed(plan: ResumePlan, request: RunRequest, settings: Settings) -> Iterator[None]:
    gated = any(stage.gate for stage in request.pipeline.stages)
    meanwhile = import_great_expectations if gated else None
    pipeline = request.pipeline
    entries = [] if settings.sandbox else unregistered(pipeline.stages, settings.lake_uri)
    needed = plan.needs_session or entries
    served = needed and pipeline.launcher is Launcher.SERVER
    with spark_server(settings, f"run {request.run_id}", meanwhile) if served else nullcontext():
        TIMINGS.passed(Lap.SERVER)
        yield


def _tasks(request: RunRequest, parallel: int = 1) -> Iterator[RegionTask]:
    """The tasks. Each is an owner of its own: one that heals for its own region must not take another's lease over."""
    for region, share in region_parts(request.pipeline):
        yield RegionTask(
            request=request,
            region=region,
            owner=f"cli/{request.run_id}/{part_name(region.name, share)}",
            launcher="cli",
            logical_date=moment_of(request.interval, request.pipeline.schedule),
            share=share,
            asks=parallel > 1 and asks_for_splits(request.pipeline, region),
        )
