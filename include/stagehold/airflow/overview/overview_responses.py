"""The web API's answers about all pipelines together: how each stands and what it needs, who works, what is installed,
how much data is kept, and what is stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked, ResponseModel
from stagehold.model.standing import IntervalState, Need, PipelineStanding, RunWord


class PipelineKind(StrEnum):
    """Kinds of pipelines that a reader looks for. A pipeline can be of several kinds."""

    FAILING = "failing"  # a shown interval needs somebody
    BLOCKED = "blocked"  # a gate refused partitions of one
    WAIVED = "waived"  # partitions of one can be read because their refusal was waived
    STALE = "stale"  # one would come out differently now
    RUNNING = "running"  # a run waits or goes on
    OVERDUE = "overdue"
    NEVER_RUN = "never_run"
    CURRENT = "current"
    HIDDEN = "hidden"


class PipelineOrder(StrEnum):
    """Which pipelines come first."""

    STATE = "state"  # those that need somebody, the newest need first
    NAME = "name"
    NEWEST = "newest"  # those whose newest run began last


class NextStep(StrEnum):
    """The button for an interval that needs somebody."""

    RESUME = "resume"  # resume its newest run, in Airflow
    RUN = "run"  # start a run in Airflow, since the newest run was a command's
    LOOK = "look"  # look at the partitions that its gate refused


class IntervalMark(ResponseModel):
    """An interval, and the newest run for it. If it has a ``need``, ``reason`` says what is missing, and ``step`` what
    to do.
    """

    interval: str
    word: RunWord
    run_id: str
    started_at: datetime
    ended_at: datetime | None
    need: Need | None
    reason: str | None
    step: NextStep | None
    waived: bool


class NewestInterval(ResponseModel):
    """The interval that is newest by its date, as far as the ledger alone can tell. ``state`` is None while nothing is
    recorded. Of all ``partitions`` that it is to have, ``done`` ones are consumable, or were released because nothing
    needs them any more; ``text`` says this in words, and how the others stand.
    """

    mark: IntervalMark
    state: IntervalState | None
    consumable: int
    done: int
    partitions: int
    text: str


class PipelineRow(ResponseModel):
    """One pipeline, and its ``place`` in Airflow. ``due`` is given when its run is overdue; ``marks`` are of its newest
    intervals, the oldest first.
    """

    name: str
    place: str
    tags: tuple[str, ...]
    owners: tuple[str, ...]
    schedule: str | None
    paused: bool
    standing: PipelineStanding
    active: int
    due: datetime | None
    newest: NewestInterval | None
    marks: tuple[IntervalMark, ...]


class LeaseLine(ResponseModel):
    """A lease on something that is worked on; ``holder`` is in words."""

    name: str
    holder: str
    epoch: int
    expires_at: datetime


class InstalledVersion(ResponseModel):
    """A package in the api-server's environment; workers elsewhere may have others."""

    package: str
    version: str


class Overview(ResponseModel):
    """A page of the ``found`` pipelines, which are those that were asked for, of ``total``. ``kinds`` counts the
    pipelines that match everything but the kind; stale pipelines are counted once somebody asks for them. ``tags`` and
    ``owners`` are those of all pipelines, and ``me`` is the reader.
    """

    total: int
    found: int
    kinds: Mapping[PipelineKind, int]
    tags: tuple[str, ...]
    owners: tuple[str, ...]
    me: str
    pipelines: tuple[PipelineRow, ...]
    leases: tuple[LeaseLine, ...]
    versions: tuple[InstalledVersion, ...]
    looked: Looked = AS_RECORDED


class LedgerSize(ResponseModel):
    """One ledger. ``bytes`` would reveal something about all its pipelines: a reader who may not see the runs of each
    is not shown them.
    """

    back_end: str
    schema_version: str | None
    bytes: int | None


class PipelineSize(ResponseModel):
    """Data in the lake, by the ledger: the data of the newest records which is there to be read or judged, and kept
    state. Data that was replaced is not counted, nor are checkpoints.
    """

    name: str
    partitions: int
    bytes: int


class SizesSeen(ResponseModel):
    """How much data is kept. ``counted`` is False while the sums are being made for the first time."""

    counted: bool
    ledgers: tuple[LedgerSize, ...]
    pipelines: tuple[PipelineSize, ...]


class FirstStale(ResponseModel):
    """The newest stale interval, and the first of its stages that is stale."""

    interval: str
    stage: str
    reason: str


class PipelineStaleness(ResponseModel):
    """How stale a pipeline is, of so many intervals that were ``looked_at``; ``unplanned`` are those that could not be
    planned, and ``problem`` says why the whole pipeline could not be planned.
    """

    name: str
    planned_at: datetime | None
    looked_at: int = 0
    stale: int = 0
    unplanned: int = 0
    first: FirstStale | None = None
    problem: str | None = None


class StaleOverview(ResponseModel):
    """``planned`` is False while the plan of any pipeline is being made for the first time."""

    planned: bool
    pipelines: tuple[PipelineStaleness, ...]
