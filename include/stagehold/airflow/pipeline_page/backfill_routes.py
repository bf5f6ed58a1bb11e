"""The web API of backfills: what a backfill would run, and its start through Airflow's own route."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import httpx
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from fastapi import APIRouter, Query, Request, Response, status
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from stagehold.airflow.answering.access import MAY_BACKFILL, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_trigger
from stagehold.airflow.answering.api_server import answering, call_airflow, refuse_as_airflow, server_ledger
from stagehold.airflow.context.restore_requests import BACKFILL, RESTORE_PIPELINE
from stagehold.airflow.pipeline_page.backfill_plans import WantedPlan
from stagehold.airflow.pipeline_page.pipeline_responses import BegunBackfill, PlanUnderWay
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.errors.request_errors import BackfillRefused
from stagehold.model.backfill import Backfill, BackfillChoice, Only
from stagehold.model.keys.interval_key import ONCE, key_of, moment_of, newest_time
from stagehold.plan.backfill.backfill_json import ShownBackfill
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.run.backfill.backfill_planning import has_times
from stagehold.run.backfill.backfill_runs import begin_backfill, keeps_state
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

TRIES = 5  # of a call that Airflow gives up because its database is locked
LOCKED = (httpx.codes.INTERNAL_SERVER_ERROR, httpx.codes.SERVICE_UNAVAILABLE)
NO_SCHEDULE = (
    "{} has no schedule, so Airflow cannot run a range of its intervals. `stagehold backfill {} --local` runs those "
    "that are on record."
)
NOT_ALLOWED = "You may see this pipeline but not start a backfill of it. Ask somebody who may edit the DAG."
PAUSED = "Its DAG is switched off in Airflow, so that the runs of a backfill would wait. Switch it on first."
Text = Annotated[str, Field(max_length=250)]
router = APIRouter(prefix="/api/dags/{dag_id}/backfill")


class NewBackfill(BaseModel):
    """``token`` is that of the plan that was shown: a backfill that would run anything else is refused."""

    model_config = ConfigDict(extra="forbid")

    first: Text
    last: Text
    token: Annotated[str, Field(min_length=1)]
    stages: tuple[Text, ...] = ()
    restore_from_stage: Text | None = None
    only: Only | None = None
    max_active: Annotated[int, Field(ge=1, le=100)] = 4

    @property
    def choice(self) -> BackfillChoice:
        return BackfillChoice(self.first, self.last, self.stages, self.only, self.restore_from_stage or None)


class _Place:
    """A DAG of ours, and what Airflow is asked about it."""

    def __init__(self, dag: PlacedPipeline, session: Session) -> None:
        self.place, self.pipeline, self.settings, self.session = dag.place, dag.pipeline, dag.settings, session

    def wanted(self, choice: BackfillChoice) -> WantedPlan:
        return WantedPlan(choice, self.pipeline, self.settings)

    def refused(self, plan: BackfillPlan) -> BackfillPlan:
        """The plan with Airflow's refusal, if it refuses."""
        return replace(plan, refusal=self._refusal or plan.refusal)

    @property
    def _which(self) -> Mapping[str, str]:
        """What tells the other pipelines of the DAG that the backfill is not theirs."""
        return {RESTORE_PIPELINE: self.pipeline.name} if self.place.pipeline else {}

    @property
    def _refusal(self) -> str | None:
        """Why Airflow would not run it."""
        if not has_times(self.pipeline):
            return NO_SCHEDULE.format(self.pipeline.name, self.pipeline.name)
        paused = self.session.scalar(select(DagModel.is_paused).where(DagModel.dag_id == self.place.dag_id))
        return PAUSED if paused else None

    def dates(self, plan: BackfillPlan) -> AirflowDates:
        intervals = [one.interval for one in plan.intervals]
        return AirflowDates.read(self.pipeline, self.place.dag_id, intervals, self.session)

    def along(self, plan: BackfillPlan) -> str | None:
        """What Airflow will start besides the plan's dates."""
        chosen = [one.interval for one in plan.running]
        now = datetime.now(UTC)
        return started_along(self.pipeline, self.place.dag_id, chosen, now, self.session) if chosen else None

    def begun(self, wanted: NewBackfill, asked_by: str) -> tuple[Backfill, str | None, Mapping[str, Any]]:
        """The backfill as it is recorded, what Airflow starts along with it, and what Airflow is asked for.

        :raises StageholdError: nothing may be begun.
        """
        plan = self.refused(self.wanted(wanted.choice).plan())
        dates, chosen = self.dates(plan), [one.interval for one in plan.running]
        if plan.refusal is None:  # its refusal comes first
            dates.refuse_under_way(plan.pipeline, chosen)
        begun = begin_backfill(plan, wanted.token, asked_by, server_ledger(self.settings))
        goes_on = keeps_state(self.pipeline)
        return (
            begun,
            self.along(plan),
            {
                "dag_id": self.place.dag_id,
                "from_date": dates.moments[chosen[0]].isoformat(),
                "to_date": dates.moments[chosen[-1]].isoformat(),
                "run_backwards": False,
                "dag_run_conf": {BACKFILL: begun.backfill_id, **self._which},
                "reprocess_behavior": dates.reprocess_behavior(chosen, goes_on=goes_on),
                "max_active_runs": 1 if goes_on else wanted.max_active,
            },
        )


