"""Random sequences of judge, waive, end of waiver, other data, another suite, death and resume: after each run both
tables show what may be shown then.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from tests.made_up import TIMES
from tests.run.attempt.allowed import Allowed
from tests.run.attempt.test_word_ends import ended, published
from tests.run.protocol.world import PARTITIONS, STAGES, World

MEMORY = Path("/dev/shm")  # flushing to a disk is most of the time otherwise, and tells nothing here
STEPS = 12
LIMITS = (9, 30, 500, 5000)
AMOUNTS = ((7, 8), (20, 21), (3,), (600,), (45, 2), ())
pytestmark = pytest.mark.slow


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
