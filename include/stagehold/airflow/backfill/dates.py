"""What Airflow has of the dates of a backfill already, and how it has to treat that so that every chosen date runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow.models.dagrun import DagRun
from sqlalchemy import select

from stagehold.errors import BackfillRefused
from stagehold.model.keys.interval_key import ONCE, key_of, moment_of, newest_time
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

STARTED_BY_AIRFLOW = ("scheduled", "backfill", "asset_triggered")
AT_ONCE = 500  # moments that one query names
FINISHED, FAILED = "success", "failed"


@dataclass(frozen=True)
class AirflowDates:
    """The dates of a backfill in a pipeline's schedule, and Airflow's runs of them, by interval."""

    moments: Mapping[str, datetime]
    run_ids: Mapping[str, str]
    states: Mapping[str, str]

    @staticmethod
    def read(pipeline: Pipeline, dag_id: str, intervals: Sequence[str], session: Session) -> AirflowDates:
        found = ((one, moment_of(one, pipeline.schedule)) for one in intervals)
        moments = {interval: moment for interval, moment in found if moment}
        runs = {run.logical_date: run for run in _runs(dag_id, list(moments.values()), session)}
        known = {interval: runs[moment] for interval, moment in moments.items() if moment in runs}
        return AirflowDates(
            moments,
            {interval: run.run_id for interval, run in known.items()},
            {interval: str(run.state) for interval, run in known.items()},
        )

    def reprocess_behavior(self, chosen: Sequence[str], *, goes_on: bool) -> str:
        """The mildest that has every chosen date run: what is not chosen should not run in vain.

        :param goes_on: tasks depend on the date before; Airflow then takes no backfill that leaves runs as they are.
        """
        states = {self.states[interval] for interval in chosen if interval in self.states}
        if FINISHED in states:
            return "completed"
        return "failed" if FAILED in states or goes_on else "none"

    def refuse_under_way(self, pipeline: str, chosen: Sequence[str]) -> None:
        """:raises BackfillRefused: Airflow would leave out a chosen date, as a run of it goes on."""
        for interval in chosen:
            state = self.states.get(interval)
            if state not in (None, FINISHED, FAILED):
                why = f"The run {self.run_ids[interval]} of {interval} is {state}: wait for its end, or leave it out."
                raise BackfillRefused(pipeline, why)


def started_along(
    pipeline: Pipeline, dag_id: str, chosen: Collection[str], now: datetime, session: Session
) -> str | None:
    """What a person is told of the run that Airflow starts by itself behind the first backfill, for last night, say;
    None if it starts none.

    A backfill is for Airflow the last run that it started by itself, so that the schedule's newest time is due then.
    """
    automated = select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_type.in_(STARTED_BY_AIRFLOW)).limit(1)
    if not pipeline.schedule or pipeline.schedule == ONCE or session.scalar(automated) is not None:
        return None
    newest = key_of(newest_time(now, pipeline.schedule), pipeline.schedule)
    if newest in chosen:
        return None
    return (
        f"Airflow has started no run of {dag_id} by itself yet, and takes a backfill for one: it will then start the "
        f"run for {newest}, too."
    )


def _runs(dag_id: str, moments: Sequence[datetime], session: Session) -> Iterator[DagRun]:
    for start in range(0, len(moments), AT_ONCE):
        some = moments[start : start + AT_ONCE]
        yield from session.scalars(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.logical_date.in_(some)))
