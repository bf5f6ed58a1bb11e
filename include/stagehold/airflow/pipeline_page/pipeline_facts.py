"""What the tab of a pipeline is made from, read from the ledger by a few queries however large the intervals are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.kept_standings import kept_standings
from stagehold.airflow.pipeline_page.pipeline_responses import IntervalLook
from stagehold.errors.request_errors import UnknownName
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.partitions import StateFigures
from stagehold.model.choices import Pin
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Run, RunState
from stagehold.model.standing import RunWord, Standing, need_of, together
from stagehold.run.intervals.interval_standings import Standings
from stagehold.run.lease.lost_attempts import Loss, region_losses

if TYPE_CHECKING:
    from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline

BEFORE_ALL, BEHIND_ALL = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


MOST_LEASES = 10_000
_ENDS = {
    RunState.FINISHED: RunWord.SUCCESS,
    RunState.FAILED: RunWord.FAILED,
    RunState.CANCELED: RunWord.CANCELED,
    RunState.SUSPENDED: RunWord.SUSPENDED,
}


@dataclass(frozen=True)
class Asked:
    """The intervals that a caller asks for: so many of the newest, or of those before one; with a ``look``, only those
    that match it; between ``first`` and ``end``, which is not included.
    """

    limit: int
    before: str | None = None
    look: IntervalLook = IntervalLook.ALL
    first: datetime | None = None
    end: datetime | None = None

    def reaches(self, interval: str) -> bool:
        """Whether the range has the interval. An interval that is no date is in no range."""
        if self.first is None and self.end is None:
            return True
        at = moment_of(interval, None)
        return at is not None and (self.first or BEFORE_ALL) <= at < (self.end or BEHIND_ALL)


@dataclass(frozen=True)
class IntervalFacts:
    """Some intervals of a pipeline, in the order of the tab, of ``total``. ``looks`` counts the intervals of the dates
    that were asked for, and ``looks_of`` says which look each matches. ``warned`` is by interval and stage id,
    ``standings`` and ``pins`` are by interval. If there are more intervals, they are behind ``following``. ``leases``
    are the names of leases that are held, ``losses`` the last lost attempts by run and region.
    """

    known: KnownPipeline
    intervals: tuple[str, ...]
    total: int
    looks: Mapping[IntervalLook, int]
    looks_of: Mapping[str, frozenset[IntervalLook]]
    following: str | None
    runs: Mapping[str, Run]
    figures: Sequence[StateFigures]
    tries: Sequence[LastTries]
    warned: Mapping[tuple[str, str], int]
    standings: Mapping[str, Standings]
    pins: Mapping[str, Pin]
    leases: frozenset[str]
    losses: Mapping[tuple[str, str], Loss] = field(default_factory=dict)


def read_facts(known: KnownPipeline, asked: Asked) -> IntervalFacts:
    """The facts of the intervals that are asked for.

    :raises UnknownName: nothing is on record of the interval that they are to be before.
    """
    ledger, pipeline = known.ledger, known.pipeline.name
    every = in_order(ledger.intervals.known(pipeline))
    stages = _stages([one for one in every if asked.reaches(one)], known)
    looks = _looks(stages, known)
    rest = tuple(one for one in newest(every, asked.before) if asked.look in looks.get(one, ()))
    shown = rest[: asked.limit]
    runs = {run.interval: run for run in ledger.runs.newest_of_intervals(pipeline, shown)}
    tries = ledger.intervals.last_tries([run.run_id for run in runs.values()])
    return IntervalFacts(
        known=known,
        intervals=shown,
        total=len(every),
        looks={look: sum(look in one for one in looks.values()) for look in IntervalLook},
        looks_of={one: looks[one] for one in shown},
        following=shown[-1] if len(rest) > len(shown) else None,
        runs=runs,
        figures=ledger.partitions.figures(pipeline, shown),
        tries=tries,
        warned=ledger.intervals.warned(pipeline, shown) if any(one.gate for one in known.pipeline.stages) else {},
        leases=frozenset(one.name for one in ledger.leases.alive_among((), [f"{pipeline}/"], MOST_LEASES)),
        standings={one: stages[one] for one in shown},
        pins=ledger.pins.holding(pipeline, shown),
        losses=region_losses(tries, ledger),
    )


def _stages(intervals: Sequence[str], known: KnownPipeline) -> Mapping[str, Standings]:
    pipeline = known.pipeline.name
    places = [(pipeline, one) for one in intervals]
    found = kept_standings(known.ledger).of(places, {pipeline: known.pipeline})
    return {interval: stages for (_, interval), stages in found.items()}


def _looks(found: Mapping[str, Standings], known: KnownPipeline) -> Mapping[str, frozenset[IntervalLook]]:
    """The look that each of these intervals matches."""
    runs = {run.interval: run for run in known.ledger.runs.newest_of_intervals(known.pipeline.name)}
    return {one: _look(runs.get(one), together(stages.values()), known) for one, stages in found.items()}


def _look(run: Run | None, standing: Standing, known: KnownPipeline) -> frozenset[IntervalLook]:
    word = None if run is None else RunWord.RUNNING if known.goes_on(run) else ledger_word(run, active=False)
    true = {
        IntervalLook.ALL: True,
        IntervalLook.FAILED: word is not None and word.ended_badly,
        IntervalLook.NEEDED: need_of(word, standing) is not None,
    }
    return frozenset(look for look, is_so in true.items() if is_so)


def ledger_word(run: Run, *, active: bool) -> RunWord:
    """The state of a run, from the ledger.

    :param active: somebody works on its interval.
    """
    return _ENDS.get(run.state) or (RunWord.RUNNING if active else RunWord.SILENT)


def in_order(known: Mapping[str, datetime | None]) -> tuple[str, ...]:
    """Intervals, newest first: by the date in a key, or else by when a run for it began."""
    # Without the schedule a day is its midnight. That orders days as well, and takes a thousandth of the time of cron.
    places = {key: moment_of(key, None) or began or BEFORE_ALL for key, began in known.items()}
    return tuple(sorted(known, key=lambda key: (places[key], key), reverse=True))


def newest(every: tuple[str, ...], before: str | None) -> tuple[str, ...]:
    """The intervals in order behind one of them, or all.

    :raises UnknownName: nothing is on record of that interval.
    """
    return every[_place_of(before, every) + 1 :] if before is not None else every


def _place_of(interval: str, every: Sequence[str]) -> int:
    try:
        return every.index(interval)
    except ValueError:
        raise UnknownName("interval", interval, every[:10]) from None
