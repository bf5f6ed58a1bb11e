"""`stagehold backfill`: run a range of intervals, after a look at what of them would run."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.backfill.backfill_execution import run_in_airflow
from stagehold.cli.common.output import ShownTable, moment, print_document, print_table
from stagehold.cli.common.request import AsJson, Keep, Reason, RestoreFrom, keep_asked
from stagehold.errors import BackfillChanged, BackfillRefused, InvalidArgument
from stagehold.model.backfill import BackfillChoice, Only
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan
    from stagehold.plan.backfill.cells import BackfillCell
    from stagehold.run.backfill.backfill_runs import KnownBackfill
    from stagehold.run.planning.keep_wishes import KeepWishes
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

PlaceName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="Name of the pipeline, as its YAML file declares it; DAG~PIPELINE for one that is a group of tasks in a "
        "DAG of your own.",
    ),
]
First = Annotated[
    str | None, typer.Option("--from", help="The first interval: a date, or a moment. A date is all of its intervals.")
]
Last = Annotated[str | None, typer.Option("--to", help="The last interval. Default: the first one.")]
Stages = Annotated[
    list[str] | None,
    typer.Option(
        "--stages",
        metavar="STAGE",
        help="Work in these stages only, as a,b; others are left as they are unless these need what is not there. "
        "Repeatable.",
    ),
]
OnlyWhat = Annotated[
    Only | None,
    typer.Option(
        "--only",
        help="`missing`: what is not there; `failed`: dates that failed or are blocked; `stale`: what is there and "
        "would be made from something else now; `all`: everything again. Default: what a run would do.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which cells would run, and why.")]
MostActive = Annotated[int, typer.Option("--max-active", min=1, help="Runs at once, in Airflow.")]
Local = Annotated[bool, typer.Option("--local", help="Without Airflow: this command runs them.")]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        min=1,
        metavar="N",
        help="With --local: attempts that go on side by side, of several intervals where none follows from another, "
        "else of one. Default: the slots of Spark; 1 on a local server with two cores or fewer.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before it begins.")]
Token = Annotated[
    str | None, typer.Option("--token", help="Of the plan that you were shown: begin only if exactly that would run.")
]
GoOn = Annotated[
    str | None, typer.Option("--resume", metavar="ID", help="Go on with a --local backfill that was interrupted.")
]
Begun = Annotated[bool, typer.Option("--list", help="Only show which backfills were begun, and how far they came.")]


def backfill(
    pipeline: PlaceName,
    first: First = None,
    last: Last = None,
    stages: Stages = None,
    restore_from_stage: RestoreFrom = None,
    only: OnlyWhat = None,
    keep: Keep = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    max_active: MostActive = 4,
    local: Local = False,
    parallel: AtOnce = None,
    yes: Yes = False,
    token: Token = None,
    resume: GoOn = None,
    begun: Begun = False,
    as_json: AsJson = False,
) -> None:
    """Run a range of intervals: only the cells of dates and stages that need it, which are shown first."""
    settings = load_settings()
    declared = _declared(pipeline, settings)
    if begun:
        return show_backfills(declared.name, settings, as_json=as_json)
    if resume is not None:
        _refuse_keep(keep)
        return _go_on(resume, declared, settings, parallel, as_json=as_json)
    start = _required(first)
    choice = BackfillChoice(start, last or start, _named(stages or ()), only, restore_from_stage)
    wishes = keep_asked(keep, reason, declared)
    plan = _planned(choice, declared, settings, wishes)
    with redirect_stdout(sys.stderr) if as_json and not dry_run else nullcontext():
        show_plan(plan, declared, as_json=as_json and dry_run)
    if dry_run:
        return None
    here = local or bool(settings.sandbox)
    _refuse(plan, token, declared, parallel, here=here)
    if plan.is_done:
        return print_document({"backfill": None, "intervals": []}) if as_json else None
    agreed = token or _agreed_token(plan, yes=yes)
    if wishes:
        _keep(plan, wishes, declared, settings)
    if here:
        return _run_here(choice, agreed, declared, settings, parallel, as_json=as_json)
    return run_in_airflow(plan, agreed, max_active, declared, pipeline, settings, as_json=as_json)


def _declared(place: str, settings: Settings) -> Pipeline:
    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.run.clearing.sandboxes import require_production
    from stagehold.spec.loading.loader import find_pipeline

    require_production(settings)
    named = DagPlace.parse(place)
    return find_pipeline(named.pipeline or named.dag_id, settings)


def _refuse_keep(keep: Sequence[str] | None) -> None:
    if keep:
        raise InvalidArgument("--keep", " ".join(keep), "with --from; what --resume goes on with is kept already")


def _required(first: str | None) -> str:
    if first is None:
        raise InvalidArgument("--from", "", "the first interval, a date such as 2026-11-20")
    return first


def _refuse(plan: BackfillPlan, token: str | None, pipeline: Pipeline, parallel: int | None, *, here: bool) -> None:
    """Refuses what cannot be run as a backfill, before anybody is asked."""
    from stagehold.plan.backfill.token import difference
    from stagehold.run.backfill.backfill_planning import has_times

    if parallel is not None and not here:
        raise InvalidArgument("--parallel", str(parallel), "with --local or --resume; in Airflow --max-active says it")
    if not here and not has_times(pipeline):
        why = f"{plan.pipeline} has no schedule, so Airflow cannot run a range of its intervals. Add --local to run "
        raise BackfillRefused(plan.pipeline, f"{why}those that are on record, one after the other, in this process.")
    changed = difference(token, plan.planned) if token else None
    if changed:
        raise BackfillChanged(plan.pipeline, changed)
    if plan.refusal and not plan.is_done:
        raise BackfillRefused(plan.pipeline, plan.refusal)


def _named(stages: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for names in stages for name in names.split(",") if name.strip())


def _planned(choice: BackfillChoice, pipeline: Pipeline, settings: Settings, keep: KeepWishes | None) -> BackfillPlan:
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.backfill_planning import plan_backfill

    with open_ledger(settings) as ledger, ledger.kept_open():
        return plan_backfill(choice, pipeline, ledger, settings, keep=keep)


def _keep(plan: BackfillPlan, wishes: KeepWishes, pipeline: Pipeline, settings: Settings) -> None:
    from stagehold.cli.running.run import keep_on_record
    from stagehold.run.backfill.backfill_planning import request_planned

    planned = [interval.interval for interval in plan.intervals if interval.problem is None]
    keep_on_record((request_planned(pipeline, key) for key in planned), wishes, settings)


def _agreed_token(plan: BackfillPlan, *, yes: bool) -> str:
    """The token of the plan, if somebody agrees to the plan. If there is nobody to ask, nothing is begun."""
    from stagehold.plan.backfill.token import short

    if yes:
        return plan.token
    if not sys.stdin.isatty():
        allowed = f"given, or --token {short(plan.token)}, where nobody can be asked"
        raise InvalidArgument("--yes", "", allowed)
    if not typer.confirm(f"Run these {plan.runs} partitions?", err=True):
        raise typer.Exit(1)
    return plan.token


def _run_here(
    choice: BackfillChoice,
    token: str,
    pipeline: Pipeline,
    settings: Settings,
    parallel: int | None,
    *,
    as_json: bool,
) -> None:
    """Plans once more what was shown, since somebody may have looked at it for long."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.backfill_planning import plan_backfill
    from stagehold.run.backfill.backfill_runs import begin_backfill

    with open_ledger(settings) as ledger:
        plan = plan_backfill(choice, pipeline, ledger, settings)
        begun = begin_backfill(plan, token, getpass.getuser(), ledger)
    _go_on(begun.backfill_id, pipeline, settings, parallel, as_json=as_json)


