"""What the web API answers of all pipelines together: how each stands, who works, what is installed, how much is kept
and what is stale.
"""

from __future__ import annotations

from datetime import datetime

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked, ResponseModel
from stagehold.model.standing import IntervalState, PipelineStanding, RunWord


class IntervalMark(ResponseModel):
    """An interval, and the newest run for it."""

    interval: str
    word: RunWord
    run_id: str
    started_at: datetime
    ended_at: datetime | None


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
