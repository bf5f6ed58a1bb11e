"""How intervals stand, kept between requests: only what was written since is counted anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TypeVar

from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.ledger import Ledger
from stagehold.run.intervals.interval_standings import Standings, standings
from stagehold.spec.pipeline import Pipeline

MOST_KEPT = 10_000
MOST_PLACES = 5_000  # of one query: a database takes so many parameters
BEHIND_ALL = (2**62, 2**62)  # numbers of rows
OVERLAP = 1_000  # rows that are looked at again: PostgreSQL may show a row after one with a higher number
Asked = TypeVar("Asked")


class KeptStandings:
    """Of one ledger, in this process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._kept: dict[Place, tuple[Pipeline, Standings]] = {}
        self._seen: Sequence[int] = BEHIND_ALL

    def of(self, places: Sequence[Place], pipelines: Mapping[str, Pipeline]) -> Mapping[Place, Standings]:
        """Their stages as they are on record now.

        :param pipelines: those of the places, by name.
        """
        with self._lock:
            self._forget_what_changed()
            new = [place for place in places if not self._is_kept(place, pipelines)]
            for some in batched(new):
                known = standings(pipelines, some, self._ledger)
                self._kept |= {place: (pipelines[place[0]], known[place]) for place in some}
            return {place: self._kept[place][1] for place in places}

    def _forget_what_changed(self) -> None:
        if not self._kept or len(self._kept) > MOST_KEPT:
            self._kept, self._seen = {}, BEHIND_ALL
        partition, transition = (max(0, row - OVERLAP) for row in self._seen)
        before = self._seen
        changed, *self._seen = self._ledger.pipelines.changed(partition, transition)
        if before != BEHIND_ALL and any(now < then for now, then in zip(self._seen, before, strict=True)):
            self._kept = {}  # rows are gone: it is another ledger
        for place in changed:
            self._kept.pop(place, None)

    def _is_kept(self, place: Place, pipelines: Mapping[str, Pipeline]) -> bool:
        return place in self._kept and self._kept[place][0] == pipelines[place[0]]


@cache
def kept_standings(ledger: Ledger) -> KeptStandings:
    """For the life of the api-server, as its ledger."""
    return KeptStandings(ledger)


def batched(many: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
    return (many[first : first + MOST_PLACES] for first in range(0, len(many), MOST_PLACES))
