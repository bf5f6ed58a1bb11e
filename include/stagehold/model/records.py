"""What the ledger and the lake say about work that was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from stagehold.model.backfill import Backfill, WorkOrder
from stagehold.model.checkpoint_records import CheckpointRecord, part_name
from stagehold.model.choices import Acceptance, ClaimMode, CodeChoice, Pin, Severity, Waiver
from stagehold.model.pulse import Pulse
from stagehold.model.source_position import Position
from stagehold.model.standing import PartitionState

WHOLE = -1  # stands where the number of a partition does in what was said of all partitions of a stage together
QUARANTINE = "__quarantine"  # what a partition keeps its rows under that were set aside; no state is called so
TRACE = "trace"  # the kind of an event that keeps the whole story of an attempt's failure


class RunState(StrEnum):
    """A run's life, in Flink's words; the legal transitions are in `states`."""

    CREATED = "created"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILING = "failing"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELED = "canceled"
    FINISHED = "finished"
    RECONCILING = "reconciling"
    SUSPENDED = "suspended"


class AttemptState(StrEnum):
    """A region attempt's life, in Flink's words; the legal transitions are in `states`."""

    CREATED = "created"
    SCHEDULED = "scheduled"
    DEPLOYING = "deploying"
    INITIALIZING = "initializing"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELING = "canceling"
    CANCELED = "canceled"
    FAILED = "failed"


class FailureClass(StrEnum):
    """What kind of failure an error is, the class that decides first."""

    NON_RECOVERABLE = "non_recoverable"  # trying again cannot help
    PARTITION_DATA_MISSING = "partition_data_missing"  # recorded data is gone
    ENVIRONMENT = "environment"  # machine, storage, network, Spark or another attempt
    RECOVERABLE = "recoverable"  # anything else

    @property
    def may_restart(self) -> bool:
        return self is not FailureClass.NON_RECOVERABLE


@dataclass(frozen=True, order=True)
class Cell:
    """One stage's output for one interval: the lineage that runs, retries and backfills of that interval share."""

    pipeline: str
    stage: str
    interval: str


@dataclass(frozen=True)
class Run:
    """One pipeline for one interval. ``launcher`` says who started it: airflow or cli;
    ``params`` are what the user gave. ``cancel_asked_at`` is when somebody asked whoever drives it to cancel it.
    """

    run_id: str
    pipeline: str
    interval: str
    launcher: str
    state: RunState
    started_at: datetime
    ended_at: datetime | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    cancel_asked_at: datetime | None = None


@dataclass(frozen=True)
class Restore:
    """A request that a run begins with other data than its interval has: it computes ``stage`` and all that reads it
    anew, although they are consumable; or it begins with a ``snapshot``, by the address of its manifest, and state that
    no stage takes is an error unless ``allow_non_restored``; or it has a ``work_order``. One of the three is
    there; none is until the first task of an Airflow run has looked which snapshot is meant. With ``as_recorded`` what
    is taken over counts whatever code or sources are now; else ``code_choices`` say of which stages it counts although
    their code changed.

    A run may be asked more than once: Airflow keeps the run when a backfill reprocesses its date. ``identity`` tells
    the requests apart, and an attempt names the one that it works for, so that a retry or a resume goes on where the
    one before it stopped. ``life`` is when Airflow last started the run for it, ``fulfilled_at`` when all of it was
    computed.
    """

    run_id: str
    identity: str
    stage: str | None
    requested_at: datetime
    life: datetime | None = None
    fulfilled_at: datetime | None = None
    snapshot: str | None = None
    allow_non_restored: bool = False
    as_recorded: bool = False
    code_choices: tuple[CodeChoice, ...] = ()
    claim_mode: ClaimMode = ClaimMode.NO_CLAIM
    work_order: WorkOrder | None = None


@dataclass(frozen=True)
class Lease:
    """The right to work on ``name`` until ``expires_at``; a higher epoch fences every lower one.

    ``taken_at`` is when this epoch began, ``renewed_at`` when its holder said last that it lives, and ``pulse`` what it
    said then of its work, if it works on a region.
    """

    name: str
    holder: str
    epoch: int
    expires_at: datetime
    taken_at: datetime | None = None
    renewed_at: datetime | None = None
    pulse: Pulse | None = None


UNBEGUN = 0  # stands where the epoch does in a try that has not had a lease; epochs begin with 1


@dataclass(frozen=True)
class Attempt:
    """A try of a region in a run. ``share`` names its partitions when a region is split over several tasks.

    ``failure_rule`` names the rule that gave ``failure_class``, ``restore`` the request of its run that it works for,
    ``labels`` are the host that it is made on, and what failure enrichers say of its failure.
    A try that has no lease yet, or ended before it had one, has no epoch: its is 0.
    """

    attempt_id: str
    run_id: str
    pipeline: str
    interval: str
    region: str
    epoch: int
    state: AttemptState
    started_at: datetime
    ended_at: datetime | None = None
    failure: str | None = None
    failure_class: FailureClass | None = None
    failure_rule: str | None = None
    share: str | None = None
    restore: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """What people call it: what it works on and, once it has a lease, its epoch."""
        return f"{self.subject}, epoch {self.epoch}" if self.began else self.subject

    @property
    def began(self) -> bool:
        """Whether it ever had a lease, and so could touch anything."""
        return self.epoch > UNBEGUN

    @property
    def subject(self) -> str:
        """What it works on, for people."""
        return part_name(self.region, self.share)

    @property
    def cause(self) -> str | None:
        """What kind of failure it was, for people; None unless it failed."""
        return f"{self.failure_class} failure, rule {self.failure_rule}" if self.failure_class else None


