"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import print_document, print_explanation
from stagehold.cli.common.request import AsJson, PipelineName, RunOptions, request_asked, with_run_options
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.cli.running.restore_plan import RestorePreview
    from stagehold.plan.resume.decisions import ResumePlan
    from stagehold.run.planning.planning import RunRequest

RunId = Annotated[
    str,
    typer.Option("--run-id", help="Plan for this run; matters after --restore-from-stage, where its own work counts."),
]


@with_run_options
def plan(pipeline: PipelineName, options: RunOptions, run_id: RunId = "", as_json: AsJson = False) -> None:
    """Show what would be reused and what would run, with the reason for each partition."""
    settings = load_settings()
    show_plan(request_asked(pipeline, run_id, options, settings), settings, as_json=as_json)


def show_plan(request: RunRequest, settings: Settings, *, as_json: bool) -> None:
    """:raises StageholdError: after the plan was shown, if a run of it would be refused"""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.cli.running.restore_plan import RestorePreview
    from stagehold.plan.resume.planner import resume_plan
    from stagehold.run.planning.current_plan import current_situation
    from stagehold.run.planning.refusal import (
        left_to_others,
        refuse_broken_code,
        refuse_spoiled_sources,
        refuse_too_early,
    )
    from stagehold.run.planning.restoring import remark_on, what_was_released

    situation = current_situation(request, settings)
    found = resume_plan(situation)
    preview = RestorePreview.of(request, situation, found)
    with open_ledger(settings) as ledger:
        left, remark = left_to_others(request, ledger, settings), remark_on(request, ledger)
    if as_json:
        _print_json(request, found, preview, left, remark)
    else:
        if preview:
            preview.show()
        if remark:
            typer.echo(remark)
        _print_table(request, found)
        if released := what_was_released(request, found):
            typer.echo(released)
        for line in left:
            typer.echo(line)
    refuse_broken_code(request.pipeline, found, settings)
    refuse_too_early(request.pipeline, found)
    with open_ledger(settings) as ledger:
        refuse_spoiled_sources(request, found, ledger, settings)


def _print_json(
    request: RunRequest, plan: ResumePlan, preview: RestorePreview | None, left: tuple[str, ...], remark: str | None
) -> None:
    from stagehold.plan.resume.plan_summary import explain
    from stagehold.plan.resume.released_outputs import released_outputs
    from stagehold.run.planning.restoring import what_was_released

    decisions = [
        {
            "stage": decision.stage,
            "partition": decision.partition,
            "action": decision.action,
            "reason": str(decision.reason),
        }
        for decision in plan.decisions
    ]
    about: dict[str, Any] = {"pipeline": request.pipeline.name, "interval": request.interval, **asdict(plan.counts)}
    if remark:
        about["remark"] = remark
    if released := what_was_released(request, plan):
        about["released"] = {"text": released, "outputs": [asdict(output) for output in released_outputs(plan)]}
    if left:
        about["left_to_others"] = left
    if preview:
        about["restore"] = preview.document()
    print_document({**about, "summary": [asdict(line) for line in explain(plan)], "decisions": decisions})


def _print_table(request: RunRequest, plan: ResumePlan) -> None:
    print_explanation(f"{request.pipeline.name} for {request.interval}", plan)
    typer.echo(str(plan.counts))
