"""After whatever happened to some dates, the cells that a backfill shows are those that it computes."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.made_up import machine
from tests.run.backfill.paper_backfill import STAGES, PaperBackfill, running

from stagehold.errors import BackfillRefused, GateBlocked
from stagehold.model.backfill import BackfillChoice, Only

MEMORY = Path("/dev/shm")  # flushing to a disk is most of the time otherwise, and tells nothing here
DATES = ("2026-11-01", "2026-11-02", "2026-11-03")

dates, stages, partitions = st.sampled_from(DATES), st.sampled_from(STAGES), st.integers(0, 2)
places = st.sampled_from(["before its commit", "after its commit", "before its records", "its end"])
some_stages = st.sets(stages, max_size=2).map(lambda chosen: tuple(one for one in STAGES if one in chosen))


class Backfilling(RuleBasedStateMachine):
    """Its rules are what happens to dates, and backfills of all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.world = PaperBackfill(Path(self.folder.name))
        self.number = 0

    def teardown(self) -> None:
        for attempt in self.world.nights.attempts:
            attempt.kill()
        self.world.nights.ledger.close()
        self.folder.cleanup()

    @initialize(ran=st.sets(dates, max_size=2))
    def some_dates_ran(self, ran):
        for date in sorted(ran):
            self.night(date)

    @rule(date=dates)
    def night(self, date):
        with suppress(GateBlocked):
            self.world.nights.run(date, self.name())

    @rule(date=dates, stage=stages, place=places)
    def night_that_dies(self, date, stage, place):
        run = self.name()
        for earlier in STAGES[: STAGES.index(stage)]:
            self.world.nights.begin(date, earlier, run).go_to("its end", most=2000)
        attempt = self.world.nights.begin(date, stage, run)
        attempt.go_to(place, most=2000)
        attempt.kill()
        self.world.nights.end_leases()

    @rule(partition=partitions, amount=st.sampled_from([1, 5, -3]))
    def change_a_source(self, partition, amount):
        self.world.nights.write_source(partition, amount)

    @rule(date=dates, stage=stages)
    def lose_data(self, date, stage):
        self.world.forget(date, stage)

    @rule(only=st.sampled_from([None, *Only]), chosen=some_stages, stage=st.none() | stages)
    def backfill(self, only, chosen, stage):
        self.world.nights.end_leases()
        whole = stage is None or only not in (Only.MISSING, Only.STALE)
        choice = BackfillChoice(DATES[0], DATES[-1], chosen, only if whole else None, stage)
        plan = self.world.plan(choice)
        assert not [interval.problem for interval in plan.intervals if interval.problem]
        with suppress(BackfillRefused):
            outcomes = self.world.run(self.world.begin(choice, plan.token))
            assert self.world.computed(outcomes) == running(plan), outcomes

    def name(self) -> str:
        self.number += 1
        return f"r{self.number}"


TestBackfilling = pytest.mark.slow(Backfilling.TestCase)
TestBackfilling.settings = machine(examples=3, steps=8)
