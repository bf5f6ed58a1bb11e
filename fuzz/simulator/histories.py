"""Histories that a seed makes up, and the shortest one that still breaks what was broken.

A history ends well: when all that was made up has happened, a new attempt runs undisturbed and has to succeed, those
that were asleep wake up and change nothing, and ledger and lake agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from fuzz.simulator.effects import Fault
from fuzz.simulator.invariants import Violation
from fuzz.simulator.paper_work import BAD, is_refused, key_of
from fuzz.simulator.simulated_lake import SimulatedLake
from fuzz.simulator.simulation import LEASE_SECONDS, MOST_STEPS, Move, Shape, Simulation

from stagehold.lake.store.files import mounted

MOVES = 40  # decisions of a history; a step may be several
MOST_AT_ONCE = 3
MOST_BEGUN = 5
FAULTS = 0.03  # of a step
KINDS = {"attempt": 20, "sweeper": 2, "deleter": 1, "reconciler": 1, "coordinator": 2}
LAST = 1000  # numbers of the actors that end a history


@dataclass
class History:
    """What happened: the moves, and a line for each that made a difference. ``broken`` is what did not hold."""

    shape: Shape
    moves: list[Move] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    broken: Exception | None = None

    @property
    def name(self) -> str:
        """What tells one breach from others."""
        return getattr(self.broken, "name", type(self.broken).__name__)


def random_history(seed: int, lakes: Callable[[], SimulatedLake] = SimulatedLake) -> History:
    random = Random(seed)
    shape = Shape(random.choice((2, 2, 4)), published=random.random() < 0.3)
    return _history(shape, lambda world: _made_up(random, world), lakes)


def replayed(shape: Shape, moves: Sequence[Move], lakes: Callable[[], SimulatedLake] = SimulatedLake) -> History:
    return _history(shape, lambda world: iter(moves), lakes)


def _history(
    shape: Shape, moves: Callable[[Simulation], Iterator[Move]], lakes: Callable[[], SimulatedLake]
) -> History:
    history, lake = History(shape), lakes()
    with mounted(lake, lake.uri):  # type: ignore[arg-type]
        world = Simulation(shape, lake)
        history.lines = world.lines
        try:
            for move in moves(world):
                history.moves.append(move)
                world.make(move)
            world.lines.append("what was made up has happened")
            bring_to_an_end(world)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            history.broken = error
        finally:
            world.end()
            lake.close()
    return history


def shrunk(history: History, lakes: Callable[[], SimulatedLake] = SimulatedLake) -> History:
    """A history that is broken as this one is, and from which no move can be left out."""
    best, size = history, max(1, len(history.moves) // 2)
    while size:
        start = 0
        while start < len(best.moves):
            fewer = replayed(best.shape, best.moves[:start] + best.moves[start + size :], lakes)
            if fewer.broken is not None and fewer.name == best.name:
                best = fewer
            else:
                start += size
        size //= 2
    return best


def _made_up(random: Random, world: Simulation) -> Iterator[Move]:
    begun, versions = 0, 0
    for _ in range(MOVES):
        alive = [number for number, actor in world.actors.items() if actor.alive]
        if begun < MOST_BEGUN and len(alive) < MOST_AT_ONCE and (not alive or random.random() < 0.2):
            begun += 1
            yield Move("begin", begun, _who(random))
        elif alive and random.random() < 0.75:
            number = random.choice(alive)
            for _ in range(random.choice((1, 2, 5, 10, 20))):
                yield Move("step", number, random.choice([*Fault]) if random.random() < FAULTS else None)
        elif alive and random.random() < 0.25:
            yield Move(random.choice(("kill", "interrupt")), random.choice(alive))
        else:
            versions += 1
            yield _event(random, world, versions)


def _who(random: Random) -> tuple[object, ...]:
    (kind,) = random.choices([*KINDS], [*KINDS.values()])
    if kind != "attempt":
        return (kind,)
    return (kind, random.choice((1, 1, 2)), random.randrange(2), random.random() < 0.7)


def _event(random: Random, world: Simulation, version: int) -> Move:
    (what,) = random.choices(("jump", "change", "lose", "copy_ledger", "lose_ledger", "arrive"), (8, 10, 2, 1, 1, 6))
    if what == "jump":
        return Move(what, random.choice((LEASE_SECONDS + 1, LEASE_SECONDS + 1, 5, -30)))
    if what == "lose_ledger":
        return Move(what, random.random() < 0.5)
    if what == "change":
        return Move(what, random.randrange(world.shape.partitions), random.choice((0, version)))
    return Move(what, random.randrange(100) if what in ("lose", "arrive") else None)


def bring_to_an_end(world: Simulation) -> None:
    """Who is asleep wakes up when a new attempt has done all there is to do; then ledger and lake agree."""
    for partition, version in world.sources.items():
        if is_refused(version):
            world.make(Move("change", partition, BAD * version))
    _succeed(world, LAST)
    asleep = [number for number, actor in world.actors.items() if actor.alive]
    for number in asleep:
        _go_to_the_end(world, number)
    late = len(world.effects.late)
    for _ in range(late):
        world.make(Move("arrive", 0))
    if asleep or late:
        _succeed(world, LAST + 1)
    newest = {record.partition: record for record in world.newest()}
    for partition, version in world.sources.items():
        record = newest.get(partition)
        if record is None or not record.state.readable or record.compute_key != str(key_of(version)):
            raise Violation("ledger_and_log_agree", f"partition {partition} is not as its source: {record}")


def _succeed(world: Simulation, number: int) -> None:
    """A new attempt of all partitions, which nobody disturbs, succeeds."""
    world.make(Move("jump", 100 * LEASE_SECONDS))
    world.make(Move("begin", number, ("attempt", 1, 0, True)))
    _go_to_the_end(world, number)
    error = world.actors[number].stepper.error
    if error is not None:
        raise Violation("ledger_and_log_agree", f"an undisturbed attempt ends with {error!r}") from error


def _go_to_the_end(world: Simulation, number: int) -> None:
    for _ in range(MOST_STEPS):
        if world.make(Move("step", number)) is None:
            return
    raise Violation("ledger_and_log_agree", f"{world.actors[number].name} comes to no end")
