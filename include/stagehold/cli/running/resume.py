"""`stagehold resume`: bring a run that failed or was stopped to its end, in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document
from stagehold.cli.common.request import AsJson, Keep, Reason, ShowTimings, keep_asked
from stagehold.cli.running.run import Parallel
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.model.records import Run
    from stagehold.run.planning.planning import RunRequest

RunId = Annotated[
    str | None,
    typer.Argument(help="The run, as `stagehold status` lists it. Default: the newest that failed or was stopped."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")]
Again = Annotated[
    list[str] | None,
    typer.Option("--again", metavar="STAGE", help="Compute this stage once more, even if nothing changed. Repeatable."),
]


def resume(
    run_id: RunId = None,
    again: Again = None,
    keep: Keep = None,
    reason: Reason = "",
    parallel: Parallel = None,
    dry_run: DryRun = False,
    timings: ShowTimings = False,
    as_json: AsJson = False,
) -> None:
    """Resume a run: reuse what is consumable, run the rest."""
    from stagehold.cli.running.plan import show_plan
    from stagehold.cli.running.run import keep_on_record, run_here

    TIMINGS.passed(Lap.START)
    settings = load_settings()
    run = run_to_resume(run_id, settings)
    through_airflow = run.launcher == "airflow"
    if through_airflow and not keep:
        return _through_airflow(run, again or (), settings, dry_run=dry_run, as_json=as_json)
    request = request_again(run, again or (), settings)
    wishes = keep_asked(keep, reason, request.pipeline)
    if dry_run:
        return show_plan(request, settings, keep=wishes, as_json=as_json)
    if wishes:
        keep_on_record([request], wishes, settings)
    if through_airflow:
        return _through_airflow(run, again or (), settings, dry_run=False, as_json=as_json)
    TIMINGS.passed(Lap.REQUEST)
    return run_here(request, settings, parallel, as_json=as_json, timings=timings)


def run_to_resume(run_id: str | None, settings: Settings, pipeline: str | None = None) -> Run:
    """The run of that name, or the newest, of one pipeline or of all, that failed or was stopped.

    :raises NoRunStopped: there is none
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.cli.status import lost_ledger
    from stagehold.errors import NoRunStopped
    from stagehold.model.records import RunState
    from stagehold.run.lease.lost_attempts import has_stopped

    with open_ledger(settings) as ledger:
        if run_id is not None:
            return ledger.runs.get(run_id)
        recent = [run for run in ledger.runs.recent(limit=100) if pipeline in (None, run.pipeline)]
        stopped = next((run for run in recent if has_stopped(run, ledger)), None)
    if stopped is None:
        going_on = [run.run_id for run in recent if run.state is RunState.RUNNING and run.launcher != "airflow"]
        error = NoRunStopped(going_on, settings.lease_seconds)
        if not recent and (hint := lost_ledger(settings)):
            error.add_note(hint)
        raise error
    return stopped


def request_again(run: Run, again: Sequence[str], settings: Settings) -> RunRequest:
    """What the run asks for when it goes on, with stages to be computed once more."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.restoring import new_restore_again
    from stagehold.spec.loading.loader import find_pipeline

    with open_ledger(settings) as ledger:
        restore = next(iter(ledger.restores.of_run(run.run_id)), None)
    pipeline = find_pipeline(run.pipeline, settings)
    restore = new_restore_again(run.run_id, again, pipeline) if again else restore
    return RunRequest(pipeline, run.run_id, run.interval, run.params, restore)


def _through_airflow(run: Run, again: Sequence[str], settings: Settings, *, dry_run: bool, as_json: bool) -> None:
    """Ask the plugin of the local Airflow, which clears the least that is needed, as the button on the page does."""
    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.local.airflow_access import airflow_client
    from stagehold.plan.resume.decisions import also_computed

    place, airflow_run_id = DagPlace.of_run(run.run_id)
    with airflow_client(settings) as airflow:
        if again:
            answer = airflow.again(str(place), airflow_run_id, again, dry_run=dry_run)
        else:
            answer = airflow.resume(str(place), airflow_run_id, dry_run=dry_run)
    if as_json:
        print_document({"run_id": run.run_id, **answer})
        return
    runs = f"{answer['run']} run{also_computed(answer['along'])}"
    typer.echo(
        f"{'would resume' if dry_run else 'resumed'} {run.run_id}: {answer['reuse']} partitions are reused, {runs}"
    )
    for task in answer["cleared"]:
        typer.echo(f"  {task['name']}: {task['reason']}")
