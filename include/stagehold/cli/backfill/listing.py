"""Prints the backfills of a pipeline that were begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_table

if TYPE_CHECKING:
    from stagehold.run.backfill.backfill_runs import KnownBackfill
    from stagehold.settings import Settings

NEWEST = 20
COLUMNS = ("backfill", "asked for", "by", "from", "to", "intervals", "next")


def show_backfills(pipeline: str, settings: Settings, *, as_json: bool) -> None:
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.backfill_runs import known_backfills

    with open_ledger(settings) as ledger:
        found = known_backfills(pipeline, ledger, NEWEST)
    if as_json:
        print_document({"pipeline": pipeline, "backfills": list(map(_document, found))})
    elif found:
        print_table(f"backfills of {pipeline}", COLUMNS, list(map(_row, found)))
    else:
        typer.echo(f"No backfill was begun. `stagehold backfill {pipeline} --from DATE` begins one.")


def _row(one: KnownBackfill) -> Sequence[str]:
    asked = one.backfill
    counts = ", ".join(f"{count} {state}" for state, count in one.counts.items())
    return (
        asked.backfill_id,
        moment(asked.requested_at),
        asked.asked_by,
        asked.choice.first,
        asked.choice.last,
        counts,
        one.resume or "",
    )


def _document(one: KnownBackfill) -> dict[str, Any]:
    asked = one.backfill
    intervals = [
        {"interval": key, "state": state, "run_id": one.runs[key].run_id if key in one.runs else None}
        for key, state in one.states.items()
    ]
    about = {"backfill": asked.backfill_id, "asked_by": asked.asked_by, "requested_at": asked.requested_at}
    return {**about, **asdict(asked.choice), "intervals": intervals, "next": one.resume}
