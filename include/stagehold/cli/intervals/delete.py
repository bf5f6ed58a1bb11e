"""`stagehold intervals delete`: take intervals out of tables and lake."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.output import print_document, print_table
from stagehold.cli.request import AsJson, PipelineName, recorded_interval
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.clearing.place import Cleared
    from stagehold.run.intervals.deleting import IntervalDeletion
    from stagehold.run.workplace import Workplace

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
    from stagehold.run.intervals.deleting import IntervalDeletion
    from stagehold.spec.loader import find_pipeline

    settings, who = load_settings(), by or getpass.getuser()
    declared = find_pipeline(pipeline, settings)
    keys = list(dict.fromkeys(recorded_interval(one, pipeline, settings) for one in intervals))
    with _workplace(settings) as place:
        asked = [IntervalDeletion.of(declared, key, place, who, reason) for key in keys]
        for one in asked:
            one.refuse(together=keys)
        shown = [_document(one) for one in asked]
        cleared = [freed for one in _latest_first(asked) for freed in one.carry_out()] if yes else []
    if as_json:
        print_document({"pipeline": pipeline, "deleted": yes, "intervals": shown, "freed": list(map(asdict, cleared))})
    else:
        _show(asked, shown, cleared, deleted=yes)


def _latest_first(asked: Sequence[IntervalDeletion]) -> Sequence[IntervalDeletion]:
    """Whoever dies in between leaves no interval without that which it went on from."""
    return sorted(asked, key=lambda one: one.place.request.interval, reverse=True)


def _document(one: IntervalDeletion) -> dict[str, Any]:
    stages = [asdict(stage) for stage in one.stages]
    return {"interval": one.place.request.interval, "stages": stages, "savepoints": one.savepoints}


def _show(
    asked: Sequence[IntervalDeletion],
    shown: Sequence[dict[str, Any]],
    cleared: Sequence[Cleared],
    *,
    deleted: bool,
) -> None:
    from rich.filesize import decimal

    rows = [_cells(one["interval"], stage) for one in shown for stage in one["stages"]]
    print_table("deleted" if deleted else "would be deleted", COLUMNS, rows)
    for one in shown:
        if one["savepoints"]:
            typer.echo(f"{one['interval']}: kept for savepoints is what they need: {', '.join(one['savepoints'])}")
    if deleted:
        typer.echo(f"{decimal(sum(freed.bytes for freed in cleared))} freed.")
        return
    size = sum(stage["bytes"] for one in shown for stage in one["stages"])
    typer.echo(f"{decimal(size)} would be freed at most; nothing was changed. Add --yes to do it.")


def _cells(interval: str, stage: dict[str, Any]) -> tuple[str, ...]:
    from rich.filesize import decimal

    figures = (f"{stage['partitions']:,}", f"{stage['rows']:,}", f"{stage['files']:,}", decimal(stage["bytes"]))
    return interval, stage["stage"], *figures, stage["table"] or ""


@contextmanager
def _workplace(settings: Settings) -> Iterator[Workplace]:
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.attempt.spark_engine import SparkEngine
    from stagehold.run.faults import Faults
    from stagehold.run.workplace import Workplace

    def progress(line: str) -> None:
        typer.echo(line, err=True)

    with open_ledger(settings) as ledger:
        yield Workplace(ledger, settings, progress, SparkEngine(settings, progress), Faults(settings.home_path, ""))
