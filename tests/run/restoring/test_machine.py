"""Savepoints, and runs that begin with them, among everything else that happens to intervals."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.made_records import savepoint_request
from tests.made_up import machine
from tests.run.clearing.nights import PIPELINE, STAGES
from tests.run.clearing.test_machine import Clearing, days, places, stages

from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import manifest_file
from stagehold.model.choices import ClaimMode
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.planning.snapshots import _checkpoint

chosen = st.integers(0, 99)
claim_modes = st.sampled_from(ClaimMode)


class Restoring(Clearing):
    """What a savepoint points to can always be read, and whatever a run begins with, it comes out right."""

    def __init__(self) -> None:
        super().__init__()
        self.number = count()

    @property
    def savepoints(self) -> Savepoints:
        return Savepoints(self.nights.settings.lake_uri)

    @rule(day=days)
    def save(self, day):
        self.let_go(kill=False)
        newest = self.nights.ledger.runs.newest(PIPELINE, day)
        if newest:
            asked = savepoint_request(f"s{next(self.number)}", newest.run_id)
            create_savepoint(asked, self.nights.pipeline, self.nights.workplace)

    @precondition(lambda self: self.savepoints.all())
    @rule(day=days, which=chosen, claim_mode=claim_modes)
    def night_from_a_savepoint(self, day, which, claim_mode):
        self.let_go(kill=False)
        self.nights.run(day, f"from-{next(self.number)}", snapshot=self.manifest(which), claim_mode=claim_mode)
        assert self.nights.published(day) == self.nights.expected

    @precondition(lambda self: self.savepoints.all())
    @rule(day=days, which=chosen, stage=stages, place=places, claim_mode=claim_modes)
    def night_from_a_savepoint_that_dies(self, day, which, stage, place, claim_mode):
        self.let_go(kill=True)
        run, asked = f"from-{next(self.number)}", {"snapshot": self.manifest(which), "claim_mode": claim_mode}
        for earlier in STAGES[: STAGES.index(stage)]:
            self.nights.begin(day, earlier, run, **asked).go_to("its end", most=2000)
        attempt = self.nights.begin(day, stage, run, **asked)
        attempt.go_to(place, most=2000)
        attempt.kill()
        self.nights.end_leases()
        _checkpoint.cache_clear()
        self.nights.run(day, run, **asked)
        assert self.nights.published(day) == self.nights.expected

    @precondition(lambda self: self.savepoints.all())
    @rule(which=chosen)
    def dispose(self, which):
        self.let_go(kill=False)
        every = self.savepoints.all()
        dispose_of(every[which % len(every)], self.nights.workplace)

    def manifest(self, which: int) -> str:
        every = self.savepoints.all()
        found = every[which % len(every)]
        return f"{self.savepoints.stored(found).uri}/{manifest_file(found.number)}"


TestRestoring = pytest.mark.slow(Restoring.TestCase)
TestRestoring.settings = machine(examples=3, steps=15)
