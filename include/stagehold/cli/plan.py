"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.output import print_document, print_table
from stagehold.cli.request import AsJson, Interval, Params, PipelineName, RestoreFrom, interval_asked, parse_params, restore_asked
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.plan.resume import ResumePlan
    from stagehold.run.planning import RunRequest

RunId = Annotated[str, typer.Option("--run-id", help="Plan for this run; matters after --restore-from-stage, where its own work counts.")]


def plan(
    pipeline: PipelineName,
    interval: Interval = None,
    restore_from_stage: RestoreFrom = None,
    param: Params = None,
    run_id: RunId = "",
    as_json: AsJson = False,
) -> None:
    """Show what would be reused and what would run, with the reason for each partition."""
    from stagehold.model.spec_file import find_pipeline
    from stagehold.run.planning import RunRequest

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    params = parse_params(param, declared.params)
    restore = restore_asked(run_id, restore_from_stage, settings)
    request = RunRequest(declared, run_id, interval_asked(interval, declared.schedule), params, restore)
    show_plan(request, settings, as_json=as_json)


def show_plan(request: RunRequest, settings: Settings, *, as_json: bool) -> None:
    """:raises StageholdError: after the plan was shown, if a run of it would be refused"""
    from stagehold.ledger.ledger import Ledger
    from stagehold.run.local_run import current_plan
    from stagehold.run.refusal import refuse_broken_code, refuse_spoiled_sources

    found = current_plan(request, settings)
    if as_json:
        _print_json(request, found)
    else:
        _print_table(request, found)
    refuse_broken_code(request.pipeline, found, settings)
    with Ledger.open(settings.ledger_url) as ledger:
        refuse_spoiled_sources(request, found, ledger, settings)


def _print_json(request: RunRequest, plan: ResumePlan) -> None:
    from stagehold.plan.explanation import explain

    decisions = [
        {"stage": one.stage, "partition": one.partition, "action": one.action, "reason": str(one.reason)} for one in plan.decisions
    ]
    about = {"pipeline": request.pipeline.name, "interval": request.interval, **asdict(plan.tally)}
    print_document({**about, "summary": [asdict(line) for line in explain(plan)], "decisions": decisions})


def _print_table(request: RunRequest, plan: ResumePlan) -> None:
    """One row per stage, action and reason, and a line that says how much is saved."""
    from stagehold.plan.explanation import explain
    from stagehold.plan.reasons import partition_ranges

    rows = [
        (line.stage, line.action.value, f"{len(line.partitions)} of {line.total}", partition_ranges(line.partitions), line.reason)
        for line in explain(plan)
    ]
    print_table(f"{request.pipeline.name} for {request.interval}", ("stage", "action", "count", "partitions", "why"), rows)
    typer.echo(str(plan.tally))
