"""`stagehold sweep`: delete what dead attempts left in the lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.output import print_document, print_table
from stagehold.cli.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.run.attempt.sweeping import RegionSweep

COLUMNS = ("pipeline", "interval", "region", "attempt", "files", "size", "folder")
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would go; regions that are worked on now are shown as well.")
]


def sweep(dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Delete files of dead attempts that no record and no commit knows of.

    What a pipeline with a bad file left stays, and the command ends with 1 to say so.
    """
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.attempt.sweeping import sweep_lake
    from stagehold.spec.loader import load_each_pipeline
    from stagehold.spec.pipeline import Pipeline

    settings = load_settings()
    results = load_each_pipeline(settings)
    unread = [result for result in results if not isinstance(result, Pipeline)]
    with open_ledger(settings) as ledger:
        sweeps = sweep_lake(
            [result for result in results if isinstance(result, Pipeline)], ledger, settings, dry_run=dry_run
        )
    if as_json:
        print_document(
            {
                "dry_run": dry_run,
                "bytes": sum(one.bytes for one in sweeps),
                "regions": [_document(one) for one in sweeps],
            }
        )
    else:
        _show(sweeps, dry_run=dry_run)
    for error in unread:
        typer.echo(f"not swept: {error}", err=True)
    if unread:
        raise typer.Exit(1)


def _show(sweeps: Sequence[RegionSweep], *, dry_run: bool) -> None:
    from rich.filesize import decimal

    found = [cells for one in sweeps for cells in _rows(one)]
    if found:
        print_table("would be deleted" if dry_run else "deleted", COLUMNS, found)
    for one in sweeps:
        if one.passed_over:
            typer.echo(f"passed over: {one.passed_over}")
    said = "would be deleted: no record and no commit knows of it" if dry_run else "deleted"
    typer.echo(f"{decimal(sum(one.bytes for one in sweeps))} {said}.")


def _rows(sweep: RegionSweep) -> list[tuple[str, ...]]:
    from rich.filesize import decimal

    attempt = sweep.attempt
    place = (attempt.pipeline, attempt.interval, attempt.region)
    return [
        (*place, one.attempt_id, str(one.files), decimal(one.bytes), f"{one.uri}/{one.folder}") for one in sweep.strays
    ]


def _document(sweep: RegionSweep) -> dict[str, Any]:
    attempt = sweep.attempt
    return {
        "pipeline": attempt.pipeline,
        "interval": attempt.interval,
        "region": attempt.region,
        "passed_over": sweep.passed_over,
        "folders": [
            {
                "attempt": one.attempt_id,
                "folder": f"{one.uri}/{one.folder}",
                "files": one.files,
                "bytes": one.bytes,
                "why": "its attempt is fenced, and no record and no commit knows of it",
            }
            for one in sweep.strays
        ],
    }
