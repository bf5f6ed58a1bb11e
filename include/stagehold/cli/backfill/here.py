"""Runs a backfill in this process and tells how each of its intervals ended."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from stagehold.cli.common.output import print_progress, print_table
from stagehold.cli.running.run import CANCELLED

if TYPE_CHECKING:
    from stagehold.run.backfill.backfill_runs import IntervalOutcome
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.task import RegionOutcome
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

COLUMNS = ("interval", "result", "computed", "reused", "seconds", "next")


def run_here(backfill_id: str, pipeline: Pipeline, settings: Settings) -> Sequence[IntervalOutcome]:
    """Progress goes to stderr. Ctrl-C and SIGTERM leave what is consumable, and the rest to `--resume`."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.backfill_runs import run_intervals
    from stagehold.run.here.local_run import run_locally
    from stagehold.spark.server.server import spark_server

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcomes: list[IntervalOutcome] = []
    again = f"stagehold backfill {pipeline.name} --resume {backfill_id}"
    try:
        with open_ledger(settings) as ledger:
            begun = ledger.backfills.get(pipeline.name, backfill_id)
            count = len(begun.intervals)
            print_progress(f"backfill {backfill_id} of {pipeline.name}: {count} to run, one after the other")
            print_progress(f"`{again}` goes on with it whenever it ends early")
            with spark_server(settings, f"backfill {backfill_id}"):

                def run(request: RunRequest) -> RegionOutcome:
                    return run_locally(request, settings, print_progress)

                for one in run_intervals(begun, pipeline, ledger, run):
                    outcomes.append(one)
                    print_progress(f"{one.interval}: {_result(one)} ({len(outcomes)} of {count})")
    except KeyboardInterrupt:
        text = f"Backfill {backfill_id} was interrupted. What is consumable is kept; `{again}` goes on from there."
        typer.secho(text, fg="red", err=True)
        raise typer.Exit(CANCELLED) from None
    return outcomes


def show_outcomes(backfill_id: str, outcomes: Sequence[IntervalOutcome]) -> None:
    print_table(f"backfill {backfill_id}", COLUMNS, [_cells(one) for one in outcomes])


def _cells(one: IntervalOutcome) -> tuple[str, ...]:
    outcome = one.outcome
    figures = (str(outcome.computed), str(outcome.reused), f"{outcome.seconds:.1f}") if outcome else ("", "", "")
    return one.interval, _result(one), *figures, f"stagehold resume {one.run_id}" if one.failure else ""


def _result(one: IntervalOutcome) -> str:
    if one.failure is not None:
        return "failed"
    if one.finished_before:
        return "finished before"
    return "finished" if one.outcome else "not begun"
