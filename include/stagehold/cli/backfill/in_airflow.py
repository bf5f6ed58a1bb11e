"""Has the local Airflow run a backfill, and tells how each of its dates ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.running.run import CANCELLED
from stagehold.model.keys.interval_key import moment_of

if TYPE_CHECKING:
    from stagehold.local.airflow_client import AirflowClient, DagRun
    from stagehold.plan.backfill.backfill_plan import BackfillPlan
    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline

COLUMNS = ("interval", "result", "computed", "reused", "next")
POLL_SECONDS = 2.0


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
    plan: BackfillPlan, token: str, max_active: int, pipeline: Pipeline, settings: Settings, *, as_json: bool
) -> None:
    """Ctrl-C stops looking, and not the backfill."""
    from stagehold.local.airflow_client import AirflowClient

    with AirflowClient.local(settings) as airflow:
        answer = airflow.backfill(pipeline.name, _wanted(plan, token, max_active))
        count = len(answer["intervals"])
        print_progress(f"backfill {answer['backfill_id']} of {pipeline.name}: {count} intervals in Airflow")
        if answer["along"]:
            print_progress(answer["along"])
        ended: list[EndedDate] = []
        try:
            for one in _watched(plan, answer["intervals"], pipeline, airflow, settings):
                ended.append(one)
                print_progress(f"{one.interval}: {one.state} ({len(ended)} of {count})")
        except KeyboardInterrupt:
            print_progress(
                "The backfill goes on in Airflow. `stagehold status` shows its runs; Airflow's own page stops it."
            )
            raise typer.Exit(CANCELLED) from None
    if as_json:
        print_document({"backfill": answer["backfill_id"], "intervals": [asdict(one) for one in ended]})
    else:
        print_table(f"backfill {answer['backfill_id']}", COLUMNS, [_cells(one) for one in ended])
    if any(one.failed for one in ended):
        raise typer.Exit(1)


def _wanted(plan: BackfillPlan, token: str, max_active: int) -> Mapping[str, object]:
    return {**asdict(plan.choice), "max_active": max_active, "token": token}


def _watched(
    plan: BackfillPlan, intervals: list[str], pipeline: Pipeline, airflow: AirflowClient, settings: Settings
) -> Iterator[EndedDate]:
    """Each as soon as it is known to have ended."""
    waiting = {moment: one for one in intervals if (moment := moment_of(one, pipeline.schedule))}
    first, last = min(waiting), max(waiting)
    reused = {one.interval: one.reuses for one in plan.intervals}
    began = datetime.now(first.tzinfo)
    while waiting:
        runs = airflow.dates(pipeline.name, first, last)
        for moment, run in _ended(runs, waiting):
            interval = waiting.pop(moment)
            computed = _computed(run, began, settings)
            yield EndedDate(interval, f"{run.dag_id}/{run.run_id}", run.state, computed, reused[interval])
        if waiting:
            time.sleep(POLL_SECONDS)


def _ended(runs: Mapping[datetime, DagRun], waiting: Mapping[datetime, str]) -> list[tuple[datetime, DagRun]]:
    return [(moment, runs[moment]) for moment in sorted(waiting) if moment in runs and runs[moment].ended]


def _computed(run: DagRun, since: datetime, settings: Settings) -> int:
    """Partitions that the run has recorded since then."""
    from stagehold.chronicle.chronicle import open_ledger

    with open_ledger(settings) as ledger:
        records = ledger.partitions.of_run(f"{run.dag_id}/{run.run_id}")
    return len({(one.cell, one.partition) for one in records if one.recorded_at >= since})


def _cells(one: EndedDate) -> tuple[str, ...]:
    again = f"stagehold resume '{one.run_id}'" if one.failed else ""
    return one.interval, one.state, str(one.computed), str(one.reused), again
