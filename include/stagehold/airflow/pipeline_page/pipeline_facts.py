"""What the tab of a pipeline is made from, read from the ledger in a few queries however large the intervals are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.errors.request_errors import UnknownName
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.partitions import StateFigures
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Pin, Run
from stagehold.run.intervals.interval_standings import Standings, standings

if TYPE_CHECKING:
    from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class IntervalFacts:
    """Some intervals of a pipeline, in the order of the tab, of ``total``. ``warned`` is by interval and stage id,
    ``standings`` and ``pins`` by interval, ``following`` the interval behind which more are known.
    """

    known: KnownPipeline
    intervals: tuple[str, ...]
    total: int
    following: str | None
    runs: Mapping[str, Run]
    figures: Sequence[StateFigures]
    tries: Sequence[LastTries]
    warned: Mapping[tuple[str, str], int]
    standings: Mapping[str, Standings]
    pins: Mapping[str, Pin]


def read_facts(known: KnownPipeline, limit: int, before: str | None) -> IntervalFacts:
    """The newest intervals, or the newest of those before one of them.

    :raises UnknownName: there is nothing on record of that one.
    """
    ledger, pipeline = known.ledger, known.pipeline.name
    every = in_order(ledger.intervals.known(pipeline))
    rest = newest(every, before)
    shown = rest[:limit]
    found = standings({pipeline: known.pipeline}, [(pipeline, one) for one in shown], ledger)
    runs = {run.interval: run for run in ledger.runs.newest_of_intervals(pipeline, shown)}
    return IntervalFacts(
        known=known,
        intervals=shown,
        total=len(every),
        following=shown[-1] if len(rest) > len(shown) else None,
        runs=runs,
        figures=ledger.partitions.figures(pipeline, shown),
        tries=ledger.intervals.last_tries([run.run_id for run in runs.values()]),
        warned=ledger.intervals.warned(pipeline, shown) if any(one.gate for one in known.pipeline.stages) else {},
        standings={interval: stages for (_, interval), stages in found.items()},
        pins=ledger.pins.holding(pipeline, shown),
    )


def in_order(known: Mapping[str, datetime | None]) -> tuple[str, ...]:
    """Newest first: by the date that a key tells, or else by when a run for it began."""
    # Without the schedule a day is its midnight, which places it as well, and costs a thousandth of asking cron.
    places = {key: moment_of(key, None) or began or BEFORE_ALL for key, began in known.items()}
    return tuple(sorted(known, key=lambda key: (places[key], key), reverse=True))


def newest(every: tuple[str, ...], before: str | None) -> tuple[str, ...]:
    """Those in order behind one of them, or all.

    :raises UnknownName: there is nothing on record of that one.
    """
    return every[_place_of(before, every) + 1 :] if before is not None else every


def _place_of(interval: str, every: Sequence[str]) -> int:
    try:
        return every.index(interval)
    except ValueError:
        raise UnknownName("interval", interval, every[:10]) from None
