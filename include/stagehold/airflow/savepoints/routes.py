"""The web API of savepoints. Each is reached through a DAG of its own pipeline, whose rights count.

A run begins with one through Airflow's own route: a trigger or backfill with the parameter `restore`.
"""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Response, status
from pydantic import BaseModel, ConfigDict, Field

from stagehold.airflow.answering.access import MAY_RESUME, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_resume, may_trigger
from stagehold.airflow.answering.server import answering, server_ledger
from stagehold.airflow.context.intervals import ledger_run_id
from stagehold.airflow.runs.dag_runs import dag_settings, pipeline_of
from stagehold.airflow.savepoints.answers import Restorable, SavepointFacts, SavepointLine, SavepointStatus, restorables
from stagehold.airflow.savepoints.choices import SavepointChoices, run_choices
from stagehold.airflow.savepoints.making import begun
from stagehold.errors import UnknownName
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import ask_for_savepoint, create_savepoint
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

AT_ONCE_SECONDS = 3.0  # so long a request waits; one of a run at which nobody works is mostly made by then
BUSY = "This server waits for as many savepoints as it may. Nothing was asked for; ask again in a moment."


class NewSavepoint(BaseModel):
    """With ``stop`` the run ends with it, behind the wave it is at."""

    model_config = ConfigDict(extra="forbid")

    name: str
    reason: Annotated[str, Field(max_length=1000)] = ""
    stop: bool = False


@dataclass(frozen=True)
class Disposed:
    """What was thrown away, and what is left to `stagehold gc`."""

    disposed: SavepointLine
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The pipeline of a DAG, and its savepoints."""

    pipeline: Pipeline
    settings: Settings

    @property
    def savepoints(self) -> Savepoints:
        return Savepoints(self.settings.lake_uri)

    def own(self, name: str) -> Savepoint:
        """:raises UnknownName: there is none of that name, or it is another pipeline's."""
        found = self.savepoints.get(name)
        if found.pipeline != self.pipeline.name:
            raise UnknownName("savepoint", name, [one.name for one in self.all_own()])
        return found

    def all_own(self) -> tuple[Savepoint, ...]:
        return tuple(one for one in self.savepoints.all() if one.pipeline == self.pipeline.name)

    def line(self, one: Savepoint) -> SavepointLine:
        return SavepointLine.of(one, self.savepoints)

    def workplace(self, notes: list[str]) -> Workplace:
        engine, faults = SparkEngine(self.settings, notes.append), Faults(self.settings.home_path, "")
        return Workplace(server_ledger(self.settings), self.settings, notes.append, engine, faults)

    def status(self, asked: SavepointRequest) -> SavepointStatus:
        made = self.savepoints.find(asked.name)
        return SavepointStatus.of(asked, self.line(made) if made and made.run_id == asked.run_id else None)


def _place(dag_id: str, session: SessionDep) -> Place:
    with answering():
        settings = dag_settings(dag_id, session)
        return Place(pipeline_of(dag_id, session, settings), settings)


PlaceDep = Annotated[Place, Depends(_place)]
router = APIRouter(prefix="/api/dags/{dag_id}")


@router.get("/savepoints", dependencies=[MAY_SEE_RUN])
def list_savepoints(place: PlaceDep) -> list[SavepointLine]:
    """Those of the DAG's pipeline, the newest first."""
    with answering():
        return [place.line(one) for one in place.all_own()]


@router.get("/savepoints/{name}", dependencies=[MAY_SEE_RUN])
def show_savepoint(name: str, place: PlaceDep) -> SavepointFacts:
    with answering():
        return SavepointFacts.of(place.own(name), place.savepoints)


@router.get("/savepoint-choices", dependencies=[MAY_SEE_RUN])
def show_choices(dag_id: str, place: PlaceDep, user: GetUserDep) -> SavepointChoices:
    """What the caller may do with savepoints, and the runs of which one can be made."""
    with answering():
        runs = run_choices(dag_id, place.pipeline.name, server_ledger(place.settings))
        return SavepointChoices(may_resume(dag_id, user), may_trigger(dag_id, user), runs)


@router.get("/restorable", dependencies=[MAY_SEE_RUN])
def list_restorable(place: PlaceDep) -> list[Restorable]:
    """What a run of the DAG may begin with, for who offers a choice."""
    with answering():
        return list(restorables(place.pipeline.name, place.savepoints, server_ledger(place.settings)))


@router.get("/savepoint_requests/{name}", dependencies=[MAY_SEE_RUN])
def savepoint_status(name: str, place: PlaceDep) -> SavepointStatus:
    """How far a savepoint is that was asked for last under this name."""
    ledger = server_ledger(place.settings)
    with answering():
        asked = ledger.savepoint_requests.get(name)
        if asked is None or ledger.runs.get(asked.run_id).pipeline != place.pipeline.name:
            raise UnknownName("request for a savepoint", name, ())
        return place.status(asked)


@router.post("/runs/{run_id:path}/savepoints", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def make_savepoint(
    dag_id: str, run_id: str, wanted: NewSavepoint, place: PlaceDep, user: GetUserDep, response: Response
) -> SavepointStatus:
    """Make one of the run: 201 if it is there at once, 202 if attempts that are under way have to do their part first.
    Then `savepoint_requests/NAME` says how far it is; the same request may be sent again.
    """
    run = ledger_run_id(dag_id, run_id)
    asked = SavepointRequest(wanted.name, run, wanted.stop, user.get_name(), wanted.reason, datetime.now(UTC))
    with answering():
        _refuse_foreign_run(run, place)
        workplace = place.workplace([])
        making = begun(
            lambda: ask_for_savepoint(asked, workplace), lambda: create_savepoint(asked, place.pipeline, workplace)
        )
        if making is None:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, BUSY)
        done, _ = wait([making], AT_ONCE_SECONDS)
        if done:
            making.result()
        response.status_code = status.HTTP_201_CREATED if done else status.HTTP_202_ACCEPTED
        return place.status(asked)


@router.delete("/savepoints/{name}", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def dispose_savepoint(name: str, place: PlaceDep) -> Disposed:
    """Throw it away. Data that only it needed goes with the next `stagehold gc`."""
    notes: list[str] = []
    with answering():
        found = place.own(name)
        line = place.line(found)
        dispose_of(found, place.workplace(notes))
        return Disposed(line, tuple(notes))


def _refuse_foreign_run(run_id: str, place: Place) -> None:
    """:raises UnknownName: there is no such run of the pipeline."""
    if server_ledger(place.settings).runs.get(run_id).pipeline != place.pipeline.name:
        raise UnknownName(f"run of {place.pipeline.name}", run_id, ())
