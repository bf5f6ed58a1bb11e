"""All interleavings of a small world: two attempts of all partitions, a source that changes, a lease that ends, and a
crash of everybody at any point.

A state that has been seen is left out, whatever led to it: the same ledger, the same files and logs, and those who are
alive stand where they stood and have decided what they had. Each way on from a state is gone by a copy of this process,
since nobody who stands half-way can be copied otherwise. Who dies alone is who makes no more steps: that is one of the
ways.
"""

from __future__ import annotations

import gc
import hashlib
import mmap
import os
import pickle
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from fuzz.simulator.actors import Actor
from fuzz.simulator.histories import History, bring_to_an_end
from fuzz.simulator.simulated_lake import SimulatedLake
from fuzz.simulator.simulated_ledger import BEGINNING
from fuzz.simulator.simulation import LEASE_SECONDS, Move, Shape, Simulation

from stagehold.lake.store.files import mounted

# Between these places an actor does nothing that others could notice, or they could do to it.
PLACES = re.compile(
    r"its beginning|ledger: (Leases|record_lost|Attempts.begin|publish|adopt|succeed)|creates|looks|commits|writes said"
)
MOST_BETWEEN = 100
LEASE_OVER = Move("jump", LEASE_SECONDS + 1)
MOST_STATES = 1 << 22
STATES, ENDS, AGAIN, CRASHES, CUT_OFF = range(5)  # what is counted


@dataclass(frozen=True)
class Explored:
    """How many states there were, how many of them were ends, after how many a crash was played, and how many moves led
    to states that were known.
    """

    states: int
    ends: int
    again: int
    crashes: int
    whole: bool
    broken: History | None = None

    def __str__(self) -> str:
        return (
            f"{self.states} states, {self.ends} of them ends, and {self.crashes} crashes; "
            f"{self.again} moves led to states that were known"
        )


def explored(shape: Shape, seconds: float, attempts: int = 2) -> Explored:
    """Go to every state, depth first, until something is broken, or the time is over."""
    lake = SimulatedLake()
    with tempfile.TemporaryDirectory() as folder, mounted(lake, lake.uri):
        explorer = _Explorer(Simulation(shape, lake), time.monotonic() + seconds, Path(folder, "broken"))
        gc.freeze()  # copies share what they do not touch, and a collection touches everything
        beginning = [Move("begin", number, ("attempt", 1, 0, True)) for number in range(1, attempts + 1)]
        well = explorer.goes_well(lambda: explorer.go_all_ways(beginning))
        gc.unfreeze()
        moves = None if well else pickle.loads(explorer.broken.read_bytes())
    counts = [explorer.counts[kind] for kind in (STATES, ENDS, AGAIN, CRASHES)]
    return Explored(*counts, not explorer.counts[CUT_OFF], None if well else _history(shape, moves))


