"""An attempt whose lease is lost stops what it computes, and says why."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PIPELINE, Pace, PacedEngine, PaperRun

from stagehold.errors import Fenced
from stagehold.ledger.leases import region_lease
from stagehold.model.records import Attempt
from stagehold.run.here.region import work_on

pytestmark = pytest.mark.slow

LONG = 20.0


class ClosingEngine(PacedEngine):
    """Closes its session when it is told to release an attempt."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.closed = threading.Event()
        self.released: list[str] = []

    def release(self, attempt: Attempt) -> None:
        self.released.append(attempt.attempt_id)
        self.closed.set()


def test_what_is_computed_when_the_lease_is_taken_over_is_stopped_at_once(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.settings = replace(run.settings, lease_seconds=1)

    def pace(stage: str, wave: int) -> None:
        if wave == 2:
            run.seen.leases.take(region_lease(PIPELINE, INTERVAL, LEFT), None, "you|there|1|1", 60, lambda _: True)
            assert engine.closed.wait(LONG), "nobody stopped it"
            raise ConnectionError("the session was closed")

    engine = ClosingEngine(pace)
    with run.ledger() as ledger, pytest.raises(Fenced) as fenced:
        work_on(run.task(LEFT, "cli"), replace(run.workplace(ledger), engine=engine))
    assert isinstance(fenced.value.__cause__, ConnectionError)
    (attempt,) = run.attempts
    assert engine.released == [attempt.attempt_id]
    assert any(f"the lease of {PIPELINE}/{INTERVAL}/{LEFT} (epoch 1) is revoked" in line for line in run.said)
    assert attempt.failure_rule == "fenced"


def test_an_error_of_an_attempt_that_has_its_lease_stays_as_it_is(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))

    def pace(stage: str, wave: int) -> None:
        raise ConnectionError("the session was closed")

    engine = ClosingEngine(pace)
    with run.ledger() as ledger, pytest.raises(ConnectionError):
        work_on(run.task(LEFT, "cli"), replace(run.workplace(ledger), engine=engine))
    assert engine.released == []