def _go_on(backfill_id: str, pipeline: Pipeline, settings: Settings, parallel: int | None, *, as_json: bool) -> None:
    from stagehold.cli.backfill.backfill_execution import outcomes_table, run_here

    outcomes = run_here(backfill_id, pipeline, settings, parallel)
    if as_json:
        print_document({"backfill": backfill_id, "intervals": [asdict(outcome) for outcome in outcomes]})
    else:
        outcomes_table(backfill_id, outcomes).print()
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)


WHY = ("interval", "stage", "partitions", "why")

NEWEST = 20

COLUMNS = ("backfill", "asked for", "by", "from", "to", "intervals", "next")


def show_plan(plan: BackfillPlan, pipeline: Pipeline, *, as_json: bool) -> None:
    from stagehold.plan.backfill.backfill_json import ShownBackfill
    from stagehold.plan.backfill.token import short

    if as_json:
        print_document(asdict(ShownBackfill.of(plan, pipeline, {})))
        return
    cells_table(plan, pipeline).print()
    if plan.runs:
        print_table("What runs, and why", WHY, _why(plan))
    for which, problem in _left_out(plan):
        typer.echo(f"{which} left out: {problem}")
    for said in filter(None, (plan.remark, plan.released)):
        typer.echo(said)
    typer.echo(total_of(plan))
    typer.echo(plan.refusal if plan.refusal else f"token {short(plan.token)}")


def cells_table(plan: BackfillPlan, pipeline: Pipeline) -> ShownTable:
    """What of each interval and stage is there, and runs."""
    stages = [stage.name for stage in pipeline.stages]
    title = f"{plan.pipeline} from {plan.choice.first} to {plan.choice.last}"
    rows = [_line(interval_plan, stages) for interval_plan in plan.intervals]
    return ShownTable(title, ("interval", *stages), rows)


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


def total_of(plan: BackfillPlan) -> str:
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
