"""Random sequences of judge, waive, end of waiver, other data, another suite, death and resume: after each run both
tables show what may be shown then.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest
from tests.made_up import TIMES
from tests.run.attempt.test_word_ends import ended, published
from tests.run.protocol.paper_spark import Amounts
from tests.run.protocol.world import PARTITIONS, STAGES, World

MEMORY = Path("/dev/shm")  # flushing to a disk is most of the time otherwise, and tells nothing here
STEPS = 12
LIMITS = (9, 30, 500, 5000)
AMOUNTS = ((7, 8), (20, 21), (3,), (600,), (45, 2), ())
DRAFTS, PRINTS = STAGES
pytestmark = pytest.mark.slow


@dataclass
class Made:
    """What is on record of a partition: its rows, whether its gate refused them last, and from what it was made."""

    amounts: Amounts
    refused: bool
    source: Amounts


@dataclass
class Allowed:
    """Prints are doubled drafts, and both have one gate, which lets what is not above its limit."""

    most: int
    sources: dict[int, Amounts]
    made: dict[str, dict[int, Made]] = field(default_factory=lambda: {DRAFTS: {}, PRINTS: {}})
    shown: dict[str, dict[int, Amounts]] = field(default_factory=lambda: {DRAFTS: {}, PRINTS: {}})
    words: dict[tuple[str, int, Amounts], bool] = field(default_factory=dict)

    def waive(self, stages: Collection[str], *, ends: bool) -> None:
        for stage in stages:
            for partition, made in self.made[stage].items():
                if made.refused:
                    self.words[stage, partition, made.amounts] = not ends

    def run(self) -> bool:
        """Whether it gets to its end."""
        return self._stage(DRAFTS) and self._stage(PRINTS)

    def rows(self, stage: str) -> list[tuple[int, int]]:
        every = [(partition, amount) for partition, some in self.shown[stage].items() for amount in some]
        values = ", ".join(map(str, every)) or "(NULL, NULL)"
        found = duckdb.sql(f"SELECT p, a FROM (VALUES {values}) AS shown(p, a) WHERE p IS NOT NULL ORDER BY p, a")
        return found.fetchall()

    def _stage(self, stage: str) -> bool:
        factor = 1 if stage == DRAFTS else 2
        wanted = {n: tuple(factor * source for source in self.sources[n]) for n in range(PARTITIONS)}
        made = self.made[stage]
        replaced = {n for n, record in made.items() if record.refused and record.source != self.sources[n]}
        self._take_out(stage, replaced)
        for partition, amounts in wanted.items():
            refused = any(not 0 <= one <= self.most for one in amounts)
            made[partition] = Made(amounts, refused, self.sources[partition])
            if not refused or self.words.get((stage, partition, amounts)):
                self.shown[stage][partition] = amounts
        blocked = {n for n, record in made.items() if record.refused and not self.words.get((stage, n, record.amounts))}
        if blocked:
            self._take_out(stage, set())
        return not blocked

    def _take_out(self, stage: str, replaced: Collection[int]) -> None:
        """What somebody waived that does not count now, and prints made from such drafts."""
        drafts = {n for n in self.made[DRAFTS] if self._ended(DRAFTS, n) or (stage == DRAFTS and n in replaced)}
        prints = {n for n in self.made[PRINTS] if self._ended(PRINTS, n) or (stage == PRINTS and n in replaced)}
        prints |= {
            n for n in drafts & self.made[PRINTS].keys() if self.made[PRINTS][n].source == self.made[DRAFTS][n].source
        }
        for name, some in ((DRAFTS, drafts), (PRINTS, prints)):
            for partition in some:
                if self.shown[name].get(partition) == self.made[name][partition].amounts:
                    del self.shown[name][partition]

    def _ended(self, stage: str, partition: int) -> bool:
        record = self.made[stage][partition]
        return record.refused and self.words.get((stage, partition, record.amounts)) is False


class Sequence:
    """One, on a world of its own; what was done is told if it goes wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world, self.random = World(folder), random.Random(seed)
        self.world.write_suite(30)
        self.allowed = Allowed(30, dict(self.world.sources))
        self.done: list[str] = []

    def go(self) -> None:
        self.run()
        for _ in range(STEPS):
            step = self.random.choice(("waive", "waive", "end", "end", "correct", "correct", "suite", "die", "nothing"))
            getattr(self, step)()
            self.run()
        for attempt in self.world.attempts:
            attempt.kill()
        self.world.ledger.close()

    def run(self) -> None:
        """As a command does: a stage that fails ends it."""
        for stage in STAGES:
            if ended(self.world, stage) is not None:
                break
        expected = self.allowed.run()
        self.done.append("run" if expected else "run, blocked")
        for stage in STAGES:
            shown = published(self.world, stage) if Path(self.world.table(stage)).exists() else []
            expected_rows = self.allowed.rows(stage)
            assert shown == expected_rows, f"{stage} shows {shown}, not {expected_rows}, after: {'; '.join(self.done)}"

    def waive(self) -> None:
        self._say(ends=False)

    def end(self) -> None:
        self._say(ends=True)

    def correct(self) -> None:
        for partition in self.random.sample(range(PARTITIONS), self.random.randint(1, 2)):
            amounts = self.random.choice(AMOUNTS)
            self.world.write_source(partition, amounts)
            self.allowed.sources[partition] = amounts
            self.done.append(f"{partition} is {amounts}")

    def suite(self) -> None:
        self.allowed.most = self.random.choice(LIMITS)
        self.world.write_suite(self.allowed.most)
        self.done.append(f"at most {self.allowed.most}")

    def die(self) -> None:
        """Somebody says something and whoever acts on it dies at some step."""
        self._say(ends=self.random.random() < 0.6)
        self.world.end_leases()
        attempt = self.world.begin(STAGES[0])
        steps = self.random.randint(1, 70)
        for _ in range(steps):
            attempt.step()
        attempt.kill()
        self.world.check()
        self.done.append(f"died after {steps} steps")

    def nothing(self) -> None:
        pass

    def _say(self, *, ends: bool) -> None:
        stages = self.random.choice((STAGES[:1], STAGES[1:], STAGES))
        self.world.waive(ends=ends, stages=stages)
        self.allowed.waive(stages, ends=ends)
        self.done.append(f"{'end' if ends else 'waive'} {stages}")


@pytest.mark.parametrize("seed", range(2 * TIMES))
def test_after_each_run_tables_show_what_may_be_shown(seed):
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        Sequence(Path(folder), seed).go()
