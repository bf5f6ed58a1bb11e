"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.request import AsJson, Interval, Params, PipelineName, RestoreFrom, interval_or_today, parse_params
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from rich.table import Table

    from stagehold.plan.resume import ResumePlan

COLOURS = {"reuse": "green", "run": "yellow", "heal": "magenta", "blocked": "red", "release": "dim"}
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
    from stagehold.run.local_run import current_plan
    from stagehold.run.planning import RunRequest

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    wanted = interval_or_today(interval)
    found = current_plan(RunRequest(declared, run_id, wanted, parse_params(param, declared.params), restore_from_stage), settings)
    if as_json:
        typer.echo(plan_json(pipeline, wanted, found))
        return
    from rich.console import Console

    Console().print(plan_table(f"{pipeline} for {wanted}", found))


def plan_json(pipeline: str, interval: str, plan: ResumePlan) -> str:
    import json

    from stagehold.plan.explanation import explain

    decisions = [
        {"stage": one.stage, "partition": one.partition, "action": one.action.value, "reason": one.reason} for one in plan.decisions
    ]
    summary = [asdict(line) for line in explain(plan)]
    return json.dumps({"pipeline": pipeline, "interval": interval, "summary": summary, "decisions": decisions}, indent=2)


def plan_table(title: str, plan: ResumePlan) -> Table:
    """One row per stage, action and reason, with a last line that says how much is saved."""
    from rich.table import Table

    from stagehold.plan.explanation import explain, partition_ranges
    from stagehold.plan.resume import Action

    computing = sum(decision.action.computes for decision in plan.decisions)
    caption = f"{plan.count(Action.REUSE)} partitions reused, {computing} run, {plan.count(Action.BLOCKED)} blocked"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for column in ("stage", "action", "count", "partitions", "why"):
        table.add_column(column, overflow="fold")
    for line in explain(plan):
        colour = COLOURS[line.action]
        count = f"{len(line.partitions)} of {line.total}"
        table.add_row(line.stage, f"[{colour}]{line.action}[/]", count, partition_ranges(line.partitions), line.reason)
    return table
