"""Who is lost, who noticed, and when: told from the ledger alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.samples import attempt, run

from stagehold.ledger.attempts import Failure
from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, FailureClass, Run
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.plan.restart.rules import WORKER_LOST
from stagehold.run.lease.lost_attempts import NOT_RENEWED, losses, run_loss

WHILE, NO_TIME = 60, 0.0


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        yield opened


def begin(ledger: Ledger, epoch: int, seconds: float = WHILE) -> Attempt:
    begun = attempt(epoch)
    lease = ledger.leases.acquire(lease_of(begun), "ann|host|7|1", seconds)
    assert lease.epoch == epoch
    ledger.attempts.create(begun, *UNTIL_RUNNING)
    return begun


def told(ledger: Ledger):
    return losses(ledger.attempts.of_run("run-1"), ledger)


def test_who_has_a_lease_is_at_work(ledger):
    begin(ledger, 1)
    assert told(ledger) == {}


def test_who_has_ended_is_not_lost(ledger):
    begun = begin(ledger, 1, NO_TIME)
    ledger.attempts.apply(begun.attempt_id, AttemptEvent.REPORTED_FINISHED)
    assert told(ledger) == {}


def test_whose_lease_is_over_is_lost_though_nobody_has_said_so(ledger):
    begun = begin(ledger, 1, NO_TIME)
    lease = ledger.leases.get(lease_of(begun))
    (loss,) = told(ledger).values()
    assert (loss.noticed, loss.at) == (NOT_RENEWED, lease.expires_at)


def test_whose_lease_somebody_else_has_is_lost_before_that_one_has_said_so(ledger):
    first = begin(ledger, 1, NO_TIME)
    second = begin(ledger, 2)
    found = told(ledger)
    assert found.keys() == {first.attempt_id}
    assert found[first.attempt_id].noticed == "ann (process 7 on host)"
    assert found[first.attempt_id].at == second.started_at


def test_a_loss_on_record_names_who_recorded_it(ledger):
    first = begin(ledger, 1, NO_TIME)
    begin(ledger, 2)
    ledger.attempts.apply(
        first.attempt_id, AttemptEvent.FAIL, failure=Failure("gone", FailureClass.ENVIRONMENT, WORKER_LOST)
    )
    loss = told(ledger)[first.attempt_id]
    assert loss.noticed == "joined, epoch 2"
    ended = next(attempt.ended_at for attempt in ledger.attempts.of_run("run-1") if attempt.epoch == 1)
    assert abs(loss.at - ended) < timedelta(seconds=1)


def test_who_waits_for_a_lease_is_not_lost(ledger):
    waiting = attempt(0)
    ledger.attempts.create(waiting)
    assert told(ledger) == {}


def started(ledger: Ledger, launcher: str) -> Run:
    return ledger.runs.start(replace(run("run-1"), launcher=launcher))


def test_a_run_that_nobody_ended_and_nobody_works_on_is_lost(ledger):
    begun = begin(ledger, 1, NO_TIME)
    loss = run_loss(started(ledger, "cli"), ledger)
    assert loss is not None
    assert (loss.noticed, loss.at) == (NOT_RENEWED, ledger.leases.get(lease_of(begun)).expires_at)


def test_a_run_is_not_lost_while_somebody_works_for_it_or_airflow_may_try_again(ledger):
    begin(ledger, 1, NO_TIME)
    begin(ledger, 2)
    assert run_loss(started(ledger, "cli"), ledger) is None
    assert run_loss(started(ledger, "airflow"), ledger) is None


def test_a_run_that_is_between_two_attempts_is_not_lost(ledger):
    begun = begin(ledger, 1, NO_TIME)
    ledger.attempts.apply(begun.attempt_id, AttemptEvent.REPORTED_FINISHED)
    assert run_loss(started(ledger, "cli"), ledger) is None
