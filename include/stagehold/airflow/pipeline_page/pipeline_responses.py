"""The web API's answers about a pipeline's intervals: how each stands, which are stale, how they grew, what went wrong,
and the checkpoints and verdicts of their runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked, ResponseModel
from stagehold.airflow.run_page.run_responses import AttemptLoss
from stagehold.gates.verdicts import Outcome
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointState, CheckpointTrigger
from stagehold.model.choices import ClaimMode, Severity
from stagehold.model.records import RunState
from stagehold.model.standing import PartitionState, StageStanding
from stagehold.plan.backfill.backfill_plan import StaleInterval
from stagehold.run.intervals.interval_differences import StageContents


class StageColumn(ResponseModel):
    """A stage. ``stored`` is False if it is computed along with its reader and has no records."""

    name: str
    region: str
    gate: str | None
    stored: bool


class MadeBy(ResponseModel):
    """A run, by its id in the ledger, and how many of the present partitions it made."""

    run_id: str
    partitions: int


class TryFailure(ResponseModel):
    """Why tries of a region failed in the newest run; ``tries`` of its shares ended like that. If the last try was
    lost, ``lost`` says who noticed, and when.
    """

    tries: int
    cause: str | None
    failure: str | None
    lost: AttemptLoss | None = None


class StageCell(ResponseModel):
    """One stage for one interval. ``wanted`` is how many partitions it is to have, None if its output is not stored.
    The newest run ``computed`` some, and ``reused`` those of earlier runs. A gate has ``judged`` so many: ``refused``
    partitions do not meet a critical expectation, ``warned`` ones another expectation.
    """

    stage: str
    state: StageStanding
    counts: Mapping[PartitionState, int]
    wanted: int | None
    computed: int
    reused: int
    rows: int
    bytes: int
    seconds: float
    recorded_at: datetime | None
    made_by: tuple[MadeBy, ...]
    judged: int
    refused: int
    warned: int
    failures: tuple[TryFailure, ...]


class NewestRun(ResponseModel):
    """The newest run of an interval; ``active`` says whether it goes on."""

    run_id: str
    state: RunState
    active: bool
    started_at: datetime
    ended_at: datetime | None


class IntervalPin(ResponseModel):
    """Who said that an interval keeps its outputs, when and why."""

    by: str
    at: datetime
    reason: str


class IntervalLook(StrEnum):
    """Which intervals a reader looks for."""

    ALL = "all"
    FAILED = "failed"  # the newest run did not come to its end
    NEEDED = "needed"  # somebody has to look: it failed, is blocked or suspended, or is not whole


class IntervalRow(ResponseModel):
    """An interval with its stages. Data that was taken over from elsewhere has no run in the ledger. ``pin`` keeps the
    interval's outputs, if it is pinned.
    """

    interval: str
    looks: tuple[IntervalLook, ...]
    run: NewestRun | None
    cells: tuple[StageCell, ...]
    pin: IntervalPin | None


class IntervalPage(ResponseModel):
    """Newest intervals first, of ``total``; the intervals behind ``following`` are on the next page. ``looks`` counts
    all intervals of the dates that were asked for, on any page. ``may_change`` says whether the reader may pin them.
    ``place`` is the pipeline's place, and ``places`` are those of all pipelines of the DAG.
    """

    dag_id: str
    place: str
    places: Mapping[str, str]
    pipeline: str
    schedule: str | None
    total: int
    looks: Mapping[IntervalLook, int]
    stages: tuple[StageColumn, ...]
    intervals: tuple[IntervalRow, ...]
    following: str | None
    looked: Looked = AS_RECORDED
    may_change: bool = False


class PinAnswer(ResponseModel):
    """The intervals that are ``pinned`` now, or no longer. Of those that are pinned, so many partitions had been
    ``released`` before.
    """

    intervals: tuple[str, ...]
    pinned: bool
    released: int


class StageComparison(ResponseModel):
    """A stage of two intervals: ``equal`` partitions have the same rows in both, ``causes`` say what made the others
    different, and ``columns`` how the columns change from one to the other.
    """

    stage: str
    one: StageContents
    other: StageContents
    equal: int
    causes: tuple[str, ...]
    columns: tuple[str, ...]


class IntervalComparison(ResponseModel):
    """Two intervals, stage by stage."""

    one: str
    other: str
    stages: tuple[StageComparison, ...]


class Unplanned(ResponseModel):
    """An interval that cannot be planned, and why."""

    interval: str
    problem: str


class Staleness(ResponseModel):
    """Intervals as they stood at ``planned_at``, which is None while the first plan is being made. All are newest
    first; ``looked_at`` are those that were planned.
    """

    pipeline: str
    planned_at: datetime | None
    looked_at: tuple[str, ...]
    stale: tuple[StaleInterval, ...]
    unplanned: tuple[Unplanned, ...]


class StageHistory(ResponseModel):
    """One value for each interval; None where nothing is on record. ``seconds`` is the work on all its partitions, in
    any run; ``bytes`` is unknown if the data was released.
    """

    stage: str
    seconds: tuple[float | None, ...]
    rows: tuple[int | None, ...]
    bytes: tuple[int | None, ...]


class PipelineHistory(ResponseModel):
    """How stages grew from interval to interval, the oldest first."""

    intervals: tuple[str, ...]
    stages: tuple[StageHistory, ...]


class Recovery(ResponseModel):
    """A region, or a share of it, that failed in a run and was tried again, ``attempts`` times in all.

    ``failed_at`` is when its first failure was known, ``recovered_at`` when a try after the last failure finished, None
    if none has. ``reused`` partitions had been made by tries that failed, in ``saved_seconds``, and were not computed
    again.
    """

    interval: str
    run_id: str
    subject: str
    attempts: int
    cause: str | None
    failure: str
    failed_at: datetime
    recovered_at: datetime | None
    reused: int
    saved_seconds: float


class PipelineRecoveries(ResponseModel):
    """The newest recoveries first."""

    recoveries: tuple[Recovery, ...]


class CheckpointCounts(ResponseModel):
    """Checkpoints, counted as Flink counts them: a checkpoint that was replaced by newer ones was completed."""

    triggered: int
    in_progress: int
    completed: int
    failed: int
    restored: int


class CheckpointLine(ResponseModel):
    """One checkpoint or savepoint. ``bytes_written`` is the size of its own files, ``bytes_full`` includes files that
    it shares with earlier ones. ``alignment`` is how many seconds it waited for waves to end, None unless all attempts
    did their part. A completed checkpoint is in the lake unless it was ``replaced``. It is ``untold`` while a listener
    or stage that has a part in it does not know that it ended.
    """

    run_id: str
    number: int
    interval: str
    state: CheckpointState
    replaced: bool
    trigger: CheckpointTrigger
    savepoint: str | None
    triggered_at: datetime
    ended_at: datetime | None
    acknowledged: int
    asked: int
    bytes_written: int
    bytes_full: int
    alignment: float | None
    failure: str | None
    fails_run: bool
    untold: bool


class RestoreLine(ResponseModel):
    """The checkpoint that a run began with. Without ``fulfilled_at``, not all of it has been taken over."""

    run_id: str
    manifest: str
    requested_at: datetime
    fulfilled_at: datetime | None
    claim_mode: ClaimMode


class Spread(ResponseModel):
    """The least value, the mean, the middle, the 99th percentile, and the greatest value."""

    least: float
    average: float
    p50: float
    p99: float
    most: float


class CheckpointSummary(ResponseModel):
    """The newest ``checkpoints`` that were completed: how long each took, how long it waited for waves to end, in
    seconds, and how large it is. ``alignment`` is None if no attempt had a part in any.
    """

    checkpoints: int
    duration: Spread
    alignment: Spread | None
    bytes_written: Spread
    bytes_full: Spread


class CheckpointPage(ResponseModel):
    """The newest checkpoint of all and of each kind, and a page of them, newest first. There is no ``summary`` before a
    checkpoint was completed.
    """

    counts: CheckpointCounts
    summary: CheckpointSummary | None
    completed: CheckpointLine | None
    savepoint: CheckpointLine | None
    failed: CheckpointLine | None
    restore: RestoreLine | None
    checkpoints: tuple[CheckpointLine, ...]


class AttemptPart(ResponseModel):
    """One attempt's part in a checkpoint; without ``answer`` it has not answered yet."""

    attempt_id: str
    share: str | None
    asked_at: datetime
    answered_at: datetime | None
    answer: Answer | None
    reason: CheckpointFailure | None


