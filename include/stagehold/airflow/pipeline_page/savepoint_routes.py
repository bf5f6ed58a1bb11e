"""The web API of savepoints. Each is reached through a DAG of its own pipeline, whose rights count.

A run begins with one through Airflow's own route: a trigger or backfill with the parameter `restore`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from threading import BoundedSemaphore, Thread
from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Response, status
from pydantic import BaseModel, ConfigDict, Field

from stagehold.airflow.answering.access import MAY_RESUME, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_resume, may_trigger
from stagehold.airflow.answering.api_server import answering, server_ledger
from stagehold.airflow.answering.rights import Right, has_right, require_right
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.pipeline_page.savepoint_responses import (
    Disposed,
    Making,
    Restorable,
    RunChoice,
    SavedStage,
    SavepointChoices,
    SavepointFacts,
    SavepointLine,
    SavepointStatus,
)
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.errors.request_errors import UnknownName
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.model.records import Run
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import ask_for_savepoint, create_savepoint
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

MOST_AT_ONCE = 8  # savepoints that this process makes; each waits for `checkpoint.timeout` at most
AT_ONCE_SECONDS = 3.0  # how long a request waits; a savepoint of a run at rest is mostly made by then
BUSY = "This server waits for as many savepoints as it may. Nothing was asked for; ask again in a moment."
INTERVALS = 20  # intervals whose checkpoints are listed: those that were worked on last
MOST_RUNS = 20
BY_AIRFLOW = "airflow"

log = logging.getLogger(__name__)
_free_threads = BoundedSemaphore(MOST_AT_ONCE)


class NewSavepoint(BaseModel):
    """With ``stop`` the run ends with the savepoint, after its present wave."""

    model_config = ConfigDict(extra="forbid")

    name: str
    reason: Annotated[str, Field(max_length=1000)] = ""
    stop: bool = False


class Place:
    """The pipeline of a DAG, and its savepoints."""

    def __init__(self, where: DagPlace, pipeline: Pipeline, settings: Settings) -> None:
        self.where, self.pipeline, self.settings = where, pipeline, settings

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
        return savepoint_line(one, self.savepoints)

    def workplace(self, notes: list[str]) -> Workplace:
        engine, faults = SparkEngine(self.settings, notes.append), Faults(self.settings.home_path, "")
        return Workplace(server_ledger(self.settings), self.settings, notes.append, engine, faults)

    def status(self, asked: SavepointRequest) -> SavepointStatus:
        made = self.savepoints.find(asked.name)
        return _status(asked, self.line(made) if made and made.run_id == asked.run_id else None)


def _place(dag: PlacedDep) -> Place:
    with answering():
        return Place(dag.place, dag.pipeline, dag.settings)


PlaceDep = Annotated[Place, Depends(_place)]
router = APIRouter(prefix="/api/dags/{dag_id}")


@router.get("/savepoints", dependencies=[MAY_SEE_RUN])
def list_savepoints(place: PlaceDep) -> list[SavepointLine]:
    """The savepoints of the DAG's pipeline, the newest first."""
    with answering():
        return [place.line(one) for one in place.all_own()]


@router.get("/savepoints/{name}", dependencies=[MAY_SEE_RUN])
def show_savepoint(name: str, place: PlaceDep) -> SavepointFacts:
    with answering():
        return savepoint_facts(place.own(name), place.savepoints)


@router.get("/savepoint-choices", dependencies=[MAY_SEE_RUN])
def show_choices(place: PlaceDep, user: GetUserDep) -> SavepointChoices:
    """What the caller may do with savepoints, and the runs of which a savepoint can be made."""
    with answering():
        runs = run_choices(place.where, place.pipeline.name, server_ledger(place.settings))
        may_change = may_resume(place.where, user)
        return SavepointChoices(
            may_change=may_change,
            may_dispose=may_change and has_right(Right.DISPOSE, user, place.settings),
            may_restore=may_trigger(place.where, user),
            runs=runs,
        )


@router.get("/restorable", dependencies=[MAY_SEE_RUN])
def list_restorable(place: PlaceDep) -> list[Restorable]:
    """The checkpoints and savepoints that a run of the DAG may begin with."""
    with answering():
        return list(restorables(place.pipeline.name, place.savepoints, server_ledger(place.settings)))


@router.get("/savepoint_requests/{name}", dependencies=[MAY_SEE_RUN])
def savepoint_status(name: str, place: PlaceDep) -> SavepointStatus:
    """How far the savepoint is that was last asked for under this name."""
    ledger = server_ledger(place.settings)
    with answering():
        asked = ledger.savepoint_requests.get(name)
        if asked is None or ledger.runs.get(asked.run_id).pipeline != place.pipeline.name:
            raise UnknownName("request for a savepoint", name, ())
        return place.status(asked)


