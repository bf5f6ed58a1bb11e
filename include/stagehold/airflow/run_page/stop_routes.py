"""The web API that stops a run: after the waves that are under way (suspend), or at once (cancel)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import quote

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from stagehold.airflow.answering.access import MAY_STOP, SAME_ORIGIN_JSON
from stagehold.airflow.answering.api_server import answering, call_airflow, refuse_as_airflow, server_ledger
from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.airflow.run_page.run_reading import ledger_state
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.airflow.runs.dag_runs import StageholdDagRun, read_dag_run
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.errors.request_errors import RunNotUnderWay, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event, RunState
from stagehold.run.stopping.stopping import at_work, cancel_run_here, suspend_run

# Run ids may hold any character, a slash too, hence :path.
router = APIRouter(prefix="/api/dags/{dag_id}/runs/{run_id:path}")


class Stop(StrEnum):
    """How a run is stopped, as its history names it."""

    SUSPEND = "suspended"
    CANCEL = "cancelled"


class StopAnswer(ResponseModel):
    """The run's state in the ledger, None if it has not begun there, and the attempts that are ending now."""

    ledger_state: RunState | None
    at_work: tuple[str, ...]


@router.post("/suspend", dependencies=[MAY_STOP, SAME_ORIGIN_JSON])
async def suspend(dag: PlacedDep, run_id: str, session: SessionDep, user: GetUserDep) -> StopAnswer:
    """End the run behind the waves that are under way: nothing begins in it any more, what is consumable stays, and
    Resume goes on from there. A run of which no task has begun is unknown to the ledger, and can only be cancelled.
    """
    return await run_in_threadpool(_suspend, dag, run_id, session, user.get_name())


@router.post("/cancel", dependencies=[MAY_STOP, SAME_ORIGIN_JSON])
async def cancel(dag: PlacedDep, run_id: str, session: SessionDep, user: GetUserDep, request: Request) -> StopAnswer:
    """End the run at once: it is marked as failed in Airflow, with the caller's own rights, which stops its tasks, and
    those of other pipelines of its DAG. What is consumable stays.
    """
    ledger, dag_run = await run_in_threadpool(_run_under_way, dag, run_id, session)
    path = f"/api/v2/dags/{quote(dag.place.dag_id, safe='')}/dagRuns/{quote(run_id, safe='')}"
    refuse_as_airflow(await call_airflow("PATCH", path, {"state": "failed"}, request), "mark the run as failed")
    return await run_in_threadpool(_cancel, dag_run.request.run_id, user.get_name(), ledger)


def _suspend(dag: PlacedPipeline, run_id: str, session: Session, user: str) -> StopAnswer:
    ledger, dag_run = _run_under_way(dag, run_id, session)
    with answering():
        suspend_run(dag_run.request.run_id, ledger)
    return _told(Stop.SUSPEND, dag_run.request.run_id, user, ledger)


def _cancel(run_id: str, user: str, ledger: Ledger) -> StopAnswer:
    """Cancel the run. It may have ended already, through what Airflow has stopped meanwhile, or it may never have
    begun.
    """
    with answering(), suppress(RunNotUnderWay, UnknownName):
        cancel_run_here(run_id, ledger)
    return _told(Stop.CANCEL, run_id, user, ledger)


def _run_under_way(dag: PlacedPipeline, run_id: str, session: Session) -> tuple[Ledger, StageholdDagRun]:
    """The run, which has to be under way. A suspended run can still be cancelled while its waves end.

    :raises HTTPException: it has ended in Airflow.
    """
    with answering():
        ledger = server_ledger(dag.settings)
        dag_run = read_dag_run(dag, run_id, session, ledger)
        if dag_run.state not in ACTIVE_RUN_STATES:
            raise RunNotUnderWay(f"{dag.place} {run_id}", dag_run.state)
        return ledger, dag_run


def _told(stop: Stop, run_id: str, user: str, ledger: Ledger) -> StopAnswer:
    """The answer, after it is on record who asked for the stop."""
    with answering():
        ledger.events.append(Event(run_id, stop, user, f"{stop} on the page by {user}", datetime.now(UTC)))
        working = at_work(ledger.attempts.of_run(run_id), ledger)
        return StopAnswer(
            ledger_state=ledger_state(run_id, ledger), at_work=tuple(attempt.subject for attempt in working)
        )
