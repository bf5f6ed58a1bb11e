"""`stagehold intervals`: what is on record of each interval, how two differ, and how one is kept or taken out."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson, PipelineName, recorded_interval
from stagehold.cli.intervals.delete import Intervals, delete
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.choices import Pin
    from stagehold.run.intervals.interval_differences import StageContents, StageDifference
    from stagehold.run.intervals.interval_standings import KnownInterval, KnownStage

intervals = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Intervals on record: list, compare, pin and delete them."
)
COLUMNS = ("interval", "state", "pinned", "recorded", "run", "run state", "seconds", "partitions")
DIFFERENCES = ("stage", "partitions", "rows", "size", "seconds", "gate", "equal", "made otherwise", "columns")
PIN_COLUMNS = ("interval", "by", "when", "why")
Why = Annotated[str, typer.Option("--why", help="Why; it is kept with your name.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so. Default: you.")]
Say = Callable[[str, Sequence[str], str, str, "Ledger"], "tuple[Pin, ...]"]
Limit = Annotated[int, typer.Option("--limit", min=1, help="So many, those that were worked on last.")]
One = Annotated[str, typer.Argument(metavar="INTERVAL", help="An interval, as `stagehold intervals list` shows it.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="Another one, which is compared with the first.")]


@intervals.command("list")
def list_intervals(pipeline: PipelineName, limit: Limit = 30, as_json: AsJson = False) -> None:
    """Show the intervals of a pipeline, those that were worked on last first."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.interval_standings import known_intervals
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    with open_ledger(settings) as ledger:
        found = known_intervals(declared, ledger, limit)
    if as_json:
        print_document({"pipeline": pipeline, "intervals": [asdict(interval) for interval in found]})
    elif found:
        print_table(f"intervals of {pipeline}", COLUMNS, [_row(interval) for interval in found])
        for interval in found:
            if interval.pin:
                typer.echo(f"{interval.interval} is pinned {interval.pin}")
    else:
        typer.echo(f"Nothing is on record. `stagehold run {pipeline}` computes an interval.")


@intervals.command()
def diff(pipeline: PipelineName, interval: One, other: Other, as_json: AsJson = False) -> None:
    """Compare two intervals stage by stage: rows, sizes, times, columns, and what made them.

    Nothing of the data is read: partitions are equal if their fingerprints are.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.cli.common.request import recorded_interval
    from stagehold.run.intervals.interval_differences import compare_intervals
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    declared = find_pipeline(pipeline, settings)
    one, another = (recorded_interval(key, pipeline, settings) for key in (interval, other))
    with open_ledger(settings) as ledger:
        found = compare_intervals(declared, one, another, ledger)
    if as_json:
        stages = [{**asdict(stage), "columns": stage.columns} for stage in found]
        print_document({"pipeline": pipeline, "interval": one, "other": another, "stages": stages})
    else:
        print_table(f"{pipeline}: {one} -> {another}", DIFFERENCES, [_difference(stage) for stage in found])


intervals.command()(delete)


def _row(interval: KnownInterval) -> Sequence[str]:
    run, seconds = interval.run, sum(stage.seconds for stage in interval.stages)
    return (
        interval.interval,
        interval.state,
        "pinned" if interval.pin else "",
        moment(interval.recorded_at),
        run.run_id if run else "",
        run.state if run else "",
        f"{seconds:.1f}",
        ", ".join(map(_of_stage, interval.stages)),
    )


def _of_stage(stage: KnownStage) -> str:
    released = f" ({stage.released} released)" if stage.released else ""
    return f"{stage.stage} {stage.consumable + stage.released}/{stage.total}{released}"


def _difference(found: StageDifference) -> Sequence[str]:
    from rich.filesize import decimal

    one, other = found.one, found.other
    return (
        found.stage,
        _both(str(one.partitions), str(other.partitions)),
        _grown(one.rows, other.rows),
        _both(decimal(one.bytes), decimal(other.bytes)),
        _both(f"{one.seconds:.1f}", f"{other.seconds:.1f}"),
        _both(one.verdict or "-", other.verdict or "-") if one.judged or other.judged else "",
        f"{found.equal} of {max(one.partitions, other.partitions)}",
        ", ".join(found.causes) + _released(one, other),
        "; ".join(found.columns),
    )


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one} -> {other}"


def _grown(one: int, other: int) -> str:
    share = f" ({(other - one) / one:+.1%})" if one and one != other else ""
    return _both(f"{one:,}", f"{other:,}") + share


def _released(one: StageContents, other: StageContents) -> str:
    gone = [contents.partitions - contents.consumable for contents in (one, other)]
    return f" (not consumable: {gone[0]} and {gone[1]})" if any(gone) else ""


@intervals.command()
def pin(pipeline: PipelineName, intervals: Intervals, why: Why = "", by: By = None, as_json: AsJson = False) -> None:
    """Keep the outputs of intervals, whatever `retain` of the pipeline says.

    `stagehold gc` and `intervals delete` leave them alone. What was released before does not come back by that.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.pinning import pin_intervals, released_before

    words = _said(pin_intervals, pipeline, intervals, by or getpass.getuser(), why)
    with open_ledger(load_settings()) as ledger:
        late = {pin.interval: released_before(pipeline, pin.interval, ledger) for pin in words}
    if as_json:
        print_document({"pins": [{**asdict(pin), "released_before": late[pin.interval]} for pin in words]})
        return
    _show_pins("pinned", words)
    for interval, count in late.items():
        if count:
            typer.echo(f"{interval}: {count} partitions were released before; a run that needs them computes them.")


@intervals.command()
def unpin(pipeline: PipelineName, intervals: Intervals, why: Why = "", by: By = None, as_json: AsJson = False) -> None:
    """Let the outputs of pinned intervals go as `retain` of the pipeline says, with the next `stagehold gc`."""
    from stagehold.run.intervals.pinning import unpin_intervals

    words = _said(unpin_intervals, pipeline, intervals, by or getpass.getuser(), why)
    if as_json:
        print_document({"pins": [asdict(pin) for pin in words]})
    else:
        _show_pins("not pinned any more", words)


def _said(say: Say, pipeline: str, intervals: Sequence[str], who: str, why: str) -> tuple[Pin, ...]:
    from stagehold.chronicle.chronicle import open_ledger

    settings = load_settings()
    keys = [recorded_interval(interval, pipeline, settings) for interval in intervals]
    with open_ledger(settings) as ledger:
        return say(pipeline, keys, who, why, ledger)


def _show_pins(title: str, words: Sequence[Pin]) -> None:
    print_table(title, PIN_COLUMNS, [(pin.interval, pin.said_by, moment(pin.recorded_at), pin.reason) for pin in words])