@router.get("", dependencies=[MAY_SEE_RUN])
def plan_of_backfill(
    dag: PlacedDep,
    session: SessionDep,
    user: GetUserDep,
    response: Response,
    first: Text,
    last: Text,
    stages: Annotated[list[Text] | None, Query()] = None,
    restore_from_stage: Text | None = None,
    only: Only | None = None,
) -> ShownBackfill | PlanUnderWay:
    """The cells of intervals and stages that would run, and why; ``refusal`` says why the caller cannot start them.
    Asking changes nothing. While a large plan is made the answer is 202 and says how far it is: asking again gives the
    plan when it is there.
    """
    choice = BackfillChoice(first, last, tuple(stages or ()), only, restore_from_stage or None)
    with answering():
        place = _Place(dag, session)
        found = place.wanted(choice).ask()
        if isinstance(found, PlanUnderWay):
            response.status_code = status.HTTP_202_ACCEPTED
            return found
        plan = place.refused(found)
        if not may_trigger(dag.place, user):
            plan = replace(plan, refusal=plan.refusal or NOT_ALLOWED)
        return ShownBackfill.of(plan, place.pipeline, place.dates(plan).run_ids, place.along(plan))


@router.post("", dependencies=[MAY_BACKFILL, SAME_ORIGIN_JSON])
async def start_backfill(
    dag: PlacedDep, wanted: NewBackfill, session: SessionDep, user: GetUserDep, request: Request
) -> BegunBackfill:
    """One backfill of Airflow's, with the caller's own rights; its runs do what was planned, however often they are
    tried.
    """
    begun, along, body = await run_in_threadpool(_begin, dag, wanted, session, user.get_name())
    created = await _create(body, request)
    intervals = tuple(one.interval for one in begun.intervals)
    return BegunBackfill(
        backfill_id=int(created["id"]), token=wanted.token, intervals=intervals, along=along, place=str(dag.place)
    )


def _begin(
    dag: PlacedPipeline, wanted: NewBackfill, session: Session, asked_by: str
) -> tuple[Backfill, str | None, Mapping[str, Any]]:
    with answering():
        return _Place(dag, session).begun(wanted, asked_by)


async def _create(body: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    for _ in range(TRIES):
        answer = await call_airflow("POST", "/api/v2/backfills", body, request)
        if answer.status_code not in LOCKED:
            break
    refuse_as_airflow(answer, "start the backfill")
    created: Mapping[str, Any] = answer.json()
    return created


STARTED_BY_AIRFLOW = ("scheduled", "backfill", "asset_triggered")
AT_ONCE = 500  # moments in one query
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
        """The mildest behaviour that runs every chosen date: dates that are not chosen should not run in vain.

        :param goes_on: tasks depend on the date before; Airflow then accepts no backfill that leaves runs as they are.
        """
        states = {self.states[interval] for interval in chosen if interval in self.states}
        if FINISHED in states:
            return "completed"
        return "failed" if FAILED in states or goes_on else "none"

    def refuse_under_way(self, pipeline: str, chosen: Sequence[str]) -> None:
        """Refuse a backfill of a date whose run goes on.

        :raises BackfillRefused: Airflow would leave out a chosen date, because a run of it goes on.
        """
        for interval in chosen:
            state = self.states.get(interval)
            if state not in (None, FINISHED, FAILED):
                why = f"The run {self.run_ids[interval]} of {interval} is {state}: wait for its end, or leave it out."
                raise BackfillRefused(pipeline, why)


def started_along(
    pipeline: Pipeline, dag_id: str, chosen: Collection[str], now: datetime, session: Session
) -> str | None:
    """A text about the run that Airflow starts by itself after the first backfill, for example for last night; None if
    it starts none.

    For Airflow, a backfill is the last run that it started by itself, so the newest time of the schedule is due then.
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