class RegionParts(ResponseModel):
    """A region's attempts, one for each of its shares; ``answered_at`` is when the last of them answered."""

    region: str
    acknowledged: int
    asked: int
    asked_at: datetime
    answered_at: datetime | None
    attempts: tuple[AttemptPart, ...]


class StagePart(ResponseModel):
    """What a checkpoint has of a stage; the attempts of ``region`` did its part."""

    stage: str
    region: str
    partitions: int
    rows: int
    bytes: int


class CheckpointAnswers(ResponseModel):
    """The parts of attempts in a checkpoint, by region, and what it has of each stage."""

    run_id: str
    number: int
    regions: tuple[RegionParts, ...]
    stages: tuple[StagePart, ...]


class IntervalRate(ResponseModel):
    """How many partitions of one interval had which outcome of an expectation; a whole stage that is judged together
    counts as one.
    """

    interval: str
    counts: Mapping[Outcome, int]


class ExpectationRates(ResponseModel):
    """One expectation; ``rates`` are of the intervals that it judged, the oldest first."""

    suite: str
    expectation: str
    severity: Severity
    rates: tuple[IntervalRate, ...]


class StageRates(ResponseModel):
    stage: str
    gate: str | None
    expectations: tuple[ExpectationRates, ...]


class GateRates(ResponseModel):
    """Each partition counts with its last verdict. ``intervals`` are those that were looked at, the oldest first."""

    intervals: tuple[str, ...]
    stages: tuple[StageRates, ...]


class PlanUnderWay(ResponseModel):
    """So many intervals of a large backfill are ``planned``; ``of`` is None until it is its turn."""

    planned: int
    of: int | None


class BegunBackfill(ResponseModel):
    """``backfill_id`` is Airflow's; ``intervals`` are those of which anything runs; ``along`` is what Airflow starts
    besides. The ledger's ids of its runs begin with the pipeline's ``place``.
    """

    backfill_id: int
    place: str
    token: str
    intervals: tuple[str, ...]
    along: str | None
