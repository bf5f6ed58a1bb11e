"""`stagehold gc`: delete what nobody needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import AsJson
from stagehold.errors import InvalidArgument
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.run.clearing.cleared_interval import Cleared
    from stagehold.run.clearing.garbage_collector import Collected

COLUMNS = ("pipeline", "interval", "of", "why", "files", "size")
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would go; what is worked on now is shown as well.")
]
OlderThan = Annotated[
    str,
    typer.Option(
        "--older-than",
        help="What was computed again, refused or replaced stays for so long after that: 30d, 12h.",
    ),
]
TEXTS = {
    "released": "nothing that runs reads it",
    "superseded": "computed again since",
    "refused": "its gate said no, and it was computed again since",
    "stray": "left by an attempt that died; no record and no commit knows of it",
    "checkpoint": "replaced by newer ones",
}


def gc(dry_run: DryRun = False, older_than: OlderThan = "30d", as_json: AsJson = False) -> None:
    """Delete released outputs, what was superseded or refused, what dead attempts left, replaced checkpoints, and old
    history.

    Nothing goes that is consumable, that a checkpoint points to, or that somebody reads; outputs of pinned intervals
    stay, and intervals that are worked on are passed over. What a pipeline with a bad file left stays, and the command
    ends with 1 to say so.
    """
    from stagehold.run.clearing.garbage_collector import collect_garbage
    from stagehold.spec.loading.loader import load_each_pipeline
    from stagehold.spec.pipeline import Pipeline

    settings, before = load_settings(), _moment(older_than)
    results = load_each_pipeline(settings)
    unread = [result for result in results if not isinstance(result, Pipeline)]
    pipelines = [result for result in results if isinstance(result, Pipeline)]
    found = collect_garbage(pipelines, before, settings, print_progress, dry_run=dry_run)
    if as_json:
        print_document({"dry_run": dry_run, "older_than": before, "bytes": found.bytes, **asdict(found)})
    else:
        _show(found, dry_run=dry_run)
    for error in unread:
        typer.echo(f"not looked at: {error}", err=True)
    if unread:
        raise typer.Exit(1)


def _moment(older_than: str) -> datetime:
    from stagehold.model.units import DURATION_ALLOWED, read_duration

    try:
        return datetime.now(UTC) - read_duration(older_than)
    except (ValueError, OverflowError):
        raise InvalidArgument("--older-than", older_than, DURATION_ALLOWED) from None


def _show(found: Collected, *, dry_run: bool) -> None:
    from rich.filesize import decimal

    if found.cleared:
        print_table("would be deleted" if dry_run else "deleted", COLUMNS, [_row(item) for item in found.cleared])
        typer.echo("\n".join(_meanings(found.cleared)))
    rows, files = sum(vars(found.forgotten).values()), found.chronicle.files_before - found.chronicle.files_after
    if rows or files:
        verb = "would leave" if dry_run else "left"
        typer.echo(f"{rows} rows {verb} the ledger, and {files} files its chronicle: history that decides nothing.")
    if found.archived:
        verb = "would be" if dry_run else "are"
        where = "archived in the lake, for `stagehold status RUN` and the run's page"
        typer.echo(f"{len(found.archived)} runs {verb} {where}.")
    for kept in found.kept:
        typer.echo(f"kept: {kept}")
    for text in found.passed_over:
        typer.echo(f"passed over: {text}")
    typer.echo(f"{decimal(found.bytes)} {'would be deleted' if dry_run else 'deleted'}.")


def _row(cleared: Cleared) -> tuple[str, ...]:
    from rich.filesize import decimal

    return cleared.pipeline, cleared.interval, cleared.stage, cleared.why, str(cleared.files), decimal(cleared.bytes)


def _meanings(cleared: Sequence[Cleared]) -> list[str]:
    return [f"{why}: {TEXTS[why]}" for why in dict.fromkeys(item.why for item in cleared)]
