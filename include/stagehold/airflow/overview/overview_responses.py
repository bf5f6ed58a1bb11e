"""What the web API answers of all pipelines together: how each stands and what it needs, who works, what is installed,
how much is kept and what is stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked, ResponseModel
from stagehold.model.standing import IntervalState, Need, PipelineStanding, RunWord


class PipelineKind(StrEnum):
    """Pipelines that somebody looks for. A pipeline can be of several kinds."""

    FAILING = "failing"  # an interval that is shown needs somebody
    BLOCKED = "blocked"  # a gate refused some of one
    WAIVED = "waived"  # some of one can be read as its refusal was waived
    STALE = "stale"  # one would come out differently now
    RUNNING = "running"  # a run waits or goes on
    OVERDUE = "overdue"
    NEVER_RUN = "never_run"
    CURRENT = "current"
    HIDDEN = "hidden"


class PipelineOrder(StrEnum):
    """Which pipelines come first."""

    STATE = "state"  # those that need somebody; of them those whose need is the newest
    NAME = "name"
    NEWEST = "newest"  # those of which a run began last


class NextStep(StrEnum):
    """What there is to press for an interval that needs somebody."""

    RESUME = "resume"  # its newest run, by Airflow
    RUN = "run"  # a run of Airflow, as the newest one was a command's
    LOOK = "look"  # at what its gate refused


class IntervalMark(ResponseModel):
    """An interval, and the newest run for it. Where it has a ``need``, ``reason`` says what is lacking, and ``step``
    what there is to do.
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
    """The interval that is the newest by its date, as far as the ledger alone can tell. ``state`` is None while nothing
    is recorded. Of all ``partitions`` that it is to have, ``done`` ones are consumable or were released since nobody
    needs them any more; ``text`` says it, with what the others are.
    """

    mark: IntervalMark
    state: IntervalState | None
    consumable: int
    done: int
    partitions: int
    text: str


class PipelineRow(ResponseModel):
    """One pipeline. ``due`` is told when it is overdue; ``marks`` are of its newest intervals, the oldest first."""

    name: str
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
    """The right to work on something; ``holder`` is in words."""

    name: str
    holder: str
    epoch: int
    expires_at: datetime


class InstalledVersion(ResponseModel):
    """A package in the api-server's environment; workers elsewhere may have others."""

    package: str
    version: str


class Overview(ResponseModel):
    """A page of pipelines out of ``found``, which are those that were asked for of ``total``. ``kinds`` counts what was
    found but for its kind; those that are stale are counted once somebody asks for them. ``tags`` and ``owners`` are
    those of all pipelines, and ``me`` is the reader.
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
    """One ledger. ``bytes`` say something of all its pipelines: who may not see the runs of each is not told them."""

    back_end: str
    schema_version: str | None
    bytes: int | None


class PipelineSize(ResponseModel):
    """Data in the lake, by what the ledger has on record of it: that of the newest records which is there to be read or
    judged, and kept state. What they replaced is not counted, nor are checkpoints.
    """

    name: str
    partitions: int
    bytes: int


class SizesSeen(ResponseModel):
    """How much is kept. ``counted`` is False while the sums are being made for the first time."""

    counted: bool
    ledgers: tuple[LedgerSize, ...]
    pipelines: tuple[PipelineSize, ...]


class FirstStale(ResponseModel):
    """The newest interval that is stale, and the first of its stages that is."""

    interval: str
    stage: str
    reason: str


class PipelineStaleness(ResponseModel):
    """How stale a pipeline is, of so many intervals that were ``looked_at``; ``unplanned`` are those of which nothing
    could be said, and ``problem`` is why that is so of the whole pipeline.
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
