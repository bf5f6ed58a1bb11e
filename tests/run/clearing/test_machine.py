"""Runs, retries, restores, readers in the middle of their work, releases and garbage collection in every order: what
counts can be read, and what is run comes out right.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.made_up import machine
from tests.run.clearing.nights import PARTITIONS, STAGES, Nights
from tests.run.protocol.stepper import Stepper

from stagehold.run.faults import ClearingPoint, Point
from stagehold.spec.settings.run_settings import ReleasePolicy

MEMORY = Path("/dev/shm")
DAYS = [f"2026-11-{day}" for day in range(20, 26)]
PLACES = (
    "session",
    "a file is written",
    "before its fence",
    "before its commit",
    "after its commit",
    "before a row",
    str(Point.BEFORE_FINISH),
    str(ClearingPoint.RELEASED),
)
days, stages, places = st.sampled_from(DAYS), st.sampled_from(STAGES), st.sampled_from(PLACES)
runs = st.sampled_from(["r", "again"])
partitions, amounts = st.integers(0, PARTITIONS - 1), st.integers(1, 4)


class Clearing(RuleBasedStateMachine):
    """Everything is deleted that may go by any clock: `older_than` is now."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.standing: Stepper | None = None

    def teardown(self) -> None:
        try:
            self.let_go(kill=True)
            self.nights.end_leases()
            for day in DAYS[:2]:
                self.night(day, "at last")
        finally:
            self.nights.ledger.close()
            self.folder.cleanup()

    @initialize(release=st.sampled_from(ReleasePolicy), retained=st.integers(1, 2), ran=st.integers(0, 5))
    def begin(self, release, retained, ran):
        self.nights = Nights(Path(self.folder.name), release, retained)
        for day in DAYS[:ran]:
            self.night(day)

    @rule(day=days, run=runs, restore=st.sampled_from([None, None, *STAGES]))
    def night(self, day, run="r", restore=None):
        """A run to its end; a restore needs something to restore from."""
        self.let_go(kill=False)
        self.nights.run(day, run, restore if self.nights.records(day, STAGES[0]) else None)
        assert self.nights.published(day) == self.nights.expected

    @rule(day=days, partition=partitions, amount=amounts, times=st.integers(1, 2), dry_run=st.booleans())
    def night_with_other_data(self, day, partition, amount, times, dry_run):
        """What was computed before is superseded, and a checkpoint may still point to it."""
        self.let_go(kill=False)
        self.nights.run(day)
        for more in range(times):
            self.nights.write_source(partition, amount + 4 * (more + 1))
            self.nights.run(day)
        self.nights.collect(dry_run=dry_run)

    @rule(day=days, run=runs, stage=stages, place=places)
    def night_that_dies(self, day, run, stage, place):
        self.let_go(kill=True)
        attempt = self.begun(day, run, stage)
        attempt.go_to(place, most=2000)
        attempt.kill()
        self.nights.end_leases()

    @precondition(lambda self: self.standing is None)
    @rule(day=days, run=runs, stage=stages, place=places)
    def night_that_stands(self, day, run, stage, place):
        """Somebody is in the middle of it while others go on."""
        attempt = self.begun(day, run, stage)
        if attempt.go_to(place, most=2000):
            self.standing = attempt

    @precondition(lambda self: self.standing is not None)
    @rule(kill=st.booleans())
    def let_go(self, kill):
        attempt, self.standing = self.standing, None
        if attempt is None:
            return
        if kill:
            attempt.kill()
            self.nights.end_leases()
            return
        attempt.go_to("its end", most=2000)
        assert (attempt.ended, attempt.error) == (True, None)

    @rule(partition=partitions, amount=amounts)
    def change_the_source(self, partition, amount):
        if self.standing is None:
            self.nights.write_source(partition, amount)

    @rule(dry_run=st.booleans(), hours=st.integers(0, 1))
    def collect(self, dry_run, hours):
        self.nights.collect(timedelta(hours=hours), dry_run=dry_run)

    @rule(steps=st.integers(1, 40))
    def collect_and_die(self, steps):
        collecting = Stepper(self.nights.collect)
        for _ in range(steps):
            collecting.step()
        collecting.kill()
        assert not isinstance(collecting.error, Exception), collecting.error
        self.nights.end_leases(of="gc/")

    def begun(self, day, run, stage):
        for earlier in STAGES[: STAGES.index(stage)]:
            attempt = self.nights.begin(day, earlier, run)
            attempt.go_to("its end", most=2000)
            assert (attempt.ended, attempt.error) == (True, None)
        return self.nights.begin(day, stage, run)

    @invariant()
    def what_counts_can_be_read(self):
        if hasattr(self, "nights"):
            self.nights.check()


TestClearing = pytest.mark.slow(Clearing.TestCase)
TestClearing.settings = machine(examples=3, steps=15)
