"""`stagehold source`: what pipelines read, and what intervals have taken of incremental sources."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_table
from stagehold.cli.common.request import AsJson, StagesPipeline, recorded_interval, stage_asked
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.intervals.retake import Retake

source = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What pipelines read, and what intervals have taken of it."
)

StageName = Annotated[str, typer.Argument(metavar="STAGE", help="The source stage, by name.")]
Interval = Annotated[str, typer.Option("--interval", help="The interval that takes its files anew.")]
FromVersion = Annotated[
    int | None,
    typer.Option(
        "--from-version",
        min=0,
        help="Of a Delta table: take what it has now of what its versions from this one on brought, and no other "
        "interval has published.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which files change.")]


@source.callback()
def sources() -> None:
    """What pipelines read, and what intervals have taken of it."""


@source.command("list")
def list_sources(as_json: AsJson = False) -> None:
    """List the sources that pipelines read: what they are, whose, how old, and by whom they are read.

    Ends with 1 if one is older than its `error_after`.
    """
    from stagehold.sources.freshness import declared_sources

    found = declared_sources(load_settings())
    if as_json:
        print_document({"sources": [each.described for each in found]})
    else:
        columns = ("source", "kind", "owner", "newest", "freshness", "read by")
        print_table("Sources", columns, [each.row for each in found])
    if any(each.too_old for each in found):
        raise typer.Exit(1)


@source.command("retake")
def retake(
    stage: StageName,
    pipeline: StagesPipeline,
    interval: Interval,
    from_version: FromVersion = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Have an interval take its files anew, as they are now, if nothing made from them is published."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.retake import Retake
    from stagehold.run.intervals.retake import retake as take_anew
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    asked = stage_asked(declared, stage)
    key = recorded_interval(interval, pipeline, settings)
    if from_version is not None:
        _retake_table(Retake(declared, asked, key), from_version, settings, dry_run=dry_run, as_json=as_json)
        return
    with open_ledger(settings) as ledger:
        changes = take_anew(Retake(declared, asked, key), ledger, settings, dry_run=dry_run)
    if as_json:
        print_document(
            {
                "stage": stage,
                "interval": key,
                "dry_run": dry_run,
                "changes": [{"path": path, "change": change} for path, change in changes.items()],
            }
        )
        return
    if changes:
        print_table(
            f"Files of {stage} for {key}", ("change", "file"), [(change, path) for path, change in changes.items()]
        )
    would = "would take" if dry_run else "takes"
    typer.echo(
        f"{key} {would} {len(changes)} files otherwise than before; `stagehold run {pipeline} --interval "
        f"'{key}'` reads them"
    )


def _retake_table(wanted: Retake, from_version: int, settings: Settings, *, dry_run: bool, as_json: bool) -> None:
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.retake import retake_table

    with open_ledger(settings) as ledger:
        done = retake_table(wanted, from_version, ledger, settings, dry_run=dry_run)
    if as_json:
        about = {"stage": wanted.stage.name, "interval": wanted.interval, "dry_run": dry_run}
        print_document({**about, **asdict(done), "left_out": done.left_out})
        return
    would = "would take" if dry_run else "takes"
    typer.echo(f"{wanted.interval} {would} {done.after} ({done.bytes:,} bytes); before, it took {done.before}")
    for other in done.gave_up:
        typer.echo(f"{other} {'would give' if dry_run else 'gives'} up what it had taken and published nothing of")
    if done.left_out:
        typer.echo(f"{done.left_out} {'would be' if dry_run else 'are'} left out, which no later interval takes")
    run = f"stagehold run {wanted.pipeline.name} --interval '{wanted.interval}'"
    typer.echo(f"`{run}` reads them")
