"""The web API's answers about a run's gates: refused partitions, all verdicts, observed values of earlier intervals,
and waivers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.gates.verdicts import Outcome
from stagehold.model.choices import Severity
from stagehold.model.partition_set import Ranges
from stagehold.model.standing import RefusalStanding


class WaiverTold(ResponseModel):
    """Who waived an expectation, why, and until when; None is for ever. A waiver that ends when it is recorded takes
    back an earlier one.
    """

    waived_by: str
    reason: str
    recorded_at: datetime
    until: datetime | None


class WordTold(ResponseModel):
    """A waiver of partitions as their data is now, and whether it holds; partition -1 is the whole stage."""

    waiver: WaiverTold
    holds: bool
    partitions: Ranges
    count: int


class GateFailure(ResponseModel):
    """Partitions of a stage that do not meet one critical expectation and are in the same state. ``observed`` is what
    the gate saw in the first of them. ``past`` are those who waived them before, or took that back, the first one
    first.
    """

    stage: str
    suite: str
    expectation: str
    standing: RefusalStanding
    partitions: Ranges
    count: int
    observed: str
    waiver: WaiverTold | None
    past: tuple[WordTold, ...] = ()


class SeenSample(ResponseModel):
    """What an expectation saw in one partition; ``values`` are examples of unexpected values. If the suite names keys,
    ``rows`` are examples of rows, by column.
    """

    partition: int
    observed: str
    values: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...] = ()


class OutcomeGroup(ResponseModel):
    """Partitions with the same outcome of an expectation. ``samples`` are of the first ones that do not meet it."""

    outcome: Outcome
    count: int
    partitions: Ranges
    samples: tuple[SeenSample, ...] = ()


class ExpectationVerdicts(ResponseModel):
    """One expectation of a stage's gate. If it is ``numeric``, it observed a number, and `history` has those of other
    intervals. ``words`` are the waivers of what it refuses, in force or not, the first one first.
    """

    suite: str
    expectation: str
    severity: Severity
    judged: int
    judged_at: datetime
    outcomes: tuple[OutcomeGroup, ...]
    numeric: bool
    words: tuple[WordTold, ...] = ()


class StageVerdicts(ResponseModel):
    """The verdicts of a stage's gate. ``partitions`` is one more than the number of the last partition on record,
    judged or not.
    """

    stage: str
    gate: str
    partitions: int
    expectations: tuple[ExpectationVerdicts, ...]


class RunVerdicts(ResponseModel):
    """The verdicts of a run. ``docs`` says whether there are pages of Great Expectations for the run's interval."""

    stages: tuple[StageVerdicts, ...]
    docs: bool


class ObservedPoint(ResponseModel):
    """One interval: the least, middle and greatest value that was observed in its partitions, and the bounds at that
    time, None where there was none. ``failed`` are partitions that did not meet the expectation.
    """

    interval: str
    low: float
    middle: float
    high: float
    partitions: int
    failed: int
    least: float | None
    most: float | None


class ObservedHistory(ResponseModel):
    stage: str
    expectation: str
    points: tuple[ObservedPoint, ...]


class WaiveAnswer(ResponseModel):
    """The waiver that is on record now."""

    stage: str
    expectation: str
    partitions: Ranges
    waiver: WaiverTold


class DocsMade(ResponseModel):
    """The number of pages of Great Expectations that were written, without their index."""

    pages: int