class _Explorer:
    """A process that goes through a world. Its copies share the states that were seen and the counts, and only one of
    them works at a time; ``moves`` and ``world`` are each one's own.
    """

    def __init__(self, world: Simulation, until: float, broken: Path) -> None:
        self.world, self.until, self.broken = world, until, broken
        self.moves = list[Move]()
        self.counts = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
        self._seen = memoryview(mmap.mmap(-1, MOST_STATES * 8)).cast("Q")

    def goes_well(self, way: Callable[[], None]) -> bool:
        """Whether nothing breaks on a way that a copy of this process goes; else its moves are in a file."""
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1] == 0
        code = 1
        try:
            way()
            code = 0
        except Exception:  # noqa: BLE001 - whatever it is, it should not be
            if not self.broken.exists():
                self.broken.write_bytes(pickle.dumps(self.moves))
        finally:
            os._exit(code)

    def go_all_ways(self, moves: Sequence[Move]) -> None:
        """Make these moves, and go on until a state is known or an end; all ways but the last are gone by copies."""
        self._make(moves)
        while self._is_new(_digest(self.world, _alive(self.world)), STATES):
            if time.monotonic() > self.until:
                self.counts[CUT_OFF] = 1
                return
            self._crash()
            ways = [*_ways(self.world)]
            if not ways:
                self.counts[ENDS] += 1
                return bring_to_an_end(self.world)
            for way in ways[:-1]:
                self._elsewhere(lambda way=way: self.go_all_ways([way]))  # type: ignore[misc]
            self._make(ways[-1:])

    def _crash(self) -> None:
        """All die at once, where that leaves what no crash before has left."""
        if _alive(self.world) and self._is_new(_digest(self.world, ()), CRASHES):
            self._elsewhere(self._die)

    def _die(self) -> None:
        self._make([Move("kill", number) for number, _ in _alive(self.world)])
        bring_to_an_end(self.world)

    def _elsewhere(self, way: Callable[[], None]) -> None:
        if not self.goes_well(way):
            raise RuntimeError("something is broken there")

    def _make(self, moves: Iterable[Move]) -> None:
        for move in moves:
            self.moves.append(move)
            _made(self.world, move)

    def _is_new(self, digest: int, kind: int) -> bool:
        place = digest % MOST_STATES
        while self._seen[place] not in (0, digest):
            place = (place + 1) % MOST_STATES
        new = self._seen[place] == 0
        self._seen[place] = digest
        self.counts[kind if new else AGAIN] += 1
        return new


def _history(shape: Shape, moves: Sequence[Move]) -> History:
    """What happens by these moves, in words."""
    lake = SimulatedLake()
    history = History(shape, [*moves])
    with mounted(lake, lake.uri):
        world = Simulation(shape, lake)
        history.lines = world.lines
        try:
            for move in moves:
                _made(world, move)
            bring_to_an_end(world)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            history.broken = error
        finally:
            world.end()
    return history


def _made(world: Simulation, move: Move) -> None:
    """Make a move; a step goes on to the next place that matters."""
    world.make(move)
    if move.what == "step":
        actor = world.actors[move.to]
        for _ in range(MOST_BETWEEN):
            if not actor.alive or PLACES.match(actor.stepper.at):
                return
            world.make(move)


def _ways(world: Simulation) -> Iterator[Move]:
    alive = _alive(world)
    if alive and world.sources[0] == 0:
        yield Move("change", 0, 1)
    if alive and world.database.clock < BEGINNING + timedelta(seconds=LEASE_OVER.to):
        yield LEASE_OVER
    for number, _ in alive:
        yield Move("step", number)


def _alive(world: Simulation) -> Sequence[tuple[int, Actor]]:
    return [(number, actor) for number, actor in world.actors.items() if actor.alive]


def _digest(world: Simulation, alive: Sequence[tuple[int, Actor]]) -> int:
    """:param alive: who counts; of the dead, ledger and lake have all there is."""
    rows = [world.database.rows(question) for question in _ROWS]
    stand = [(actor.name, actor.stepper.at, actor.steps, actor.decided) for _, actor in alive]
    files = sorted((path, _logged(path, content)) for path, content in world.lake.files.items() if _counts(path))
    facts = (rows, stand, files, world.sources, world.database.clock)
    return int.from_bytes(hashlib.sha256(repr(facts).encode()).digest()[:8]) or 1


def _counts(path: str) -> bool:
    return not path.endswith(".jsonl") or "said" in path


def _logged(path: str, content: bytes) -> bytes:
    """What a log says, without the moments at which it was said."""
    return re.sub(rb'"modificationTime":\d+', b"", content) if path.endswith(".json") else b""


_ROWS: Sequence[str] = (
    "SELECT name, epoch, expires_at FROM leases ORDER BY name",
    "SELECT attempt_id, epoch, state FROM attempts ORDER BY attempt_id",
    "SELECT partition, state, epoch, wave, version, files FROM partitions ORDER BY id",
)
