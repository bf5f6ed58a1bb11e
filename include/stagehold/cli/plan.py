"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.output import print_document, print_explanation, print_table
from stagehold.cli.request import (
    AllowNonRestored,
    AsJson,
    Interval,
    Params,
    PipelineName,
    RestoreFrom,
    RestoreSnapshot,
    RunOptions,
    request_asked,
)
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.plan.resume.decisions import ResumePlan
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.snapshots import BeginsWith

RunId = Annotated[
    str,
    typer.Option("--run-id", help="Plan for this run; matters after --restore-from-stage, where its own work counts."),
]


def plan(
    pipeline: PipelineName,
    interval: Interval = None,
    restore_from_stage: RestoreFrom = None,
    restore: RestoreSnapshot = None,
    allow_non_restored_state: AllowNonRestored = False,
    param: Params = None,
    run_id: RunId = "",
    as_json: AsJson = False,
) -> None:
    """Show what would be reused and what would run, with the reason for each partition."""
    settings = load_settings()
    request = request_asked(
        pipeline, run_id, RunOptions(interval, restore_from_stage, param, restore, allow_non_restored_state), settings
    )
    show_plan(request, settings, as_json=as_json)


def show_plan(request: RunRequest, settings: Settings, *, as_json: bool) -> None:
    """:raises StageholdError: after the plan was shown, if a run of it would be refused"""
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.local_run import current_plan
    from stagehold.run.planning.planning import begins_with_of
    from stagehold.run.planning.refusal import refuse_broken_code, refuse_spoiled_sources

    found = current_plan(request, settings)
    begins_with = begins_with_of(request)
    if as_json:
        _print_json(request, found, begins_with)
    else:
        if begins_with:
            _print_restore(begins_with, found)
        _print_table(request, found)
    refuse_broken_code(request.pipeline, found, settings)
    with open_ledger(settings) as ledger:
        refuse_spoiled_sources(request, found, ledger, settings)


def _print_restore(begins_with: BeginsWith, plan: ResumePlan) -> None:
    """What is taken over, and what it saves."""
    columns = ("stage", "was cut into", "takes over", "then")
    print_table(f"begins with {begins_with.name}", columns, list(_restore_rows(begins_with, plan)))
    typer.echo(f"What is taken over took {_seconds_saved(plan):.0f} s to compute.")


def _restore_rows(begins_with: BeginsWith, plan: ResumePlan) -> Iterator[tuple[str, ...]]:
    for one in begins_with.plan.stages:
        decisions = plan.of(one.stage)
        taken = sum(decision.restored and not decision.action.computes for decision in decisions)
        runs = sum(decision.action.computes for decision in decisions)
        cut = f"; it is cut into {one.partitions} now" if one.rescaled else ""
        yield one.stage, str(one.snapshot.parallelism), f"{taken} of {len(decisions)}", f"{runs} run{cut}"
    for name in begins_with.plan.starts_empty:
        yield name, "", "0", "starts empty: the checkpoint does not have it"
    for snapshot in begins_with.plan.left_behind:
        yield snapshot.shape.name, str(snapshot.parallelism), "0", "is left behind: the pipeline does not have it"


def _seconds_saved(plan: ResumePlan) -> float:
    taken = (one.record for one in plan.decisions if one.restored and not one.action.computes)
    return sum(record.seconds or 0 for record in taken if record)


def _print_json(request: RunRequest, plan: ResumePlan, begins_with: BeginsWith | None) -> None:
    from stagehold.plan.resume.explanation import explain

    decisions = [
        {"stage": one.stage, "partition": one.partition, "action": one.action, "reason": str(one.reason)}
        for one in plan.decisions
    ]
    about: dict[str, Any] = {"pipeline": request.pipeline.name, "interval": request.interval, **asdict(plan.tally)}
    if begins_with:
        about["restore"] = {
            "of": begins_with.name,
            "manifest": begins_with.restore.snapshot,
            "starts_empty": begins_with.plan.starts_empty,
            "left_behind": [one.shape.id for one in begins_with.plan.left_behind],
            "restored": sum(one.restored and not one.action.computes for one in plan.decisions),
            "seconds_saved": round(_seconds_saved(plan), 3),
        }
    print_document({**about, "summary": [asdict(line) for line in explain(plan)], "decisions": decisions})


def _print_table(request: RunRequest, plan: ResumePlan) -> None:
    print_explanation(f"{request.pipeline.name} for {request.interval}", plan)
    typer.echo(str(plan.tally))
