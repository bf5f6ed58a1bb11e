"""Tables of backfills: the grid of a planned one, a line for each interval and a column for each stage, and the list of
those that were begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_table

if TYPE_CHECKING:
    from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan
    from stagehold.plan.backfill.cells import BackfillCell
    from stagehold.run.backfill.backfill_runs import KnownBackfill
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

WHY = ("interval", "stage", "partitions", "why")

NEWEST = 20

COLUMNS = ("backfill", "asked for", "by", "from", "to", "intervals", "next")


def show_plan(plan: BackfillPlan, pipeline: Pipeline, *, as_json: bool) -> None:
    from stagehold.plan.backfill.backfill_json import ShownBackfill
    from stagehold.plan.backfill.token import short

    if as_json:
        print_document(asdict(ShownBackfill.of(plan, pipeline, {})))
        return
    stages = [stage.name for stage in pipeline.stages]
    title = f"{plan.pipeline} from {plan.choice.first} to {plan.choice.last}"
    print_table(title, ("interval", *stages), [_line(interval_plan, stages) for interval_plan in plan.intervals])
    if plan.runs:
        print_table("What runs, and why", WHY, _why(plan))
    for which, problem in _left_out(plan):
        typer.echo(f"{which} left out: {problem}")
    if plan.released:
        typer.echo(plan.released)
    typer.echo(_total(plan))
    typer.echo(plan.refusal if plan.refusal else f"token {short(plan.token)}")


def _line(interval_plan: IntervalPlan, stages: list[str]) -> tuple[str, ...]:
    cells = {cell.stage: _cell(cell) for cell in interval_plan.cells}
    return (interval_plan.interval, *(cells.get(stage, "?") for stage in stages))


def _cell(cell: BackfillCell) -> str:
    return f"{cell.state}, runs {cell.runs} of {cell.partitions}" if cell.runs else str(cell.state)


def _why(plan: BackfillPlan) -> Iterator[tuple[str, ...]]:
    """A line for each reason; intervals that follow each other and have the same reasons share one."""
    lines = [(interval_plan.interval, tuple(_reasons(interval_plan))) for interval_plan in plan.running]
    for reasons, alike in groupby(lines, key=lambda line: line[1]):
        which = _range([interval for interval, _ in alike])
        yield from ((which, *reason) for reason in reasons)


def _left_out(plan: BackfillPlan) -> Iterator[tuple[str, str]]:
    """Intervals that cannot be planned, with why; those that follow each other and have the same reason together."""
    for problem, alike in groupby(plan.intervals, key=lambda interval_plan: interval_plan.problem):
        keys = [interval_plan.interval for interval_plan in alike]
        if problem:
            yield f"{_range(keys)} {'is' if len(keys) == 1 else 'are'}", problem


def _range(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]} ({len(keys)})"


def _reasons(interval_plan: IntervalPlan) -> Iterator[tuple[str, str, str]]:
    for cell in interval_plan.cells:
        if cell.runs:
            yield from ((cell.stage, reason.partitions, reason.text) for reason in cell.reasons if reason.runs)


def _total(plan: BackfillPlan) -> str:
    dates = f"{len(plan.running)} of {len(plan.intervals)} intervals"
    return f"{plan.runs} partitions run in {dates}, {plan.reuses} are reused; {_seconds(plan)}"


def _seconds(plan: BackfillPlan) -> str:
    if not (plan.seconds or plan.saved_seconds):
        return "how long that takes is not known before they have run once"
    known = f"about {plan.seconds:.1f} s of work, and {plan.saved_seconds:.1f} s saved"
    return f"{known}, not counting {', '.join(plan.unknown)}" if plan.unknown else known


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


def _row(backfill: KnownBackfill) -> Sequence[str]:
    asked = backfill.backfill
    counts = ", ".join(f"{count} {state}" for state, count in backfill.counts.items())
    return (
        asked.backfill_id,
        moment(asked.requested_at),
        asked.asked_by,
        asked.choice.first,
        asked.choice.last,
        counts,
        backfill.resume or "",
    )


def _document(backfill: KnownBackfill) -> dict[str, Any]:
    asked = backfill.backfill
    intervals = [
        {"interval": key, "state": state, "run_id": backfill.runs[key].run_id if key in backfill.runs else None}
        for key, state in backfill.states.items()
    ]
    about = {"backfill": asked.backfill_id, "asked_by": asked.asked_by, "requested_at": asked.requested_at}
    return {**about, **asdict(asked.choice), "intervals": intervals, "next": backfill.resume}