@router.post("/runs/{run_id:path}/savepoints", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def make_savepoint(
    run_id: str, wanted: NewSavepoint, place: PlaceDep, user: GetUserDep, response: Response
) -> SavepointStatus:
    """Make a savepoint of the run: 201 if it is there at once, 202 if attempts that are under way have to do their part
    first. Then `savepoint_requests/NAME` says how far it is; the same request may be sent again.
    """
    run = place.where.run(run_id)
    asked = SavepointRequest(wanted.name, run, wanted.stop, user.get_name(), wanted.reason, datetime.now(UTC))
    with answering():
        _refuse_foreign_run(run, place)
        workplace = place.workplace([])
        making = _begin_making(
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
def dispose_savepoint(name: str, place: PlaceDep, user: GetUserDep) -> Disposed:
    """Delete the savepoint. Data that only it needed is deleted by the next `stagehold gc`."""
    notes: list[str] = []
    with answering():
        require_right(Right.DISPOSE, user, place.settings)
        found = place.own(name)
        line = place.line(found)
        dispose_of(found, place.workplace(notes))
        return Disposed(disposed=line, notes=tuple(notes))


def _refuse_foreign_run(run_id: str, place: Place) -> None:
    """:raises UnknownName: there is no such run of the pipeline."""
    if server_ledger(place.settings).runs.get(run_id).pipeline != place.pipeline.name:
        raise UnknownName(f"run of {place.pipeline.name}", run_id, ())


def _begin_making(ask: Callable[[], Savepoint | None], make: Callable[[], Savepoint]) -> Future[Savepoint] | None:
    """Ask for a savepoint and have a thread make it, so that no request waits for it, unless it is there already. None
    if too many are being made; then nothing is asked for.

    It is a daemon thread: if the api-server ends, the request stays on record, and asking again has it made.
    """
    if not _free_threads.acquire(blocking=False):
        return None
    made: Future[Savepoint] = Future()
    try:
        there = ask()
    except BaseException:
        _free_threads.release()
        raise
    if there:
        _free_threads.release()
        made.set_result(there)
        return made
    Thread(target=_carry_out, args=(make, made), name="savepoint", daemon=True).start()
    return made


def _carry_out(make: Callable[[], Savepoint], made: Future[Savepoint]) -> None:
    try:
        made.set_result(make())
    except Exception as error:
        log.info("a savepoint was not made", exc_info=True)
        made.set_exception(error)
    finally:
        _free_threads.release()


def savepoint_line(savepoint: Savepoint, savepoints: Savepoints) -> SavepointLine:
    return SavepointLine(
        name=savepoint.name,
        pipeline=savepoint.pipeline,
        interval=savepoint.interval,
        run_id=savepoint.run_id,
        number=savepoint.number,
        created_by=savepoint.created_by,
        reason=savepoint.reason,
        created_at=savepoint.created_at,
        imported=bool(savepoint.root),
        manifest=savepoints.stored(savepoint).address(savepoint.number),
    )


def savepoint_facts(savepoint: Savepoint, savepoints: Savepoints) -> SavepointFacts:
    """The facts of a savepoint.

    :raises CheckpointCorrupt: a file of it cannot be read.
    """
    stages = savepoints.stored(savepoint).read_checkpoint(savepoint.number).stages
    return SavepointFacts(
        savepoint=savepoint_line(savepoint, savepoints), stages=tuple(_saved_stage(stage) for stage in stages)
    )


def _saved_stage(stage: StageSnapshot) -> SavedStage:
    records = [record for record in stage.partitions if record.state.readable]
    return SavedStage(
        stage=stage.shape.name,
        partitions=stage.parallelism,
        consumable=len(records),
        rows=sum(record.rows for record in records),
        bytes=sum(record.bytes for record in records),
        missing=tuple(sorted(missing_files(records))),
    )


def _status(asked: SavepointRequest, made: SavepointLine | None) -> SavepointStatus:
    """The status of a request. The lake says whether the savepoint is made: it may have been there before."""
    return SavepointStatus(
        name=asked.name,
        run_id=asked.run_id,
        state=Making.MADE if made else Making.PENDING if asked.settled_at is None else Making.FAILED,
        requested_by=asked.requested_by,
        stop=asked.stop,
        savepoint=made,
        failure=None if made else asked.failure,
    )


def restorables(pipeline: str, savepoints: Savepoints, ledger: Ledger) -> tuple[Restorable, ...]:
    """Savepoints, and the checkpoints that runs of the latest intervals have left, the newest first."""
    found = (*_saved(pipeline, savepoints), *_left(pipeline, ledger))
    return tuple(sorted(found, key=lambda one: one.taken_at, reverse=True))


def _saved(pipeline: str, savepoints: Savepoints) -> Iterator[Restorable]:
    for one in savepoints.all():
        if one.pipeline == pipeline:
            yield Restorable(
                reference=one.name,
                savepoint=True,
                run_id=one.run_id,
                number=one.number,
                interval=one.interval,
                taken_at=one.created_at,
            )


def _left(pipeline: str, ledger: Ledger) -> Iterator[Restorable]:
    for interval in ledger.partitions.intervals(pipeline, INTERVALS):
        for one in ledger.checkpoints.of_interval(pipeline, interval):
            if one.kept and not one.savepoint:
                yield Restorable(
                    reference=f"{one.run_id}#{one.number}",
                    savepoint=False,
                    run_id=one.run_id,
                    number=one.number,
                    interval=interval,
                    taken_at=one.triggered_at,
                )


def run_choices(place: DagPlace, pipeline: str, ledger: Ledger) -> tuple[RunChoice, ...]:
    """The newest runs first. Runs of commands have no page and no route that makes a savepoint."""
    runs = ((run, *DagPlace.of_run(run.run_id)) for run in ledger.runs.recent(MOST_RUNS, pipeline))
    return tuple(_choice(run, own) for run, where, own in runs if run.launcher == BY_AIRFLOW and where == place)


def _choice(run: Run, run_id: str) -> RunChoice:
    return RunChoice(
        run_id=run_id,
        interval=run.interval,
        state=run.state,
        started_at=run.started_at,
    )
