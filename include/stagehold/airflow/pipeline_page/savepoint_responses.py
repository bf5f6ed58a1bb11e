"""The web API's answers about savepoints, and about the runs that a savepoint can be made of or that can begin with
one.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.model.records import RunState


class SavepointLine(ResponseModel):
    """One savepoint. ``manifest`` is the address of its checkpoint."""

    name: str
    pipeline: str
    interval: str
    run_id: str
    number: int
    created_by: str
    reason: str
    created_at: datetime
    imported: bool
    manifest: str


class SavedStage(ResponseModel):
    """What a savepoint has of a stage; the data of ``missing`` partitions is gone."""

    stage: str
    partitions: int
    consumable: int
    rows: int
    bytes: int
    missing: tuple[int, ...]


class SavepointFacts(ResponseModel):
    savepoint: SavepointLine
    stages: tuple[SavedStage, ...]


class Making(StrEnum):
    """How far a savepoint is that was asked for."""

    PENDING = "pending"
    MADE = "made"
    FAILED = "failed"


class SavepointStatus(ResponseModel):
    """What became of a request for a savepoint. ``failure`` says why there is no savepoint."""

    name: str
    run_id: str
    state: Making
    requested_by: str
    stop: bool
    savepoint: SavepointLine | None = None
    failure: str | None = None


class Disposed(ResponseModel):
    """What was deleted, and what is left to `stagehold gc`."""

    disposed: SavepointLine
    notes: tuple[str, ...]


class Restorable(ResponseModel):
    """A checkpoint or savepoint that a run may begin with; ``reference`` is the value for the field `restore`."""

    reference: str
    savepoint: bool
    run_id: str
    number: int
    interval: str
    taken_at: datetime


class RunChoice(ResponseModel):
    """A run of this DAG; ``run_id`` is Airflow's."""

    run_id: str
    interval: str
    state: RunState
    started_at: datetime


class SavepointChoices(ResponseModel):
    """``may_change``: may make a savepoint; ``may_dispose``: may delete one; ``may_restore``: may start a run with
    one.
    """

    may_change: bool
    may_dispose: bool
    may_restore: bool
    runs: tuple[RunChoice, ...]
