"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.output import print_document, print_explanation
from stagehold.cli.request import AsJson, Interval, Params, PipelineName, RestoreFrom, RunOptions, request_asked
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.plan.resume.decisions import ResumePlan
    from stagehold.run.planning.planning import RunRequest

RunId = Annotated[
    str,
    typer.Option("--run-id", help="Plan for this run; matters after --restore-from-stage, where its own work counts."),
]


def plan(
    pipeline: PipelineName,
    interval: Interval = None,
    restore_from_stage: RestoreFrom = None,
    param: Params = None,
    run_id: RunId = "",
    as_json: AsJson = False,
) -> None:
    """Show what would be reused and what would run, with the reason for each partition."""
    settings = load_settings()
    request = request_asked(pipeline, run_id, RunOptions(interval, restore_from_stage, param), settings)
    show_plan(request, settings, as_json=as_json)


def show_plan(request: RunRequest, settings: Settings, *, as_json: bool) -> None:
    """:raises StageholdError: after the plan was shown, if a run of it would be refused"""
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.local_run import current_plan
    from stagehold.run.planning.refusal import refuse_broken_code, refuse_spoiled_sources

    found = current_plan(request, settings)
    if as_json:
        _print_json(request, found)
    else:
        _print_table(request, found)
    refuse_broken_code(request.pipeline, found, settings)
    with open_ledger(settings) as ledger:
        refuse_spoiled_sources(request, found, ledger, settings)


def _print_json(request: RunRequest, plan: ResumePlan) -> None:
    from stagehold.plan.resume.explanation import explain

    decisions = [
        {"stage": one.stage, "partition": one.partition, "action": one.action, "reason": str(one.reason)}
        for one in plan.decisions
    ]
    about = {"pipeline": request.pipeline.name, "interval": request.interval, **asdict(plan.tally)}
    print_document({**about, "summary": [asdict(line) for line in explain(plan)], "decisions": decisions})


def _print_table(request: RunRequest, plan: ResumePlan) -> None:
    print_explanation(f"{request.pipeline.name} for {request.interval}", plan)
    typer.echo(str(plan.tally))
