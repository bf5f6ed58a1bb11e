"""A world: one pipeline of one stage, its ledger, its lake, and whoever works on them, one step after another.

Nothing happens in it but by `Simulation.make`: a move lets an actor go on by one step, or has something happen to the
world. So a list of moves is a history, and the same moves make the same history.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.simulator.actors import INTERVAL, OTHERS, Actor, attempt, beside
from fuzz.simulator.effects import Effects, Fault
from fuzz.simulator.invariants import Invariants
from fuzz.simulator.paper_work import is_refused
from fuzz.simulator.simulated_lake import NOWHERE, SimulatedLake
from fuzz.simulator.simulated_ledger import SimulatedDatabase
from tests.run.protocol.stepper import pause

from stagehold.gates.suite import Suite
from stagehold.gates.suite_files import load_suite
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, PartitionRecord
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import AnyPoint, Faults
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

LEASE_SECONDS = 60
MOST_STEPS = 2000  # of an actor that nobody disturbs


@dataclass(frozen=True)
class Shape:
    """How large a world is. ``published`` says that its table is one that all intervals share."""

    partitions: int = 4
    published: bool = False


class Move(NamedTuple):
    """What happens next. ``what`` is a method of `Simulation`, ``to`` what it is done to."""

    what: str
    to: Any = None
    how: Any = None


class Simulation:
    def __init__(self, shape: Shape, lake: SimulatedLake | None = None) -> None:
        self.shape, self.effects = shape, Effects()
        self.lake = lake or SimulatedLake()
        self.lake.effects = self.effects
        settings, self.pipelines, self.suite = _project(shape)
        self.settings = replace(settings, lake=self.lake.uri)
        self.database = SimulatedDatabase(self.effects, self.lake.uri)
        self.place = Workplace(
            ledger=Ledger(self.database),
            settings=self.settings,
            progress=lambda line: None,
            engine=_NoEngine(),
            faults=_Points(),
            sleep=lambda seconds: pause("waits"),
            beside=partial(beside, self),
        )
        self.let, self.lost = set[str](), set[str]()  # paths that a gate has let, and that somebody has deleted
        self.sources = dict.fromkeys(range(shape.partitions), 0)
        self.actors: dict[int, Actor] = {}
        self.happened, self.lines = 0, list[str]()
        self.copy: sqlite3.Connection | None = None
        (stage,) = self.pipeline.stages
        self.uri = table_location(self.lake.uri, self.pipeline.name, stage, INTERVAL).uri
        self.invariants = Invariants(self)

    @property
    def pipeline(self) -> Pipeline:
        return self.pipelines[1]

    def make(self, move: Move) -> str | None:
        """Make a move and check what has to hold; says in a line what happened, None if nothing did.

        :raises Violation: an invariant does not hold.
        """
        line: str | None = getattr(self, move.what)(move.to, move.how)
        if line is not None:
            self.lines.append(line)
            self.happened += move.what != "step"
        self.invariants.check()
        return line

    def newest(self) -> tuple[PartitionRecord, ...]:
        (stage,) = self.pipeline.stages
        return self.place.ledger.partitions.newest(Cell(self.pipeline.name, stage.id, INTERVAL))

    def end(self) -> None:
        for actor in self.actors.values():
            actor.kill()

    # Moves

    def begin(self, number: int, who: tuple[Any, ...]) -> str:
        kind, *facts = who
        work: Callable[[], None] = (
            partial(self._attempt, number, *facts) if kind == "attempt" else partial(OTHERS[kind], self)
        )
        self.actors[number] = Actor(f"{kind} {number}", work)
        return f"{kind} {number} begins{f': {facts}' if facts else ''}"

    def step(self, number: int, fault: Fault | None) -> str | None:
        actor = self.actors.get(number)
        if actor is None or not actor.alive:
            return None
        actor = self.at_work = actor.who_goes_on
        place, self.effects.next_fault, actor.steps = actor.stepper.at, fault, actor.steps + 1
        actor.stepper.step()
        met, self.effects.next_fault = fault is not None and self.effects.next_fault is None, None
        if actor.surprise is not None:
            raise actor.surprise
        end = f", which is its end: {actor.ended_as}" if not actor.alive else ""
        return f"{actor.name}: {place}{f', and {fault}' if met else ''}{end}"

    def kill(self, number: int, _: object) -> str | None:
        actor = self.actors.get(number)
        if actor is None or not actor.alive:
            return None
        actor.kill()
        return f"{actor.name} is killed: {actor.stepper.at}"

    def interrupt(self, number: int, _: object) -> str | None:
        """Somebody wants the process to end, which its main thread hears of."""
        actor = self.actors.get(number)
        if actor is None or not actor.alive or number < 0:
            return None
        place, self.at_work = actor.stepper.at, actor
        actor.interrupt()
        if actor.surprise is not None:
            raise actor.surprise
        return f"{actor.name} is interrupted: {place}"

    def jump(self, seconds: int, _: object) -> str:
        self.database.clock += timedelta(seconds=seconds)
        return f"the ledger's clock jumps by {seconds} s"

    def change(self, partition: int, version: int) -> str:
        self.sources[partition] = version
        return f"the source of partition {partition} has version {version}{', refused' * is_refused(version)}"

    def lose(self, number: int, _: object) -> str | None:
        """Somebody deletes a file."""
        written = sorted(path for path in self.lake.files if path.endswith(".parquet"))
        if not written:
            return None
        path = written[number % len(written)]
        del self.lake.files[path]
        self.lost.add(path.removeprefix(f"{self.uri}/"))
        return f"{self.lake.named(path)} is lost"

    def arrive(self, number: int, _: object) -> str | None:
        """A late request comes to where it was sent."""
        if not self.effects.late:
            return None
        landed = self.effects.late.pop(number % len(self.effects.late))()
        return f"a late request arrives, and {'is met' if landed else 'is refused'}"

    def copy_ledger(self, _: object, __: object) -> str:
        self.copy = self.database.copied()
        return "the ledger is copied"

    def lose_ledger(self, dies: bool, _: object) -> str:
        """It is lost, or its copy is put back; who works on it dies with it, or goes on."""
        for actor in self.actors.values() if dies else ():
            actor.kill()
        self.database.forget(self.copy)
        self.invariants.forget_ledger()
        how = "lost" if self.copy is None else "put back to its copy"
        return f"the ledger is {how}, {'and all die with it' if dies else 'under who is at work'}"

    def hear(self, decided: object) -> None:
        """What the attempt that is at work has made up its mind to do."""
        self.at_work.decided = str(decided)

    def write(self, path: str, content: bytes) -> None:
        """A file of an attempt is written: one step."""
        self.effects.carry_out("writes a file", lambda: self.lake.put(path, content))

    def _attempt(self, number: int, cut: int, part: int, sleeps: bool) -> None:
        pipeline = self.pipelines[cut]
        shares = region_shares(pipeline, *stage_regions(pipeline))
        attempt(self, pipeline, shares[part % len(shares)], number, sleeps=sleeps)


class _Points(Faults):
    """No faults: what can go wrong here goes wrong in ledger and lake."""

    def __init__(self) -> None:
        super().__init__(Path("/dev/null"), INTERVAL)

    def reach(self, point: AnyPoint, stage: str, wave: int = 0) -> None:
        pass

    @contextmanager
    def reach_within(self, *_: object) -> Iterator[None]:
        yield


class _NoEngine:
    """Sessions are opened on paper, and nobody's is released: a zombie can do as much harm as it ever could."""

    def release(self, attempt: object) -> None:
        pass


