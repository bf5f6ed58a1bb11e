"""`stagehold accept`: say that data made by a stage's earlier code is as good as by the present one, on the record."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson, By, StagesPipeline, recorded_interval, stage_asked
from stagehold.errors import InvalidArgument, NothingToAccept
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.choices import Acceptance
    from stagehold.spec.pipeline import Stage

COLUMNS = ("stage", "interval", "part", "made with", "as good as with", "accepted by", "when", "why")
StageName = Annotated[str | None, typer.Argument(help="The stage whose recorded data is to count, by name.")]
Interval = Annotated[
    str | None, typer.Option("--interval", help="Only for this interval. Default: for every interval.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why the data is as good; kept with your name.")]
ListThem = Annotated[bool, typer.Option("--list", help="Only show what was accepted before.")]


def accept(
    pipeline: StagesPipeline,
    stage: StageName = None,
    interval: Interval = None,
    reason: Reason = "",
    by: By = None,
    list_them: ListThem = False,
    as_json: AsJson = False,
) -> None:
    """Reuse what a stage's earlier code made, although the code changed since."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.model.choices import Acceptance
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    interval = recorded_interval(interval, pipeline, settings) if interval else None
    with open_ledger(settings) as ledger:
        if list_them:
            _show(
                pipeline,
                [word for word in ledger.acceptances.of(pipeline) if interval in (None, word.interval)],
                as_json=as_json,
            )
            return
        declared = stage_asked(find_pipeline(pipeline, settings), stage or "")
        if not reason:
            raise InvalidArgument("--reason", reason, "a sentence that says why the data is as good")
        code = _present_code(declared, settings)
        words = [
            Acceptance(
                pipeline, interval, declared.id, recorded, code, by or getpass.getuser(), reason, datetime.now(UTC)
            )
            for recorded in _other_code(pipeline, declared, interval, code, ledger)
        ]
        ledger.acceptances.record(words)
        _show(pipeline, words, as_json=as_json)


def _present_code(stage: Stage, settings: Settings) -> str:
    from stagehold.code.stage_code import code_fingerprint

    found = code_fingerprint(stage.entries, Path(settings.project))
    if found.value is None:
        raise NothingToAccept(stage.name, f"its present code cannot be compared: {found.reason}")
    return found.value


def _other_code(pipeline: str, stage: Stage, interval: str | None, code: str, ledger: Ledger) -> tuple[str, ...]:
    """The code that made what is recorded now, where it does not count yet.

    :raises NothingToAccept: there is none.
    """
    from stagehold.model.records import Cell
    from stagehold.plan.grounds.content_verdicts import code_to_accept

    partitions = ledger.partitions
    records = (
        partitions.newest(Cell(pipeline, stage.id, interval))
        if interval
        else partitions.newest_everywhere(pipeline, stage.id)
    )
    holding = [
        word for word in ledger.acceptances.of(pipeline) if word.stage == stage.id and word.interval in (None, interval)
    ]
    found = code_to_accept(records, code, holding)
    if not found:
        where = f"for {interval}" if interval else "for any interval"
        raise NothingToAccept(stage.name, f"{where}, no consumable data is of code that does not count already")
    return found


def _show(pipeline: str, words: Sequence[Acceptance], *, as_json: bool) -> None:
    if as_json:
        print_document({"pipeline": pipeline, "acceptances": [asdict(word) for word in words]})
    elif words:
        print_table(f"Accepted in {pipeline}", COLUMNS, [_cells(word) for word in words])
    else:
        typer.echo(f"nothing was accepted in {pipeline}")


def _cells(word: Acceptance) -> tuple[str, ...]:
    place = (word.stage, word.interval or "every one", word.part, word.recorded_code, word.accepted_code)
    return (*place, word.accepted_by, moment(word.recorded_at), word.reason)
