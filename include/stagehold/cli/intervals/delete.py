"""`stagehold intervals delete`: take intervals out of tables and lake."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import AsJson, PipelineName, recorded_interval
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.run.clearing.cleared_interval import Cleared
    from stagehold.run.intervals.interval_deletion import AnnouncedDeletion, DeletedStage, IntervalDeletion

COLUMNS = ("interval", "stage", "partitions", "rows", "files", "size", "rows leave the table")
Intervals = Annotated[
    list[str], typer.Argument(metavar="INTERVAL...", help="Intervals, as `stagehold intervals list` shows them.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it. Without this it is only shown what would go.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is kept in the tables' history and shown with the run.")]
By = Annotated[str | None, typer.Option("--by", help="Who deletes it. Default: you.")]


def delete(
    pipeline: PipelineName,
    intervals: Intervals,
    yes: Yes = False,
    reason: Reason = "",
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Delete intervals: rows leave the published tables, files and checkpoints go. --yes does it.

    Savepoints keep the files that they need. A later run of the interval computes it again, and takes the same of
    incremental sources as before. What happened stays on record, and so do Airflow's own runs.
    """
    from stagehold.run.here.region import open_workplace
    from stagehold.run.intervals.interval_deletion import IntervalDeletion
    from stagehold.spec.loading.loader import find_pipeline

    settings, who = load_settings(), by or getpass.getuser()
    declared = find_pipeline(pipeline, settings)
    keys = list(dict.fromkeys(recorded_interval(interval, pipeline, settings) for interval in intervals))
    with open_workplace(settings, print_progress) as place:
        asked = [IntervalDeletion.of(declared, key, place, who, reason) for key in keys]
        for deletion in asked:
            deletion.refuse(together=keys)
        shown = [deletion.announced() for deletion in asked]
        cleared = [freed for deletion in _latest_first(asked) for freed in deletion.carry_out()] if yes else []
    if as_json:
        facts = {"intervals": list(map(asdict, shown)), "freed": list(map(asdict, cleared))}
        print_document({"pipeline": pipeline, "deleted": yes, **facts})
    else:
        _show(shown, cleared, deleted=yes)


def _latest_first(asked: Sequence[IntervalDeletion]) -> Sequence[IntervalDeletion]:
    """The intervals, latest first: a process that dies in between leaves no interval without the one that it went on
    from.
    """
    return sorted(asked, key=lambda deletion: deletion.place.request.interval, reverse=True)


def _show(shown: Sequence[AnnouncedDeletion], cleared: Sequence[Cleared], *, deleted: bool) -> None:
    from rich.filesize import decimal

    rows = [_cells(deletion.interval, stage) for deletion in shown for stage in deletion.stages]
    print_table("deleted" if deleted else "would be deleted", COLUMNS, rows)
    for deletion in shown:
        if deletion.savepoints:
            typer.echo(
                f"{deletion.interval}: what savepoints need of it is kept for them: {', '.join(deletion.savepoints)}"
            )
    if deleted:
        typer.echo(f"{decimal(sum(freed.bytes for freed in cleared))} freed.")
        return
    size = decimal(sum(deletion.bytes for deletion in shown))
    typer.echo(f"{size} would be freed at most; nothing was changed. Add --yes to do it.")


def _cells(interval: str, stage: DeletedStage) -> tuple[str, ...]:
    from rich.filesize import decimal

    figures = (f"{stage.partitions:,}", f"{stage.rows:,}", f"{stage.files:,}", decimal(stage.bytes))
    return interval, stage.stage, *figures, stage.table or ""
