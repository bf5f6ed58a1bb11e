"""Runs a backfill, in the local Airflow or in this process, and tells how each of its intervals ends."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from stagehold.cli.common.output import ShownTable, print_document, print_progress, print_table
from stagehold.cli.running.run import CANCELLED, attempts_at_a_time
from stagehold.model.keys.interval_key import moment_of

if TYPE_CHECKING:
    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.local.airflow_client import AirflowClient, DagRun
    from stagehold.plan.backfill.backfill_plan import BackfillPlan
    from stagehold.run.backfill.backfill_runs import IntervalOutcome
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.task import RegionOutcome
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

DATES_COLUMNS = ("interval", "result", "computed", "reused", "next")
POLL_SECONDS = 2.0

COLUMNS = ("interval", "result", "computed", "reused", "seconds", "next")


@dataclass(frozen=True)
class EndedDate:
    """How the run of an interval ended, and what it computed and reused of what was planned."""

    interval: str
    run_id: str
    state: str
    computed: int
    reused: int

    @property
    def failed(self) -> bool:
        return self.state == "failed"


def run_in_airflow(
    plan: BackfillPlan,
    token: str,
    max_active: int,
    pipeline: Pipeline,
    place: str,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    """Ctrl-C stops looking, and not the backfill.

    :param place: of the pipeline in Airflow.
    """
    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.local.airflow_access import airflow_client

    with airflow_client(settings) as airflow:
        answer = airflow.backfill(place, _wanted(plan, token, max_active))
        count = len(answer["intervals"])
        print_progress(f"backfill {answer['backfill_id']} of {pipeline.name}: {count} intervals in Airflow")
        if answer["along"]:
            print_progress(answer["along"])
        ended: list[EndedDate] = []
        try:
            where = DagPlace.parse(answer["place"])
            for date in _watched(plan, answer["intervals"], pipeline, where, airflow, settings):
                ended.append(date)
                print_progress(f"{date.interval}: {date.state} ({len(ended)} of {count})")
        except KeyboardInterrupt:
            print_progress(
                "The backfill goes on in Airflow. `stagehold status` shows its runs; Airflow's own page stops it."
            )
            raise typer.Exit(CANCELLED) from None
    if as_json:
        print_document({"backfill": answer["backfill_id"], "intervals": [asdict(date) for date in ended]})
    else:
        print_table(f"backfill {answer['backfill_id']}", DATES_COLUMNS, [_date_cells(date) for date in ended])
    if any(date.failed for date in ended):
        raise typer.Exit(1)


def _wanted(plan: BackfillPlan, token: str, max_active: int) -> Mapping[str, object]:
    return {**asdict(plan.choice), "max_active": max_active, "token": token}


def _watched(
    plan: BackfillPlan,
    intervals: list[str],
    pipeline: Pipeline,
    place: DagPlace,
    airflow: AirflowClient,
    settings: Settings,
) -> Iterator[EndedDate]:
    """Yields each date as soon as it is known to have ended."""
    waiting = {moment: interval for interval in intervals if (moment := moment_of(interval, pipeline.schedule))}
    first, last = min(waiting), max(waiting)
    reused = {interval_plan.interval: interval_plan.reuses for interval_plan in plan.intervals}
    began = datetime.now(first.tzinfo)
    while waiting:
        runs = airflow.dates(place.dag_id, first, last)
        for moment, run in _ended(runs, waiting):
            interval = waiting.pop(moment)
            run_id = place.run(run.run_id)
            computed = _computed(run_id, began, settings)
            yield EndedDate(interval, run_id, run.state, computed, reused[interval])
        if waiting:
            time.sleep(POLL_SECONDS)


def _ended(runs: Mapping[datetime, DagRun], waiting: Mapping[datetime, str]) -> list[tuple[datetime, DagRun]]:
    return [(moment, runs[moment]) for moment in sorted(waiting) if moment in runs and runs[moment].ended]


def _computed(run_id: str, since: datetime, settings: Settings) -> int:
    """Partitions that the run has recorded since then."""
    from stagehold.chronicle.chronicle import open_ledger

    with open_ledger(settings) as ledger:
        records = ledger.partitions.of_run(run_id)
    return len({(record.cell, record.partition) for record in records if record.recorded_at >= since})


def _date_cells(date: EndedDate) -> tuple[str, ...]:
    again = f"stagehold resume '{date.run_id}'" if date.failed else ""
    return date.interval, date.state, str(date.computed), str(date.reused), again


def run_here(
    backfill_id: str, pipeline: Pipeline, settings: Settings, parallel: int | None
) -> Sequence[IntervalOutcome]:
    """Progress goes to stderr. Ctrl-C and SIGTERM leave what is consumable, and the rest to `--resume`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run_begun(backfill_id, pipeline, settings, print_progress, parallel)
    except KeyboardInterrupt:
        again = _go_on(backfill_id, pipeline)
        text = f"Backfill {backfill_id} was interrupted. What is consumable is kept; `{again}` goes on from there."
        typer.secho(text, fg="red", err=True)
        raise typer.Exit(CANCELLED) from None