@dataclass(frozen=True)
class DataFile:
    """A Parquet file, by its path relative to its table."""

    path: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class StatePart:
    """What a partition's stage keeps there under one name for later intervals, or rows that its gate had set aside; its
    files lie in the stage's table.

    The stage was cut into ``partitions`` of ``max_parallelism`` key groups. ``after`` is the interval whose state this
    one was made from, None if it began empty; ``began`` is equal for equal content of that. ``shape`` is what was
    declared of it, as `StateShape` writes it; it is empty in records of earlier versions, and for rows set aside.
    """

    name: str
    files: tuple[DataFile, ...]
    rows: int
    fingerprint: str
    partitions: int
    max_parallelism: int
    began: str
    after: str | None = None
    shape: str = ""


@dataclass(frozen=True)
class PartitionRecord:
    """A partition as an attempt left it. Records are appended; the newest of a partition counts.

    ``version`` is the Delta version that published it, None when the gate blocked it before that, or holds it, or when
    it was taken out of its table again.
    ``fingerprint`` is a hash of the content that does not depend on row order. ``seconds`` is the partition's share of
    its wave's time, ``storing`` what of that it took to write, measure, judge, publish and record it.
    ``unexplained`` says that it came out different from the one before though its key is the same, or that it was made
    from such data: its readers run again. ``kept`` is what was committed with the data: state, and rows that were set
    aside. ``judged`` tells the suite that judged it; it is empty if none did. ``refused`` are the critical expectations
    that it does not meet: it is blocked for them, or consumable since somebody waived each. ``counted`` are the
    counters of its author, by name.
    """

    cell: Cell
    partition: int
    state: PartitionState
    run_id: str
    attempt_id: str
    epoch: int
    wave: int
    table: str
    version: int | None
    files: tuple[DataFile, ...]
    rows: int
    fingerprint: str
    compute_key: str
    recorded_at: datetime
    reason: str | None = None
    seconds: float | None = None
    unexplained: bool = False
    kept: tuple[StatePart, ...] = ()
    judged: str = ""
    refused: tuple[str, ...] = ()
    counted: tuple[tuple[str, int], ...] = ()
    storing: float | None = None

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def states(self) -> tuple[StatePart, ...]:
        """What it keeps for later intervals."""
        return tuple(part for part in self.kept if part.name != QUARANTINE)

    @property
    def set_aside(self) -> StatePart | None:
        """Rows that its gate did not expect, if it keeps them apart."""
        return next((part for part in self.kept if part.name == QUARANTINE), None)

    @property
    def written_by(self) -> str:
        """Equal for records whose files one attempt wrote: all of those have the same columns. Another attempt may have
        put them back, or copied them.
        """
        first, *folders = self.files[0].path.split("/") if self.files else ("",)
        if first != "_data":
            return self.attempt_id
        return folders[0] if folders[1:2] and folders[1].isdigit() else "/".join(folders[:2])

    @property
    def in_table(self) -> bool:
        """Whether it was published, and not taken out since."""
        return self.version is not None and self.state.keeps_files

    @property
    def taken_over(self) -> bool:
        """Whether another attempt had computed it, of which this one took it over."""
        return bool(self.files) and self.files[0].path.startswith("_data/") and self.written_by != self.attempt_id

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        """The files of the data and of the state."""
        return (*self.files, *(file for part in self.kept for file in part.files))


@dataclass(frozen=True)
class PartitionCount:
    """Into how many partitions a stage is cut for one interval, decided from the ``bytes`` of its inputs."""

    cell: Cell
    partitions: int
    bytes: int
    recorded_at: datetime


@dataclass(frozen=True)
class TakenPosition:
    """What the cell's interval takes of its source, as a run of it found it; the newest of a cell counts."""

    cell: Cell
    run_id: str
    position: Position
    recorded_at: datetime


@dataclass(frozen=True)
class GateResult:
    """What one expectation said about one partition in one attempt, or about all of a stage: `WHOLE`.

    ``configuration`` is the expectation and ``result`` what it saw, as Great Expectations writes them in JSON, for who
    renders them; empty where a version said it that did not keep them. ``expectation`` and ``observed`` are short texts
    of the same.
    """

    cell: Cell
    partition: int
    attempt_id: str
    suite: str
    expectation: str
    passed: bool
    observed: str
    recorded_at: datetime
    severity: Severity = Severity.CRITICAL
    configuration: str = ""
    result: str = ""

    @property
    def is_of_stage(self) -> bool:
        return self.partition == WHOLE

    @property
    def blocks(self) -> bool:
        return not self.passed and self.severity is Severity.CRITICAL


@dataclass(frozen=True)
class StageVerdict:
    """What a gate said of all partitions of a stage together.

    It is about the data with this ``fingerprint``, which follows from those of all partitions, and counts for it
    whoever computes that again. ``judged`` tells the expectations that it was judged by, ``refused`` which critical
    ones it does not meet, ``reason`` what was seen.
    """

    cell: Cell
    fingerprint: str
    judged: str
    attempt_id: str
    recorded_at: datetime
    refused: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def partition(self) -> int:
        return WHOLE


@dataclass(frozen=True)
class Event:
    """A line of a run's history, for people; nothing is decided from it. A `TRACE` is about an attempt, by its id."""

    run_id: str
    kind: str
    subject: str
    text: str
    recorded_at: datetime


# What the ledger says of the past and decides by, so that the lake has to know it as well. Not the rest: leases follow
# from epochs, and events and transitions are for people.
Fact = (
    Run
    | Attempt
    | PartitionRecord
    | GateResult
    | StageVerdict
    | TakenPosition
    | PartitionCount
    | Acceptance
    | Waiver
    | Pin
    | Restore
    | Backfill
    | CheckpointRecord
)
