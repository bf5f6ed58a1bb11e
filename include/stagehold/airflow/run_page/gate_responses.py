"""What the web API answers of a run's gates: what they refuse, every verdict, what was observed before, and waivers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.gates.verdicts import Outcome
from stagehold.model.partition_set import Ranges
from stagehold.model.records import Severity
from stagehold.model.standing import RefusalStanding


class WaiverTold(ResponseModel):
    """Who waived something, why and until when; None is for ever. A word that ends when it is said takes back what was
    waived before.
    """

    waived_by: str
    reason: str
    recorded_at: datetime
    until: datetime | None


class WordTold(ResponseModel):
    """A waiver of partitions as their data is now, and whether it holds; -1 is all of a stage together."""

    waiver: WaiverTold
    holds: bool
    partitions: Ranges
    count: int


class GateFailure(ResponseModel):
    """Partitions of a stage that do not meet one critical expectation and stand alike. ``observed`` is what the gate
    saw in the first of them, ``past`` who waived them before, or took that back, the first word first.
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
    """What an expectation saw in one partition; ``values`` are examples of what it did not expect. If the suite names
    keys, ``rows`` are examples of rows, by column.
    """

    partition: int
    observed: str
    values: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...] = ()


class OutcomeGroup(ResponseModel):
    """Partitions for which an expectation came to the same. ``samples`` are of the first ones that do not meet it."""

    outcome: Outcome
    count: int
    partitions: Ranges
    samples: tuple[SeenSample, ...] = ()


class ExpectationVerdicts(ResponseModel):
    """One expectation of a stage's gate. With ``numeric`` it observed a number, which `history` has of other intervals
    as well. ``words`` are those that people said of what it refuses, whether they hold or not, the first word first.
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
    """The verdicts of a stage's gate. ``partitions`` is the number above that of the last partition on record, judged
    or not.
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
    """One interval: the least, middle and greatest of what was observed in its partitions, and the bounds as they were
    then, None where there was none. ``failed`` are partitions that did not meet the expectation.
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
    """So many pages of Great Expectations were written, with an index before them."""

    pages: int
