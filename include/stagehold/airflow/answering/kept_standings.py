"""Keeps how intervals stand, and the newest runs, between requests: only rows that are new since then are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TypeVar

from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import OF_PROCESS, KeptMemory, Shelf
from stagehold.model.records import Run
from stagehold.run.intervals.interval_standings import Standings, standings
from stagehold.spec.pipeline import Pipeline

EACH = 40  # newest runs of a pipeline that are looked at
MOST_PLACES = 5_000  # of one query: a database takes so many parameters
BEHIND_ALL = (2**62, 2**62)  # higher than the numbers of all rows
OVERLAP = 1_000  # rows that are looked at again: PostgreSQL may show a row after one with a higher number
Asked = TypeVar("Asked")


class KeptStandings:
    """The standings of one ledger that this process keeps."""

    def __init__(self, ledger: Ledger, memory: KeptMemory = OF_PROCESS) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._standings = Shelf[tuple[Pipeline, Standings]]("standings of intervals", memory)
        self._runs = Shelf[tuple[Run, ...]]("newest runs", memory)
        self._era: object = object()  # part of all names, so that a new one forgets everything
        self._seen: Sequence[int] = BEHIND_ALL

    def of(self, places: Sequence[Place], pipelines: Mapping[str, Pipeline]) -> Mapping[Place, Standings]:
        """Their stages as they are on record now.

        :param pipelines: those of the places, by name.
        """
        with self._lock:
            self._forget_what_changed()
            found = {place: self._kept(place, pipelines) for place in places}
            for some in batched([place for place, kept in found.items() if kept is None]):
                for place, known in standings(pipelines, some, self._ledger).items():
                    self._standings.put((self._era, place), (pipelines[place[0]], known), own=known)
                    found[place] = known
            return {place: known for place, known in found.items() if known is not None}

    def newest_runs(self, pipelines: Sequence[str]) -> Mapping[str, tuple[Run, ...]]:
        """The newest runs of each pipeline, as many as are looked at, the newest first."""
        with self._lock:
            self._forget_what_changed()
            found = {name: self._runs.get((self._era, name)) for name in pipelines}
            for some in batched([name for name, kept in found.items() if kept is None]):
                read = self._ledger.pipelines.newest_runs(some, EACH)
                for name in some:
                    found[name] = read.get(name, ())
                    self._runs.put((self._era, name), read.get(name, ()))
            return {name: runs or () for name, runs in found.items()}

    def _forget_what_changed(self) -> None:
        overlap = 0 if self._ledger.back_end == "sqlite" else OVERLAP  # SQLite has one writer
        partition, transition = (max(0, row - overlap) for row in self._seen)
        before = self._seen
        changed, *self._seen = self._ledger.pipelines.changed(partition, transition)
        if before != BEHIND_ALL and any(now < then for now, then in zip(self._seen, before, strict=True)):
            self._era = object()  # rows are gone: it is another ledger
        for place in changed:
            self._standings.drop((self._era, place))
        for pipeline in {pipeline for pipeline, _ in changed}:
            self._runs.drop((self._era, pipeline))

    def _kept(self, place: Place, pipelines: Mapping[str, Pipeline]) -> Standings | None:
        pipeline, known = self._standings.get((self._era, place)) or (None, None)
        wanted = pipelines[place[0]]
        return known if pipeline is wanted or pipeline == wanted else None


@cache
def kept_standings(ledger: Ledger) -> KeptStandings:
    """The standings that are kept for the life of the api-server, as its ledger is."""
    return KeptStandings(ledger)


def batched(many: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
    return (many[first : first + MOST_PLACES] for first in range(0, len(many), MOST_PLACES))
