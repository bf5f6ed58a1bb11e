"""What an expectation observed over the last intervals, and between which bounds it had to be. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import GateResult

MOST_INTERVALS = 14


@dataclass(frozen=True)
class ObservedPoint:
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


@dataclass(frozen=True)
class ObservedHistory:
    stage: str
    expectation: str
    points: tuple[ObservedPoint, ...]


def number_in(observed: object) -> float | None:
    """The number that was observed; None if it was none, as of sets, dates or counts of unexpected values."""
    try:
        number = float(observed) if isinstance(observed, str | int | float) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def last_intervals(known: Iterable[tuple[str, datetime]], own: str, schedule: str | None) -> tuple[str, ...]:
    """The own one and those before it, oldest first, so many as are shown.

    :param known: intervals, each with when a run of it began, which places those that are no dates.
    """
    places = {interval: (moment_of(interval, schedule) or began, interval) for interval, began in known}
    if own not in places:
        return (own,)
    before = sorted(place for place in places.values() if place <= places[own])
    return tuple(interval for _, interval in before[-MOST_INTERVALS:])


def observed_points(intervals: Sequence[str], results: Iterable[GateResult]) -> tuple[ObservedPoint, ...]:
    """In the order of the intervals; of one in which no number was observed there is no point."""
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
    failed = sum(not one.passed for one in results)
    return ObservedPoint(interval, min(numbers), median(numbers), max(numbers), len(numbers), failed, least, most)


def _bounds(configuration: str) -> tuple[float | None, float | None]:
    """An expectation that names one ``value`` is bounded by it on both sides."""
    kwargs: Mapping[str, Any] = json.loads(configuration).get("kwargs", {}) if configuration else {}
    exact = kwargs.get("value")
    return number_in(kwargs.get("min_value", exact)), number_in(kwargs.get("max_value", exact))
