"""The web API's answers about a run: its grid with all that the page shows, its history, and what Resume did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.response_model import Looked, ResponseModel
from stagehold.airflow.run_page.gate_responses import GateFailure
from stagehold.airflow.runs.task_clearing import TaskToClear
from stagehold.model.records import AttemptState, RunState
from stagehold.model.standing import CellState
from stagehold.plan.resume.decisions import Action

if TYPE_CHECKING:
    from stagehold.run.lease.lost_attempts import Loss


class PartitionCell(ResponseModel):
    """One partition. The fields after ``reason`` are None without a record; ``run_id`` is the run that computed it.

    ``skew`` says how much larger than the stage's other partitions it is, None unless it is much larger. A ``restored``
    partition is that of the checkpoint which the run begins with, whether or not the run has put it in its place yet. A
    ``waived`` partition does not meet its gate, and somebody said that it may be read all the same.
    """

    partition: int
    state: CellState
    action: Action
    reason: str
    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    epoch: int | None = None
    wave: int | None = None
    version: int | None = None
    run_id: str | None = None
    recorded_at: datetime | None = None
    skew: str | None = None
    restored: bool = False
    waived: bool = False


class StripPart(ResponseModel):
    """Neighbouring partitions of a stage: how many are in which state, and which of the states comes first."""

    first: int
    last: int
    state: CellState
    counts: Mapping[CellState, int]


class ActionGroup(ResponseModel):
    """Partitions of a stage with the same action for the same reason; ``partitions`` are ranges, as text."""

    action: Action
    reason: str
    count: int
    partitions: str


class Pace(ResponseModel):
    """The progress of an attempt at work: ``recorded`` partitions by now, the last of them with ``wave``. At this pace
    the ``left`` ones take ``seconds_to_go`` more; None as long as nothing is recorded.
    """

    wave: int
    recorded: int
    left: int
    per_minute: float
    seconds_to_go: float | None
    recorded_at: datetime


class StageRow(ResponseModel):
    """One stage. ``stored`` is False for outputs that are computed along, which have no partitions to look at.
    ``partitions`` are all but the unneeded ones. There are ``cells`` or, for many partitions, a ``strip``. ``reads``
    says of each input whether it is stored or computed along, why, and what a kill costs. ``counters`` are those of its
    author, added over the partitions that are on record. ``state`` is what the stage is in this run, folded from its
    declared partitions as Flink folds a job vertex' tasks.
    """

    name: str
    state: AttemptState
    region: str
    job: str
    gate: str | None
    table: str | None
    stored: bool
    reads: tuple[str, ...]
    task_state: str | None
    consumable: int
    partitions: int
    blocked: int
    counts: Mapping[CellState, int]
    cells: tuple[PartitionCell, ...]
    strip: tuple[StripPart, ...]
    groups: tuple[ActionGroup, ...]
    pace: Pace | None
    counters: Mapping[str, int]


class WaveEnd(ResponseModel):
    """A wave that was recorded, and how many partitions of the stage it made."""

    stage: str
    wave: int
    partitions: int
    ended_at: datetime


class AttemptLoss(ResponseModel):
    """An attempt died without recording an end: who ``noticed``, in words, and when."""

    noticed: str
    at: datetime

    @staticmethod
    def of(loss: Loss | None) -> AttemptLoss | None:
        return AttemptLoss(noticed=loss.noticed, at=loss.at) if loss else None


class AttemptLine(ResponseModel):
    """One attempt; ``region`` names its share, too; ``failure`` is the text for the user, None unless it failed. The
    state of an attempt that was ``lost`` is the last one on record.

    ``cause`` is the class of the failure and the rule that decided it; ``trace`` is the whole trace, if it was kept.
    ``labels`` are its host and what failure enrichers added, ``waves`` those whose partitions are still the newest.
    """

    region: str
    epoch: int
    state: AttemptState
    lost: AttemptLoss | None
    started_at: datetime
    ended_at: datetime | None
    failure: str | None
    cause: str | None
    trace: str | None
    labels: Mapping[str, str]
    waves: tuple[WaveEnd, ...]


class Reused(ResponseModel):
    """The number of partitions that another run computed."""

    run_id: str
    partitions: int


class Origins(ResponseModel):
    """How many of the partitions that are done this run ``computed``, how many are ``restored`` from what it began
    with, and which other runs computed the rest; ``others`` come from more runs than are named. The partitions that
    this run did not compute took ``saved_seconds`` when they were computed.
    """

    computed: int
    restored: int
    reused: tuple[Reused, ...]
    others: int
    saved_seconds: float


class ResumePreview(ResponseModel):
    """What the Resume button would do; ``refusal`` says why it cannot, None when it can.

    Partitions ``along`` are computed with their readers and not stored, and not counted in ``run``; of the reused
    partitions, so many are to be ``restored``. The data of partitions to ``judge`` is there, and their gate reads it.
    So many to ``retract`` leave their tables, because a waiver has ended. Of the partitions to run, so many are
    consumable now and run ``again``. The reused partitions took ``saved_seconds`` when they were computed. ``released``
    says in words what is computed only because it was released.
    """

    refusal: str | None
    tasks: tuple[TaskToClear, ...]
    reuse: int
    run: int
    along: int
    restored: int = 0
    judge: int = 0
    retract: int = 0
    again: int = 0
    saved_seconds: float = 0.0
    released: str | None = None


class ResumeAnswer(ResponseModel):
    """The tasks that were cleared, or would be."""

    dry_run: bool
    cleared: tuple[TaskToClear, ...]
    reuse: int
    run: int
    along: int
    judge: int
    retract: int


class Resumed(ResponseModel):
    """Who pressed Resume last, and when."""

    by: str
    at: datetime


class Snapshot(ResponseModel):
    """The checkpoint or savepoint that a run begins with: its run, and when it was taken."""

    address: str
    name: str | None
    run_id: str
    number: int
    interval: str
    taken_at: datetime


class RestoredFrom(ResponseModel):
    """A run's restore: from the ``stage``, or from what the ``reference`` means. That is the ``snapshot`` unless no run
    can begin with it; then ``problem`` says why. ``fulfilled_at`` is when all that was asked for was there.
    """

    stage: str | None
    reference: str | None
    requested_at: datetime
    fulfilled_at: datetime | None
    snapshot: Snapshot | None = None
    problem: str | None = None


class HistoryLine(ResponseModel):
    """A change of the run or of an attempt, or an event; ``of`` names its subject."""

    at: datetime
    of: str
    text: str


class RunGrid(ResponseModel):
    """Everything on the page of one run. ``stale`` partitions are consumable, and run again all the same.
    ``may_change`` says whether its reader may resume it or record a waiver, ``may_stop`` whether the run goes on and
    its reader may suspend or cancel it, ``unmet`` how many verdicts of its gates are not met, of any severity.
    ``whole`` is about the partitions on record, whether or not they run again. The first answer about a run with very
    many partitions is not ``planned``: it has no stages, and says nothing about a resume. Neither does the answer about
    a run whose lake cannot be looked into, which ``looked`` says. ``untold`` are the newest reports about the run that
    could not be sent, to a notifier or as lineage. ``place`` is the pipeline's place, and ``places`` are those of all
    pipelines of the DAG.
    """

    dag_id: str
    place: str
    places: Mapping[str, str]
    run_id: str
    pipeline: str
    interval: str
    state: str
    ledger_state: RunState | None
    active: bool
    headline: str
    consumable: int
    stale: int
    released: int
    partitions: int
    whole: bool
    origins: Origins
    planned: bool
    stages: tuple[StageRow, ...]
    attempts: tuple[AttemptLine, ...]
    failures: tuple[AttemptLine, ...]
    gate_failures: tuple[GateFailure, ...]
    resume: ResumePreview
    resumed: Resumed | None
    restore: RestoredFrom | None
    may_change: bool
    may_waive: bool
    may_stop: bool
    unmet: int
    looked: Looked
    untold: tuple[HistoryLine, ...] = ()


class RunHistory(ResponseModel):
    """The lines, oldest first. ``archived`` says that the ledger has forgotten a part of it, ``earlier`` how many lines
    are left out.
    """

    lines: tuple[HistoryLine, ...]
    earlier: int
    archived: bool
