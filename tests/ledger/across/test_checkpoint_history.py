from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert
from tests.ledger.samples import START, attempt, checkpoint, record, run

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import row_of
from stagehold.ledger.database.schema import checkpoints
from stagehold.model.checkpoint_records import Answer, CheckpointState
from stagehold.model.records import Restore
from stagehold.model.standing import Amount, PartitionState

DONE, FAILED, OPEN = CheckpointState.COMPLETED, CheckpointState.FAILED, CheckpointState.IN_PROGRESS
# run, number, state, name of the savepoint; each triggered a minute after the one before
TAKEN = (
    ("a", 1, DONE, None),
    ("b", 1, FAILED, None),
    ("a", 2, DONE, "kept"),
    ("b", 2, DONE, None),
    ("b", 3, OPEN, None),
)


@pytest.fixture
def taken(ledger, ledger_url):
    made = [
        replace(
            checkpoint(number, run_id=run_id),
            state=state,
            savepoint=name,
            triggered_at=START + timedelta(minutes=place),
        )
        for place, (run_id, number, state, name) in enumerate(TAKEN)
    ]
    with Database(ledger_url).writing() as connection:
        foreign = replace(made[0], run_id="c", pipeline="costs")
        connection.execute(insert(checkpoints), [row_of(one) for one in (*made, foreign)])
    return made


def test_checkpoints_that_were_triggered_last_come_first_a_page_at_a_time(ledger, taken):
    newest = taken[::-1]
    assert ledger.checkpoint_history.page("sales", 2, 0) == tuple(newest[:2])
    assert ledger.checkpoint_history.page("sales", 10, 2) == tuple(newest[2:])
    assert ledger.checkpoint_history.page("never", 10, 0) == ()


def test_they_are_counted_by_what_became_of_them(ledger, taken):
    assert ledger.checkpoint_history.counts("sales") == {DONE: 3, FAILED: 1, OPEN: 1}


def test_the_latest_of_each_kind(ledger, taken):
    history = ledger.checkpoint_history
    assert history.latest("sales", DONE, savepoint=False) == taken[3]
    assert history.latest("sales", DONE, savepoint=True) == taken[2]
    assert history.latest("sales", FAILED) == taken[1]
    assert history.latest("costs", FAILED) is None


def test_restores_are_counted_when_it_is_known_with_what_the_run_begins(ledger):
    for number, snapshot in enumerate((None, "manifest/1", "manifest/2")):
        ledger.runs.start(run(f"run-{number}", interval=str(number)))
        asked_at = START + timedelta(minutes=number)
        ledger.restores.ask(Restore(f"run-{number}", "one", None, asked_at, snapshot=snapshot))
    count, newest = ledger.checkpoint_history.restored("sales")
    assert (count, newest and newest.snapshot) == (2, "manifest/2")
    assert ledger.checkpoint_history.restored("costs") == (0, None)


def test_how_many_attempts_did_their_part(ledger):
    lease = ledger.leases.take("coordinator", None, "me", 60, lambda _: False)
    first, second = (ledger.checkpoints.begin(checkpoint(number), lease) for number in (1, 2))
    asked = [attempt(1), attempt(2, region="priced"), attempt(3, region="summed")]
    ledger.acknowledgements.ask(first, asked, lease)
    ledger.acknowledgements.ask(second, [], lease)
    ledger.acknowledgements.answer(first, asked[0].attempt_id, Answer.ACKNOWLEDGED)
    ledger.acknowledgements.answer(first, asked[1].attempt_id, Answer.DECLINED)
    found = ledger.checkpoint_history.parts([("run-1", 1), ("run-1", 2)])
    assert {key: (one.acknowledged, one.asked, one.alignment) for key, one in found.items()} == {
        ("run-1", 1): (1, 3, None)
    }
    assert ledger.checkpoint_history.parts([]) == {}


def test_a_checkpoint_waits_until_the_last_attempt_is_behind_its_wave(ledger):
    lease = ledger.leases.take("coordinator", None, "me", 60, lambda _: False)
    begun, asked = ledger.checkpoints.begin(checkpoint(1), lease), [attempt(1), attempt(2, region="priced")]
    ledger.acknowledgements.ask(begun, asked, lease)
    for asked_attempt in asked:
        ledger.acknowledgements.answer(begun, asked_attempt.attempt_id, Answer.ACKNOWLEDGED)
    parts = ledger.acknowledgements.of(begun)
    (found,) = ledger.checkpoint_history.parts([("run-1", 1)]).values()
    last = max(part.answered_at for part in parts if part.answered_at)
    assert found.alignment == (last - min(part.asked_at for part in parts)).total_seconds() >= 0


def test_what_was_completed_is_told_newest_first_with_what_was_replaced(ledger, taken):
    assert ledger.checkpoint_history.completed("sales", 2) == (taken[3], taken[2])


def test_a_checkpoint_has_what_could_be_read_up_to_its_row(ledger):
    lease = ledger.leases.take("coordinator", None, "me", 60, lambda _: False)
    held = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    ledger.partitions.record([record(number) for number in range(3)], held)
    ledger.partitions.record([record(2, state=PartitionState.BLOCKED, epoch=2)], held)
    _, covers, _ = ledger.pipelines.changed(0, 0)
    begun = ledger.checkpoints.begin(checkpoint(1), lease)
    assert ledger.checkpoint_history.covered(begun) == {}
    ledger.partitions.record([record(2), record(3)], held)
    done = ledger.checkpoints.complete(begun, lease, written=1, referenced=0, covers=covers)
    rows, size = (sum(getattr(record(number), name) for number in (0, 1)) for name in ("rows", "bytes"))
    assert ledger.checkpoint_history.covered(done) == {"joined": Amount(2, rows, size)}
