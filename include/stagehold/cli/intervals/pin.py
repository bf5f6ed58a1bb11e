"""`stagehold intervals pin` and `unpin`: say that intervals keep their outputs, or that they do so no more."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson, PipelineName, recorded_interval
from stagehold.cli.intervals.delete import Intervals
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.choices import Pin

COLUMNS = ("interval", "by", "when", "why")
Why = Annotated[str, typer.Option("--why", help="Why; it is kept with your name.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so. Default: you.")]
Say = Callable[[str, Sequence[str], str, str, "Ledger"], "tuple[Pin, ...]"]


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
    _show("pinned", words)
    for interval, count in late.items():
        if count:
            typer.echo(f"{interval}: {count} partitions were released before; a run that needs them computes them.")


def unpin(pipeline: PipelineName, intervals: Intervals, why: Why = "", by: By = None, as_json: AsJson = False) -> None:
    """Let the outputs of pinned intervals go as `retain` of the pipeline says, with the next `stagehold gc`."""
    from stagehold.run.intervals.pinning import unpin_intervals

    words = _said(unpin_intervals, pipeline, intervals, by or getpass.getuser(), why)
    if as_json:
        print_document({"pins": [asdict(pin) for pin in words]})
    else:
        _show("not pinned any more", words)


def _said(say: Say, pipeline: str, intervals: Sequence[str], who: str, why: str) -> tuple[Pin, ...]:
    from stagehold.chronicle.chronicle import open_ledger

    settings = load_settings()
    keys = [recorded_interval(interval, pipeline, settings) for interval in intervals]
    with open_ledger(settings) as ledger:
        return say(pipeline, keys, who, why, ledger)


def _show(title: str, words: Sequence[Pin]) -> None:
    print_table(title, COLUMNS, [(pin.interval, pin.said_by, moment(pin.recorded_at), pin.reason) for pin in words])