SUITE = "suite: sound\nexpectations:\n  - {type: expect_column_to_exist, column: amount}\n"
JOBS = "from stagehold import stage\n\n@stage\ndef drafts(ctx, source): ...\n"


@cache
def _project(shape: Shape) -> tuple[Settings, Mapping[int, Pipeline], Suite]:
    """Settings, the pipeline by the number of shares that it is cut into, and the suite of its gate."""
    folder = Path(tempfile.mkdtemp(prefix="simulator-"))
    (folder / "paper_jobs.py").write_text(JOBS)
    (folder / "sound.yaml").write_text(SUITE)
    where = {"project": str(folder), "pipelines": str(folder), "suites": str(folder)}
    settings = Settings(
        home="/dev/null/home", lake=NOWHERE, lease_seconds=LEASE_SECONDS, sweep_after_seconds=0, **where
    )
    stage = {
        "job": "paper_jobs:drafts",
        "gate": "sound",
        "source": {
            "kind": "parquet",
            "splits": [f"${{lake}}/raw/{number}.parquet" for number in range(shape.partitions)],
        },
        **({"output": {"type": "blocking_persistent", "table": "marts.prints"}} if shape.published else {}),
    }
    pipelines = {}
    for cut in range(1, min(shape.partitions, 2) + 1):
        stages = {"drafts": {**stage, "max_parallel_tasks": cut}}
        declared = {"pipeline": "paper", "wave": "1ms", "verify": "never", "stages": stages}
        pipelines[cut] = build_pipeline(declared, project=folder, suites=folder)
    return settings, pipelines, load_suite(folder / "sound.yaml", folder)