def run_begun(
    backfill_id: str,
    pipeline: Pipeline,
    settings: Settings,
    progress: Callable[[str], None],
    parallel: int | None = None,
) -> Sequence[IntervalOutcome]:
    """Run what a backfill has left to do.

    :param parallel: how many attempts go on at a time; None for as many as there are slots.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.backfill_runs import follow_each_other, run_intervals
    from stagehold.run.backfill.intervals_at_once import run_intervals_at_once
    from stagehold.run.here.local_run import run_locally
    from stagehold.spark.server.server import spark_server

    outcomes: list[IntervalOutcome] = []
    most = parallel or attempts_at_a_time(settings)
    with open_ledger(settings) as ledger:
        begun = ledger.backfills.get(pipeline.name, backfill_id)
        count, at_once = len(begun.intervals), most > 1 and not follow_each_other(pipeline)
        how = f"{min(most, count)} at a time" if at_once else "one after the other"
        progress(f"backfill {backfill_id} of {pipeline.name}: {count} to run, {how}")
        progress(f"`{_go_on(backfill_id, pipeline)}` goes on with it whenever it ends early")
        with spark_server(settings, f"backfill {backfill_id}"):

            def run(request: RunRequest) -> RegionOutcome:
                return run_locally(request, settings, progress, parallel=most)

            ended = (
                run_intervals_at_once(begun, pipeline, ledger, settings, progress, most)
                if at_once
                else run_intervals(begun, pipeline, ledger, run)
            )
            for outcome in ended:
                outcomes.append(outcome)
                progress(f"{outcome.interval}: {_result(outcome)} ({len(outcomes)} of {count})")
    return outcomes


def _go_on(backfill_id: str, pipeline: Pipeline) -> str:
    return f"stagehold backfill {pipeline.name} --resume {backfill_id}"


def outcomes_table(backfill_id: str, outcomes: Sequence[IntervalOutcome]) -> ShownTable:
    return ShownTable(f"backfill {backfill_id}", COLUMNS, [_cells(outcome) for outcome in outcomes])


def _cells(interval_outcome: IntervalOutcome) -> tuple[str, ...]:
    outcome = interval_outcome.outcome
    figures = (str(outcome.computed), str(outcome.reused), f"{outcome.seconds:.1f}") if outcome else ("", "", "")
    return (
        interval_outcome.interval,
        _result(interval_outcome),
        *figures,
        f"stagehold resume {interval_outcome.run_id}" if interval_outcome.failure else "",
    )


def _result(interval_outcome: IntervalOutcome) -> str:
    if interval_outcome.failure is not None:
        return "failed"
    if interval_outcome.finished_before:
        return "finished before"
    return "finished" if interval_outcome.outcome else "not begun"
