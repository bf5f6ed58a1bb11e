"""`stagehold run`: a pipeline without Airflow, through the same attempts an Airflow task makes."""

from __future__ import annotations

import signal
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.output import print_document
from stagehold.cli.request import AsJson, Interval, Params, PipelineName, RestoreFrom, interval_or_today, parse_params
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.planning import RunRequest

CANCELLED = 130  # as shells say of a program that was interrupted

RunId = Annotated[str | None, typer.Option("--run-id", help="Name of the run. Default: made from the pipeline and the time.")]


def run(
    pipeline: PipelineName,
    interval: Interval = None,
    restore_from_stage: RestoreFrom = None,
    param: Params = None,
    run_id: RunId = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline here and now; what is consumable already is reused."""
    from stagehold.model.spec_file import find_pipeline
    from stagehold.run.planning import RunRequest

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    name = run_id or f"{pipeline}/cli__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    params = parse_params(param, declared.params)
    run_here(RunRequest(declared, name, interval_or_today(interval), params, restore_from_stage), settings, as_json=as_json)


def run_here(request: RunRequest, settings: Settings, *, as_json: bool) -> None:
    """Run it with progress on stderr and the result on stdout. SIGTERM cancels it as Ctrl-C does."""
    from stagehold.run.local_run import run_locally

    typer.echo(f"run {request.run_id} of {request.pipeline.name} for {request.interval}", err=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        outcome = run_locally(request, settings, lambda line: typer.echo(line, err=True))
    except KeyboardInterrupt:
        typer.secho(
            f"{request.run_id} was cancelled. What is consumable is kept; `stagehold resume` goes on from there.", fg="red", err=True
        )
        raise typer.Exit(CANCELLED) from None
    if as_json:
        print_document({"run_id": request.run_id, "interval": request.interval, **asdict(outcome)})
    else:
        typer.echo(
            f"done: reused {outcome.reused} partitions, computed {outcome.computed} in {outcome.waves} waves, {outcome.seconds:.1f} s"
        )
