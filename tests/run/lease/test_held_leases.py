"""Which leases are told of, and what is told of them, from the ledger alone."""

from __future__ import annotations

import pytest
from tests.ledger.samples import attempt, run

from stagehold.ledger.leases import lease_of, region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.run.checkpoints.discarding import coordinator_lease
from stagehold.run.lease.held_leases import LeaseKind, held_leases
from stagehold.run.planning.task import SPECULATION

HOLDER = "airflow ann|worker-3|4711|99"


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        yield opened


def begin(ledger: Ledger, epoch: int = 1, *, seconds: float = 60, **of: str) -> Attempt:
    begun = attempt(epoch, **of)
    assert ledger.leases.acquire(lease_of(begun), HOLDER, seconds).epoch == epoch
    ledger.attempts.create(begun, *UNTIL_RUNNING)
    return begun


def test_a_lease_of_a_region_names_its_holder_and_the_attempt_of_its_epoch(ledger):
    begun = begin(ledger)
    (held,) = held_leases(ledger)
    assert (held.kind, held.attempt_id, held.run_id, held.subject) == (
        LeaseKind.REGION,
        begun.attempt_id,
        "run-1",
        "joined",
    )
    assert (held.holder.host, held.holder.pid, held.holder.owner) == ("worker-3", 4711, "airflow ann")
    assert held.lease.taken_at == held.lease.renewed_at
    assert 55 < held.seconds_left <= 60
    assert not held.ended


def test_the_coordinator_and_a_helper_are_told_with_the_run_that_they_work_for(ledger):
    begin(ledger)
    ledger.leases.acquire(coordinator_lease(run()), HOLDER, 60)
    ledger.leases.acquire(f"{region_lease('sales', '2024-01-01', 'joined')}/{SPECULATION}/0-3/0", HOLDER, 60)
    found = {held.kind: held for held in held_leases(ledger, "sales")}
    assert [*found] == [LeaseKind.REGION, LeaseKind.COORDINATOR, LeaseKind.HELPER]
    assert {held.run_id for held in found.values()} == {"run-1"}
    assert found[LeaseKind.COORDINATOR].attempt_id is None
    assert found[LeaseKind.COORDINATOR].subject == "coordinator of run-1"


def test_a_lease_that_ended_is_told_as_long_as_nobody_noticed_its_attempts_death(ledger):
    begun = begin(ledger, seconds=0)
    (held,) = held_leases(ledger)
    assert held.ended
    assert held.attempt_id == begun.attempt_id
    ledger.attempts.apply(begun.attempt_id, AttemptEvent.FAIL)
    assert held_leases(ledger) == ()


def test_what_was_released_and_what_is_another_pipelines_or_runs_is_left_out(ledger):
    begun = begin(ledger)
    ledger.leases.acquire("stock/2024-01-01/all", HOLDER, 60)
    assert [held.attempt_id for held in held_leases(ledger, "sales")] == [begun.attempt_id]
    assert len(held_leases(ledger)) == 2
    assert held_leases(ledger, "sales", "run-2") == ()
    ledger.leases.release(ledger.leases.get(lease_of(begun)))
    ledger.attempts.apply(begun.attempt_id, AttemptEvent.REPORTED_FINISHED)
    assert held_leases(ledger, "sales") == ()


def test_an_attempt_whose_lease_was_taken_over_is_not_told_as_its_holder(ledger):
    begin(ledger)
    ledger.leases.take(region_lease("sales", "2024-01-01", "joined"), None, "you|there|1|1", 60, lambda _: True)
    (held,) = held_leases(ledger, "sales")
    assert (held.kind, held.attempt_id, held.holder.host) == (LeaseKind.OTHER, None, "there")


def test_those_of_one_run_are_the_same_as_among_all(ledger):
    begin(ledger)
    begin(ledger, run_id="run-2", interval="2024-01-02")
    every = held_leases(ledger, "sales")
    for run_id in ("run-1", "run-2"):
        (own,) = held_leases(ledger, "sales", run_id)
        (same,) = (held for held in every if held.run_id == run_id)
        assert (own.lease, own.attempt_id, own.kind) == (same.lease, same.attempt_id, same.kind)
