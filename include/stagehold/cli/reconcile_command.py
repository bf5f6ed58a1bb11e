"""`stagehold reconcile`: bring a lost or old ledger up to what the lake knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.chronicle.differences import Difference, Disagreement

COLUMNS = ("what", "pipeline", "interval", "count", "then", "of")
SUBJECTS_SHOWN = 4
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what ledger and lake say differently.")]


def reconcile(dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Compare the ledger with the lake, rebuild what the ledger lacks, and say what cannot be repaired.

    Ends with 1 if something is left that a person has to look at. Data that is gone is no such thing: the next run that
    needs it computes it again.
    """
    from stagehold.run.upkeep.reconcile import reconcile as compare_and_repair
    from stagehold.spec.loading.loader import load_each_pipeline
    from stagehold.spec.pipeline import Pipeline

    settings = load_settings()
    results = load_each_pipeline(settings)
    pipelines = [result for result in results if isinstance(result, Pipeline)]
    unread = [result for result in results if not isinstance(result, Pipeline)]
    found = compare_and_repair(pipelines, settings, dry_run=dry_run)
    if as_json:
        print_document({"dry_run": dry_run, "disagreements": [_document(disagreement) for disagreement in found]})
    else:
        _show(found, dry_run=dry_run)
    for error in unread:
        typer.echo(f"only what ledger and chronicle say of it was compared: {error}", err=True)
    if unread or any(disagreement.difference.needs_a_person for disagreement in found):
        raise typer.Exit(1)


def _show(found: Sequence[Disagreement], *, dry_run: bool) -> None:
    if not found:
        typer.echo("Ledger and lake say the same.")
        return
    left_alone = [disagreement for disagreement in found if not disagreement.difference.repaired]
    rows = [
        *_in_short([disagreement for disagreement in found if disagreement.difference.repaired], dry_run=dry_run),
        *map(_row, left_alone),
    ]
    print_table("ledger and lake", COLUMNS, rows)
    for disagreement in found:
        if disagreement.detail:
            typer.echo(f"{disagreement.subject}: {disagreement.detail}")
    repaired = sum(disagreement.count for disagreement in found if disagreement.difference.repaired)
    left = sum(disagreement.count for disagreement in left_alone)
    typer.echo(f"{repaired} {'to be repaired' if dry_run else 'repaired'}, {left} left.")
    if dry_run and repaired:
        typer.echo("`stagehold reconcile` repairs them.")
    elif left:
        typer.echo("`stagehold plan PIPELINE --interval INTERVAL` shows what the next run makes of what is left.")


def _in_short(repaired: Sequence[Disagreement], *, dry_run: bool) -> list[tuple[str, ...]]:
    """One row for all of an interval that is repaired in the same way."""
    alike: dict[tuple[Difference, str, str], list[Disagreement]] = defaultdict(list)
    for disagreement in repaired:
        alike[disagreement.difference, disagreement.pipeline or "", disagreement.interval or ""].append(disagreement)
    return [
        (
            difference.replace("_", " "),
            pipeline,
            interval,
            str(sum(disagreement.count for disagreement in disagreements)),
            f"{'to be ' if dry_run else ''}{_then(difference)}",
            _subjects([disagreement.subject for disagreement in disagreements]),
        )
        for (difference, pipeline, interval), disagreements in alike.items()
    ]


def _subjects(subjects: Sequence[str]) -> str:
    more = len(subjects) - SUBJECTS_SHOWN
    return ", ".join((*subjects[:SUBJECTS_SHOWN], *([f"and {more} more"] if more > 0 else [])))


def _row(left: Disagreement) -> tuple[str, ...]:
    from stagehold.model.partition_set import PartitionSet

    subject = f"{left.subject}[{PartitionSet(left.partitions)}]" if left.partitions else left.subject
    place = (left.difference.replace("_", " "), left.pipeline or "", left.interval or "")
    return (*place, str(left.count), f"left: {_then(left.difference)}", subject)


def _then(difference: Difference) -> str:
    from stagehold.chronicle.differences import Difference

    return {
        Difference.ROW_MISSING: "written into the ledger",
        Difference.COMMIT_UNRECORDED: "adopted from the table's log",
        Difference.NOT_CHRONICLED: "written into the lake",
        Difference.EPOCH_BEHIND: "raised",
        Difference.ROW_UNCOMMITTED: "the next run reads its files if they are there",
        Difference.DATA_CHANGED: "the next run computes it again",
        Difference.TORN: "the logs tell what is published",
    }[difference]


def _document(disagreement: Disagreement) -> dict[str, object]:
    return {**asdict(disagreement), "repaired": disagreement.difference.repaired}
