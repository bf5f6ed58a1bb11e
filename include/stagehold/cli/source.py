"""`stagehold source`: what intervals have taken of incremental sources."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from stagehold.cli.output import print_document, print_table
from stagehold.cli.request import AsJson, recorded_interval, stage_asked
from stagehold.settings import load_settings

source = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What intervals have taken of incremental sources."
)

StageName = Annotated[str, typer.Argument(metavar="STAGE", help="The source stage, by name.")]
Pipeline = Annotated[str, typer.Option("--pipeline", help="Name of the stage's pipeline.")]
Interval = Annotated[str, typer.Option("--interval", help="The interval that takes its files anew.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which files change.")]


@source.callback()
def sources() -> None:
    """What intervals have taken of incremental sources."""


@source.command("retake")
def retake(
    stage: StageName, pipeline: Pipeline, interval: Interval, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Have an interval take its files anew, as they are now, if nothing made from them is published."""
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.retake import Retake
    from stagehold.run.retake import retake as take_anew
    from stagehold.spec.loader import find_pipeline

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    asked = stage_asked(declared, stage)
    key = recorded_interval(interval, pipeline, settings)
    with open_ledger(settings) as ledger:
        changes = take_anew(Retake(declared, asked, key), ledger, settings, dry_run=dry_run)
    if as_json:
        print_document(
            {"stage": stage, "interval": key, "dry_run": dry_run, "changes": [asdict(change) for change in changes]}
        )
        return
    if changes:
        print_table(f"Files of {stage} for {key}", ("change", "file"), [(one.change, one.path) for one in changes])
    would = "would take" if dry_run else "takes"
    typer.echo(
        f"{key} {would} {len(changes)} files otherwise than before; `stagehold run {pipeline} --interval "
        f"'{key}'` reads them"
    )
