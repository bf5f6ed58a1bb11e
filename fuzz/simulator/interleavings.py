"""All interleavings of a small world: two attempts of all partitions, a source that changes, and a crash at any point.

A state that has been seen is left out, whatever led to it: the same ledger, the same files and logs, and those who are
alive stand where they stood and have decided what they had. A process that stands half-way cannot be copied: the world
is played again from its beginning for each way that was left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fuzz.simulator.histories import History, bring_to_an_end
from fuzz.simulator.simulated_lake import SimulatedLake
from fuzz.simulator.simulation import Move, Shape, Simulation

from stagehold.lake.store.files import mounted

# Between these places an actor does nothing that others could notice, or they could do to it.
PLACES = re.compile(
    r"its beginning|ledger: (Leases|record_lost|Attempts.begin|publish|adopt|succeed)|creates|looks|commits|writes said"
)
MOST_BETWEEN = 100


@dataclass
class Explored:
    """How many states there were, how many of them were ends, and how many moves led to states that were known."""

    states: int = 0
    ends: int = 0
    again: int = 0
    broken: History | None = None
    whole: bool = False
    seen: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.states} states, {self.ends} of them ends; {self.again} moves led to states that were known"


def explored(shape: Shape, attempts: int = 2, going_on: Callable[[], bool] = lambda: True) -> Explored:
    """Go to every state, depth first, until something is broken, or ``going_on`` says no."""
    found = Explored()
    waiting = [tuple(Move("begin", number, ("attempt", 1, 0, True)) for number in range(1, attempts + 1))]
    while waiting and going_on() and found.broken is None:
        found.broken = _descended(shape, [*waiting.pop()], found, waiting)
    found.whole = not waiting
    return found


def _descended(shape: Shape, moves: list[Move], found: Explored, waiting: list[tuple[Move, ...]]) -> History | None:
    """Go to the state behind these moves, and on from there until a state is known or an end; other ways wait."""
    lake = SimulatedLake()
    with mounted(lake, lake.uri):
        world = Simulation(shape, lake)
        try:
            for move in moves:
                _make(world, move)
            while _is_new(world, found):
                following = [*_following(world)]
                if not following:
                    found.ends += 1
                    bring_to_an_end(world)
                    break
                waiting.extend((*moves, move) for move in following[:-1])
                moves.append(following[-1])
                _make(world, moves[-1])
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            return History(shape, moves, world.lines, error)
        finally:
            world.end()
    return None


def _is_new(world: Simulation, found: Explored) -> bool:
    digest = _digest(world)
    if digest in found.seen:
        found.again += 1
        return False
    found.seen.add(digest)
    found.states += 1
    return True


def _make(world: Simulation, move: Move) -> None:
    """Make a move; a step goes on to the next place that matters."""
    world.make(move)
    if move.what == "step":
        actor = world.actors[move.to]
        for _ in range(MOST_BETWEEN):
            if not actor.alive or PLACES.match(actor.stepper.at):
                return
            world.make(move)


def _following(world: Simulation) -> Iterator[Move]:
    alive = [number for number, actor in world.actors.items() if actor.alive]
    for number in alive:
        yield Move("kill", number)
    if alive and world.sources[0] == 0:
        yield Move("change", 0, 1)
    for number in alive:
        yield Move("step", number)


def _digest(world: Simulation) -> str:
    rows = [world.database.rows(question) for question in _ROWS]
    alive = [actor for actor in world.actors.values() if actor.alive]  # of the dead, ledger and lake have all there is
    stand = [(actor.name, actor.stepper.at, actor.steps, actor.decided) for actor in alive]
    files = sorted((path, _logged(path, content)) for path, content in world.lake.files.items() if _counts(path))
    return hashlib.sha256(repr((rows, stand, files, world.sources)).encode()).hexdigest()


def _counts(path: str) -> bool:
    return not path.endswith(".jsonl") or "said" in path


def _logged(path: str, content: bytes) -> bytes:
    """What a log says, without the moments at which it was said."""
    return re.sub(rb'"modificationTime":\d+', b"", content) if path.endswith(".json") else b""


_ROWS: Sequence[str] = (
    "SELECT name, epoch FROM leases ORDER BY name",
    "SELECT attempt_id, epoch, state FROM attempts ORDER BY attempt_id",
    "SELECT partition, state, epoch, wave, version, files FROM partitions ORDER BY id",
)
