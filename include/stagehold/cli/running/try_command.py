"""`stagehold try`: compute one partition of a stage, show its rows and what its gate says, and keep nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import (
    AsJson,
    Interval,
    Params,
    PipelineName,
    RunOptions,
    request_asked,
    stage_asked,
)
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.gates.verdicts import GateVerdict
    from stagehold.run.here.trial import StageTrial

SHOWN = 20
StageName = Annotated[str, typer.Argument(help="The stage to compute.")]
Partition = Annotated[int, typer.Option("--partition", min=0, help="Which partition of it.")]
Rows = Annotated[int, typer.Option("--rows", min=0, help="Most rows to show.")]


def try_(
    pipeline: PipelineName,
    stage: StageName,
    interval: Interval = None,
    partition: Partition = 0,
    rows: Rows = SHOWN,
    param: Params = None,
    as_json: AsJson = False,
) -> None:
    """Compute one partition of a stage and show its rows; nothing is kept.

    It is computed as a run would, from outputs that are there; what is not is computed on the way. Its gate judges it,
    and the exit code is 1 if that refuses it.
    """
    from stagehold.run.here.trial import try_stage

    settings = load_settings()
    request = request_asked(pipeline, "try", RunOptions(interval=interval, param=param), settings)
    stage_asked(request.pipeline, stage)
    trial = try_stage(request, stage, partition, settings, print_progress, most=rows)
    subject = f"{stage}[{partition}] of {request.interval}"
    if as_json:
        print_document(_document(subject, trial))
    else:
        _show(subject, trial)
    if trial.refused:
        raise typer.Exit(1)


def _show(subject: str, trial: StageTrial) -> None:
    from stagehold.viewer.read_rows import shown

    print_table(subject, trial.columns, [[shown(row[name]) for name in trial.columns] for row in trial.rows])
    told = f"; computed on the way: {', '.join(trial.along)}" if trial.along else ""
    typer.echo(f"{len(trial.rows)} of {trial.count} rows, in {trial.seconds:.1f} s{told}")
    if trial.counters:
        print_table("Counters", ("counter", "count"), [(name, f"{count:,}") for name, count in trial.counters.items()])
    if trial.verdicts:
        print_table("Its gate", ("expectation", "severity", "verdict", "seen"), map(_verdict, trial.verdicts))
    typer.echo("Nothing was written or recorded.")


def _verdict(verdict: GateVerdict) -> Sequence[str]:
    return verdict.expectation, verdict.severity, "passed" if verdict.passed else "FAILED", verdict.observed


def _document(subject: str, trial: StageTrial) -> dict[str, Any]:
    from stagehold.viewer.read_rows import plain

    verdicts = [
        dict(zip(("expectation", "severity", "verdict", "seen"), _verdict(each), strict=True))
        for each in trial.verdicts
    ]
    rows = [{name: plain(value) for name, value in row.items()} for row in trial.rows]
    return {
        "partition": subject,
        "columns": trial.columns,
        "rows": rows,
        "count": trial.count,
        "seconds": round(trial.seconds, 1),
        "computed_on_the_way": trial.along,
        "verdicts": verdicts,
        "counters": dict(trial.counters),
    }
