"""How an attempt gets on, as its heartbeat tells the ledger: where it is, how much is done, and what its time goes for.

Spark reads, computes and writes in one query. What a server says of the stages of a query tells them apart: those that
read files, and the last one, which deals rows out to partitions and writes them. The rest is the function's, and so is
a query of one stage, as nobody can see where in it the time goes.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum


class Side(StrEnum):
    """What the time of a wave goes for."""

    READING = "reading"
    FUNCTION = "function"
    WRITING = "writing"
    JUDGING = "judging"
    PUBLISHING = "publishing"


@dataclass(frozen=True)
class Memory:
    """Bytes that the process of an attempt and the processes of its Spark server have; None where nobody can look."""

    client: int | None = None
    server: int | None = None


@dataclass(frozen=True)
class Pulse:
    """What a heartbeat carries. ``done`` of the ``partitions`` that an attempt has to do of a stage are on record, with
    so many ``rows`` and ``bytes``; the rates are those of its waves that have ended. ``read`` are the bytes of files
    that Spark has read for the stage, as far as its server told, which may be nothing of a query of less than two
    seconds, and ``seconds`` what the time went for, both up to now; while one wave is finished and the next one is
    computed, both count. ``doing`` is None between two waves.
    """

    stage: str
    wave: int
    doing: Side | None
    done: int
    partitions: int
    rows: int
    bytes: int
    read: int
    rows_a_second: float
    bytes_a_second: float
    seconds: Mapping[Side, float]
    memory: Memory = Memory()

    @property
    def slowest(self) -> Side | None:
        """What most of the time went for."""
        return max(self.seconds, key=lambda side: self.seconds[side]) if self.seconds else None

    @property
    def share_of_slowest(self) -> float:
        """Which part of the time that was, from 0 to 1."""
        whole = sum(self.seconds.values())
        return max(self.seconds.values()) / whole if whole else 0.0


@dataclass(frozen=True)
class QueryStage:
    """A stage of a query of Spark's, as the server says that it stands."""

    number: int
    tasks: int
    ended_tasks: int
    read: int


@dataclass
class _Query:
    """A query that computes and writes; ``dealt`` says that its last stage is there to write. ``spent`` are seconds by
    the numbers of the stages that were at work then.
    """

    dealt: bool
    since: float
    spent: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    read: dict[int, int] = field(default_factory=dict)
    working: int | None = None

    def observe(self, stages: Iterable[QueryStage], now: float) -> None:
        known = [*stages]
        self.read |= {stage.number: stage.read for stage in known}
        working = [stage.number for stage in known if stage.ended_tasks < stage.tasks]
        for number in working:
            self.spent[number] += (now - self.since) / len(working)
        if working:
            self.since, self.working = now, working[-1]

    def seconds(self, now: float) -> Mapping[Side, float]:
        """What its time up to ``now`` went for."""
        last = max(self.read, default=None)
        found: dict[Side, float] = defaultdict(float)
        for number, seconds in self.spent.items():
            found[self._side(number, last)] += seconds
        seen = last is not None and self.working == last
        found[self._side(last, last) if last is not None and seen else Side.FUNCTION] += now - self.since
        return found

    @property
    def doing(self) -> Side:
        """What it is at, as far as that is known while it goes on."""
        return Side.FUNCTION if self.working is None else self._side(self.working, max(self.read))

    def _side(self, number: int, last: int | None) -> Side:
        if number == last:
            return Side.WRITING if self.dealt and len(self.read) > 1 else Side.FUNCTION
        return Side.READING if self.read[number] else Side.FUNCTION


class Meter:
    """Measures the work of one attempt. Whoever works tells it: what computes in one thread, what finishes the wave
    before in another. Its heartbeat asks, in a third.

    :param memory: asked at each heartbeat.
    :param now: gives the time in seconds.
    """

    def __init__(self, memory: Callable[[], Memory] = Memory, now: Callable[[], float] = time.monotonic) -> None:
        self._memory, self._now = memory, now
        self._lock = threading.RLock()
        self._query: _Query | None = None
        self.begin_stage("", 0)

    def begin_stage(self, stage: str, partitions: int) -> None:
        """From now on the attempt works on a stage, of which it has so many partitions to do."""
        with self._lock:
            self._stage, self._partitions, self._wave = stage, partitions, 0
            self._done = self._rows = self._bytes = self._read = 0
            self._measured = 0.0
            self._spent: dict[Side, float] = defaultdict(float)
            self._doing: dict[int, tuple[Side, float]] = {}  # by thread, and since when

    def begin_wave(self, number: int) -> None:
        with self._lock:
            self._wave = number

    @contextmanager
    def at(self, side: Side) -> Iterator[None]:
        """The time of the block goes for this."""
        thread, since = threading.get_ident(), self._now()
        with self._lock:
            self._doing[thread] = side, since
        try:
            yield
        finally:
            with self._lock:
                self._spent[side] += self._now() - since
                self._doing.pop(thread, None)

    @contextmanager
    def in_query(self, *, dealt: bool) -> Iterator[None]:
        """The block computes and writes; what its time goes for follows from what `observe` is told meanwhile.

        :param dealt: the rows are dealt out to partitions before they are written.
        """
        with self._lock:
            self._query = _Query(dealt, self._now())
        try:
            yield
        finally:
            with self._lock:
                self._spent, self._read = self._spent_in_queries, self._read_by_now
                self._query = None

    def observe(self, stages: Iterable[QueryStage]) -> None:
        """What the server says of the query that is under way; whatever else it is asked counts for nothing."""
        with self._lock:
            if self._query is not None:
                self._query.observe(stages, self._now())

    def end_wave(self, partitions: int, rows: int, size: int, seconds: float) -> None:
        """A wave is on record, with so many partitions, rows and bytes, and took so many seconds."""
        with self._lock:
            self._done, self._rows, self._bytes = self._done + partitions, self._rows + rows, self._bytes + size
            self._measured += seconds

    def spent(self, side: Side) -> float:
        """Seconds that the stage's ended queries and blocks went for this."""
        with self._lock:
            return self._spent.get(side, 0.0)

    def pulse(self) -> Pulse | None:
        """How it gets on; None before it has begun a stage."""
        memory = self._memory()
        with self._lock:
            if not self._stage:
                return None
            spent, measured = self._spent_by_now(), self._measured
            return Pulse(
                stage=self._stage,
                wave=self._wave,
                doing=self._query.doing if self._query else next((side for side, _ in self._doing.values()), None),
                done=self._done,
                partitions=self._partitions,
                rows=self._rows,
                bytes=self._bytes,
                read=self._read_by_now,
                rows_a_second=self._rows / measured if measured else 0.0,
                bytes_a_second=self._bytes / measured if measured else 0.0,
                seconds={side: round(spent[side], 3) for side in Side if spent.get(side)},
                memory=memory,
            )

    @property
    def _spent_in_queries(self) -> dict[Side, float]:
        """What is spent, with the query that is under way, if one is."""
        spent = defaultdict(float, self._spent)
        for side, seconds in self._query.seconds(self._now()).items() if self._query else ():
            spent[side] += seconds
        return spent

    def _spent_by_now(self) -> dict[Side, float]:
        spent = self._spent_in_queries
        for side, since in self._doing.values():
            spent[side] += self._now() - since
        return spent

    @property
    def _read_by_now(self) -> int:
        return self._read + (sum(self._query.read.values()) if self._query else 0)
