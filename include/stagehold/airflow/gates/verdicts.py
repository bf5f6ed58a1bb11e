"""The verdicts of a run's gates as its page shows them: expectations by partitions, in ranges. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stagehold.airflow.gates.history import number_in
from stagehold.gates.verdicts import Outcome, Waived, outcome_of
from stagehold.model.partition_set import PartitionSet, Ranges
from stagehold.model.records import GateResult, Severity

MOST_SAMPLES = 3  # partitions of a group of which it is told what was seen
MOST_VALUES = 20
LONGEST_VALUE = 80  # letters
VALUES = "partial_unexpected_list"


@dataclass(frozen=True)
class SeenSample:
    """What an expectation saw in one partition; ``values`` are some that it did not expect."""

    partition: int
    observed: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class OutcomeGroup:
    """Partitions for which an expectation came to the same. ``samples`` are of the first ones that do not meet it."""

    outcome: Outcome
    count: int
    partitions: Ranges
    samples: tuple[SeenSample, ...] = ()


@dataclass(frozen=True)
class ExpectationVerdicts:
    """One expectation of a stage's gate. With ``numeric`` it observed a number, which `history` has of other intervals
    as well.
    """

    suite: str
    expectation: str
    severity: Severity
    judged: int
    judged_at: datetime
    outcomes: tuple[OutcomeGroup, ...]
    numeric: bool


@dataclass(frozen=True)
class StageVerdicts:
    """``partitions`` is the number above that of the last one on record, judged or not."""

    stage: str
    gate: str
    partitions: int
    expectations: tuple[ExpectationVerdicts, ...]


@dataclass(frozen=True)
class RunVerdicts:
    """``docs`` says whether there are pages of Great Expectations for the run's interval."""

    stages: tuple[StageVerdicts, ...]
    docs: bool


def stage_verdicts(
    stage: str, gate: str, partitions: int, results: Iterable[GateResult], waived: Waived
) -> StageVerdicts:
    """In the order of the suite.

    :param results: what was said when each partition was judged last.
    """
    by_expectation: dict[tuple[str, str, bool], list[GateResult]] = {}
    for one in results:
        by_expectation.setdefault((one.suite, one.expectation, one.is_of_stage), []).append(one)
    expectations = tuple(_verdicts(some, waived) for some in by_expectation.values())
    return StageVerdicts(stage, gate, partitions, expectations)


def _verdicts(results: Sequence[GateResult], waived: Waived) -> ExpectationVerdicts:
    newest = max(results, key=lambda one: one.recorded_at)
    return ExpectationVerdicts(
        suite=newest.suite,
        expectation=newest.expectation,
        severity=newest.severity,
        judged=len(results),
        judged_at=newest.recorded_at,
        outcomes=tuple(_groups(results, waived)),
        numeric=any(number_in(one.observed) is not None for one in results),
    )


def _groups(results: Sequence[GateResult], waived: Waived) -> Iterator[OutcomeGroup]:
    """What was not met comes first, in the order of `Outcome`; what passed is the last."""
    found: dict[Outcome, list[GateResult]] = {}
    for one in results:
        found.setdefault(outcome_of(one, waived), []).append(one)
    for outcome in (*(one for one in Outcome if one is not Outcome.PASSED), Outcome.PASSED):
        if some := found.get(outcome):
            shown = () if outcome is Outcome.PASSED else tuple(map(_sample, some[:MOST_SAMPLES]))
            yield OutcomeGroup(outcome, len(some), PartitionSet(one.partition for one in some).ranges, shown)


def _sample(result: GateResult) -> SeenSample:
    seen: Mapping[str, Any] = json.loads(result.result) if result.result else {}
    values = dict.fromkeys(str(value)[:LONGEST_VALUE] for value in seen.get(VALUES) or ())
    return SeenSample(result.partition, result.observed, tuple(values)[:MOST_VALUES])
