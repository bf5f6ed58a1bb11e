"""The verdicts of a run's gates as its page shows them: expectations by partitions, in ranges. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from statistics import median
from typing import Any

from stagehold.airflow.run_page.gate_responses import (
    ExpectationVerdicts,
    ObservedPoint,
    OutcomeGroup,
    SeenSample,
    StageVerdicts,
)
from stagehold.gates.verdicts import ROWS, Outcome, Waived, outcome_of
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult

MOST_SAMPLES = 3  # partitions of a group whose observed values are in the answer
MOST_VALUES = 20
LONGEST_VALUE = 80  # characters
VALUES = "partial_unexpected_list"


def stage_verdicts(
    stage: str, gate: str, partitions: int, results: Iterable[GateResult], waived: Waived
) -> StageVerdicts:
    """The verdicts of a stage's gate, in the order of the suite.

    :param results: the verdicts of each partition when it was last judged.
    """
    by_expectation: dict[tuple[str, str, bool], list[GateResult]] = {}
    for one in results:
        by_expectation.setdefault((one.suite, one.expectation, one.is_of_stage), []).append(one)
    expectations = tuple(_verdicts(some, waived) for some in by_expectation.values())
    return StageVerdicts(stage=stage, gate=gate, partitions=partitions, expectations=expectations)


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
    """Groups of partitions by outcome, in the order of `Outcome`: unmet expectations first, met ones last."""
    found: dict[Outcome, list[GateResult]] = {}
    for one in results:
        found.setdefault(outcome_of(one, waived), []).append(one)
    for outcome in (*(one for one in Outcome if one is not Outcome.PASSED), Outcome.PASSED):
        if some := found.get(outcome):
            shown = () if outcome is Outcome.PASSED else tuple(map(_sample, some[:MOST_SAMPLES]))
            partitions = PartitionSet(one.partition for one in some).ranges
            yield OutcomeGroup(outcome=outcome, count=len(some), partitions=partitions, samples=shown)


def _sample(result: GateResult) -> SeenSample:
    seen: Mapping[str, Any] = json.loads(result.result) if result.result else {}
    values = dict.fromkeys(str(value)[:LONGEST_VALUE] for value in seen.get(VALUES) or ())
    rows = ({name: str(value)[:LONGEST_VALUE] for name, value in row.items()} for row in seen.get(ROWS) or ())
    return SeenSample(
        partition=result.partition,
        observed=result.observed,
        values=tuple(values)[:MOST_VALUES],
        rows=tuple(islice(rows, MOST_VALUES)),
    )


MOST_INTERVALS = 14


def number_in(observed: object) -> float | None:
    """The observed number; None if something else was observed, such as sets, dates or counts of unexpected values."""
    try:
        number = float(observed) if isinstance(observed, str | int | float) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def last_intervals(known: Iterable[tuple[str, datetime]], own: str, schedule: str | None) -> tuple[str, ...]:
    """The run's own interval and those before it, oldest first, as many as are shown.

    :param known: intervals, each with the moment at which a run of it began, which orders intervals that are no dates.
    """
    places = {interval: (moment_of(interval, schedule) or began, interval) for interval, began in known}
    if own not in places:
        return (own,)
    before = sorted(place for place in places.values() if place <= places[own])
    return tuple(interval for _, interval in before[-MOST_INTERVALS:])


def observed_points(intervals: Sequence[str], results: Iterable[GateResult]) -> tuple[ObservedPoint, ...]:
    """A point for each interval in which a number was observed, in the order of the intervals."""
    by_interval: dict[str, list[GateResult]] = {}
    for one in results:
        by_interval.setdefault(one.cell.interval, []).append(one)
    points = (_point(interval, by_interval.get(interval, ())) for interval in intervals)
    return tuple(point for point in points if point is not None)


def _point(interval: str, results: Sequence[GateResult]) -> ObservedPoint | None:
    numbers = [number for one in results if (number := number_in(one.observed)) is not None]
    if not numbers:
        return None
    least, most = _bounds(results[-1].configuration)
    return ObservedPoint(
        interval=interval,
        low=min(numbers),
        middle=median(numbers),
        high=max(numbers),
        partitions=len(numbers),
        failed=sum(not one.passed for one in results),
        least=least,
        most=most,
    )


def _bounds(configuration: str) -> tuple[float | None, float | None]:
    """The bounds. An expectation that names one ``value`` is bounded by it on both sides."""
    kwargs: Mapping[str, Any] = json.loads(configuration).get("kwargs", {}) if configuration else {}
    exact = kwargs.get("value")
    return number_in(kwargs.get("min_value", exact)), number_in(kwargs.get("max_value", exact))
