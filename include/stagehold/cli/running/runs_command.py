"""`stagehold runs`: what each run of a pipeline did about each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.lease_texts import state_of_run
from stagehold.cli.common.output import ShownTable, moment, print_document
from stagehold.cli.common.request import AsJson, PipelineName
from stagehold.model.standing import StageOutcome
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.run.intervals.run_matrix import RunLine, RunMatrix, RunsAsked, StageSquare
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="So many, those that began last.")]
Before = Annotated[
    str | None, typer.Option("--before", metavar="RUN", help="Those that began before this run, to turn the page.")
]
Outcome = Annotated[
    StageOutcome | None, typer.Option("--outcome", help="Runs in which some stage came to this. Default: all runs.")
]
StageName = Annotated[
    str | None, typer.Option("--stage", metavar="STAGE", help="With --outcome: runs in which this stage came to it.")
]


def runs(
    pipeline: PipelineName,
    limit: Limit = 20,
    before: Before = None,
    outcome: Outcome = None,
    stage: StageName = None,
    as_json: AsJson = False,
) -> None:
    """Show what each run of a pipeline did about each stage, the last run first.

    A stage was reused, ran, was healed, judged again, blocked, or had been released; beside that stands the work that
    was not done again.
    """
    from stagehold.run.intervals.run_matrix import RunsAsked
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    found = runs_of(declared, RunsAsked(limit, before, outcome, stage), settings)
    if as_json:
        lines = [{**asdict(line), "spared": line.spared} for line in found.lines]
        told = {"pipeline": pipeline, "runs": lines, "following": found.following, "looked_at": found.looked_at}
        print_document(told)
        return
    runs_table(declared, found).print()


def runs_of(pipeline: Pipeline, asked: RunsAsked, settings: Settings) -> RunMatrix:
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.run_matrix import run_matrix
    from stagehold.run.lease.lost_attempts import goes_on

    with open_ledger(settings) as ledger:
        return run_matrix(pipeline, ledger, asked, lambda run: goes_on(run, ledger))


def runs_table(pipeline: Pipeline, found: RunMatrix) -> ShownTable:
    columns = (*_COLUMNS, *(stage.name for stage in pipeline.stages), "run")
    rows = [_row(line) for line in found.lines]
    return ShownTable(f"runs of {pipeline.name} (times in UTC)", columns, rows, (_foot(pipeline.name, found),))


_COLUMNS = ("interval", "state", "started", "work", "spared")


def _row(line: RunLine) -> Sequence[str]:
    run, work = line.run, sum(square.seconds for square in line.squares)
    told = (run.interval, _state(line), moment(run.started_at), f"{work:.1f} s", f"{line.spared:.1f} s")
    return (*told, *map(_square, line.squares), run.run_id)


def _state(line: RunLine) -> str:
    lost = next((square.lost for square in line.squares if square.lost), None)
    return state_of_run(line.run, None if line.active else lost)


def _square(square: StageSquare) -> str:
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in square.counts.items())
    if square.outcome is StageOutcome.NONE:
        return ""
    told = counts if square.outcome in square.counts else ": ".join(filter(None, (square.outcome.value, counts)))
    return f"{told} ({square.attempts} attempts)" if square.attempts > 1 else told


def _foot(pipeline: str, found: RunMatrix) -> str:
    if found.following:
        more = f"`stagehold runs {pipeline} --before '{found.following}'`, with the same options, shows what is before."
        return more if found.lines else f"None of the {found.looked_at} runs that were looked at is like that. {more}"
    if found.lines:
        return "`stagehold status RUN` shows a run in detail."
    return f"No run on record is like that. `stagehold intervals list {pipeline}` shows what is there."
