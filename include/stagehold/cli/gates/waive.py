"""`stagehold waive`: say that data may be read though its gate refuses it, on the record."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson, By, StagesPipeline, recorded_interval, stage_asked
from stagehold.errors import InvalidArgument
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.choices import Waiver
    from stagehold.model.partition_set import PartitionSet
    from stagehold.plan.resume.waiving import WaiverWish

ALL = "all"  # and what the gate says of all of the stage together
NUMBERS = f"numbers and ranges such as 3,5-7, or {ALL}"
COLUMNS = ("stage", "partition", "expectation", "waived by", "when", "until", "why")
StageName = Annotated[str | None, typer.Argument(help="The stage whose gate refuses the data, by name.")]
Interval = Annotated[str | None, typer.Option("--interval", help="Default: that of the pipeline's newest run.")]
Partitions = Annotated[str, typer.Option("--partition", help=f"Which partitions: {NUMBERS}.")]
Expectation = Annotated[
    str | None,
    typer.Option("--expectation", help="How the expectation begins. Default: the only one that they do not meet."),
]
Reason = Annotated[str, typer.Option("--reason", help="Why the data may be read; kept with your name.")]
Until = Annotated[
    str | None, typer.Option("--until", metavar="DATE", help="A date (UTC) or moment at which the word ends.")
]
End = Annotated[bool, typer.Option("--end", help="Take back what was waived before, from now on.")]
ListThem = Annotated[bool, typer.Option("--list", help="Only show what was waived before.")]


def waive(
    pipeline: StagesPipeline,
    stage: StageName = None,
    interval: Interval = None,
    partition: Partitions = "",
    expectation: Expectation = None,
    reason: Reason = "",
    until: Until = None,
    by: By = None,
    end: End = False,
    list_them: ListThem = False,
    as_json: AsJson = False,
) -> None:
    """Let data be read though its gate refuses it; the verdict stays on record."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.plan.resume.waiving import WaiverWish

    settings, now = load_settings(), datetime.now(UTC)
    with open_ledger(settings) as ledger:
        wanted = interval_of(interval, pipeline, ledger, settings)
        if list_them:
            _show(
                [waiver for waiver in ledger.waivers.of(pipeline, wanted) if stage in (None, waiver.stage)],
                as_json=as_json,
            )
            return
        if not reason:
            raise InvalidArgument("--reason", reason, "a sentence that says why the data may be read")
        ends = now if end else _moment(until, now)
        wish = WaiverWish(partitions_named(partition), expectation, by or getpass.getuser(), reason, ends)
        _show(_record(wish, (pipeline, wanted, stage or ""), ledger, settings), as_json=as_json)
    if not as_json:
        typer.echo("`stagehold plan` shows what that changes; the next run or `stagehold resume` goes by it.")


def partitions_named(text: str) -> PartitionSet | None:
    """The numbers that a text such as 3,5-7 names; None for all.

    :raises InvalidArgument: it names none.
    """
    from stagehold.model.partition_set import PartitionSet

    if text == ALL:
        return None
    try:
        return PartitionSet.parse(text)
    except ValueError:
        raise InvalidArgument("--partition", text, NUMBERS) from None


def _record(wish: WaiverWish, place: tuple[str, str, str], ledger: Ledger, settings: Settings) -> tuple[Waiver, ...]:
    from stagehold.model.records import Cell
    from stagehold.plan.resume.waiving import refused_data, wished
    from stagehold.run.planning.acceptance import newest_verdict
    from stagehold.spec.loading.loader import find_pipeline

    pipeline, interval, stage = place
    declared = stage_asked(find_pipeline(pipeline, settings), stage)
    records = ledger.partitions.newest(Cell(pipeline, declared.id, interval))
    verdict = newest_verdict(records, ledger) if records else None
    words = wished(wish, declared.name, refused_data(records, verdict), datetime.now(UTC))
    ledger.waivers.record(words)
    return words


def interval_of(given: str | None, pipeline: str, ledger: Ledger, settings: Settings) -> str:
    """The key of the interval that is meant; that of the newest run, if none is given."""
    if given is not None:
        return recorded_interval(given, pipeline, settings)
    newest = ledger.runs.newest(pipeline)
    if newest is None:
        raise InvalidArgument("--interval", "", f"an interval of {pipeline}; it has not run yet")
    return newest.interval


def _moment(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = now
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if found <= now:
        raise InvalidArgument("--until", text, "a date such as 2030-01-31 or a moment, later than now")
    return found


def _show(words: Sequence[Waiver], *, as_json: bool) -> None:
    if as_json:
        print_document({"waivers": [asdict(word) for word in words]})
    elif words:
        print_table(f"Waived in {words[0].pipeline} for {words[0].interval}", COLUMNS, map(_cells, words))
    else:
        typer.echo("nothing was waived")


def _cells(word: Waiver) -> tuple[str, ...]:
    from stagehold.model.partition_set import PartitionSet

    until = moment(word.until) if word.until else "for ever"
    place = (word.stage, str(PartitionSet([word.partition])), word.expectation)
    return (*place, word.waived_by, moment(word.recorded_at), until, word.reason)
