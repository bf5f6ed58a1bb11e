from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ledger.samples import attempt, checkpoint, run

from stagehold.checkpoints.coordinator_events import Acknowledged, Declined, RegionFailover, RunChanged, TaskChanged
from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import Answer, CheckpointFailure
from stagehold.model.records import Attempt, AttemptState, RunState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent, RunEvent
from stagehold.run.checkpoints.run_events import RunWatch


@pytest.fixture
def ledger(tmp_path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        opened.runs.start(run())
        yield opened


@pytest.fixture
def watch(ledger: Ledger) -> RunWatch:
    return RunWatch(run(), ["joined", "orders"], ledger)


def begin(ledger: Ledger, epoch: int, region: str = "joined") -> Attempt:
    begun = attempt(epoch, region=region)
    ledger.leases.take(lease_of(begun), None, "me", 60, lambda _: True)
    ledger.attempts.create(begun, *UNTIL_RUNNING)
    return begun


def seen(watch: RunWatch, *pending):
    return list(watch.look(pending, 7))


def test_each_change_is_told_once(ledger, watch):
    assert seen(watch) == [RunChanged(7, RunState.RUNNING)]
    attempt = begin(ledger, 1)
    assert seen(watch) == [TaskChanged(7, "joined", AttemptState.RUNNING)]
    assert seen(watch) == []
    ledger.attempts.apply(attempt.attempt_id, AttemptEvent.REPORTED_FINISHED)
    assert seen(watch) == [TaskChanged(7, "joined", AttemptState.FINISHED)]
    ledger.runs.apply("run-1", RunEvent.RESTART)
    assert seen(watch) == [RunChanged(7, RunState.RESTARTING)]


def test_regions_that_are_no_part_and_tries_that_wait_are_not_told_of(ledger, watch):
    begin(ledger, 1, region="elsewhere")
    ledger.attempts.create(attempt(0))
    assert seen(watch) == [RunChanged(7, RunState.RUNNING)]


def test_an_attempt_that_fails_or_is_replaced_is_a_failover(ledger, watch):
    attempt = begin(ledger, 1)
    seen(watch)
    ledger.attempts.apply(attempt.attempt_id, AttemptEvent.FAIL)
    assert seen(watch) == [RegionFailover(7), TaskChanged(7, "joined", AttemptState.FAILED)]
    begin(ledger, 2)
    assert seen(watch) == [RegionFailover(7), TaskChanged(7, "joined", AttemptState.RUNNING)]


def test_an_attempt_whose_lease_has_ended_is_dead_and_nobody_waits_for_it(ledger, watch):
    one = begin(ledger, 1)
    seen(watch)
    held = ledger.leases.get(lease_of(one))
    ledger.leases.release(held)
    assert seen(watch) == [RegionFailover(7), TaskChanged(7, "joined", AttemptState.FAILED)]
    assert watch.under_way == frozenset()
    ledger.leases.renew(held, 60)  # it was only late
    assert seen(watch) == [TaskChanged(7, "joined", AttemptState.RUNNING)]


def test_answers_come_before_what_became_of_who_gave_them(ledger, watch):
    attempt, other = begin(ledger, 1), begin(ledger, 2, region="orders")
    seen(watch)
    lease = ledger.leases.take("coordinator", None, "me", 60, lambda _: False)
    asked = ledger.checkpoints.begin(checkpoint(1), lease)
    assert watch.running({"joined", "orders"}) == [
        each for each in ledger.attempts.of_run("run-1") if each.attempt_id in (attempt.attempt_id, other.attempt_id)
    ]
    ledger.acknowledgements.ask(asked, [attempt, other], lease)
    assert seen(watch, asked) == []
    closing = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
    ledger.acknowledgements.answer(asked, attempt.attempt_id, Answer.ACKNOWLEDGED)
    ledger.acknowledgements.answer(asked, other.attempt_id, Answer.DECLINED, closing)
    ledger.attempts.apply(other.attempt_id, AttemptEvent.FAIL)
    assert seen(watch, asked) == [
        Acknowledged(7, 1, "joined"),
        Declined(7, 1, "orders", closing),
        RegionFailover(7),
        TaskChanged(7, "orders", AttemptState.FAILED),
    ]


def test_an_ended_run_is_only_suspended_for_who_takes_its_checkpoints(ledger, watch):
    seen(watch)
    ledger.runs.apply("run-1", RunEvent.ALL_FINISHED)
    assert seen(watch) == [RunChanged(7, RunState.SUSPENDED)]
    assert watch.state is RunState.SUSPENDED
