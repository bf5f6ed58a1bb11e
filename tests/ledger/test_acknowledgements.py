from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import attempt, checkpoint

from stagehold.errors import Fenced
from stagehold.ledger import Ledger
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointRecord
from stagehold.model.records import Lease

NAME = "sales/2024-01-01/run-1/coordinator"
ONE, OTHER = attempt(1), replace(attempt(2, region="orders"), share="0-3")


@pytest.fixture
def lease(ledger: Ledger) -> Lease:
    return ledger.leases.take(NAME, None, "me", 60, lambda _: False)


@pytest.fixture
def begun(ledger: Ledger, lease: Lease) -> CheckpointRecord:
    return ledger.checkpoints.begin(checkpoint(1), lease)


def test_whoever_is_asked_answers_once(ledger, lease, begun):
    ledger.acknowledgements.ask(begun, [ONE, OTHER], lease)
    assert [
        (acknowledgement.subject, acknowledgement.answer) for acknowledgement in ledger.acknowledgements.of(begun)
    ] == [
        ("joined", None),
        ("orders[0-3]", None),
    ]
    ledger.acknowledgements.answer(begun, ONE.attempt_id, Answer.ACKNOWLEDGED)
    closing = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
    ledger.acknowledgements.answer(begun, ONE.attempt_id, Answer.DECLINED, closing)
    ledger.acknowledgements.answer(begun, OTHER.attempt_id, Answer.DECLINED, closing)
    first, second = ledger.acknowledgements.of_run("run-1")
    assert (first.answer, first.reason) == (Answer.ACKNOWLEDGED, None)
    assert (second.answer, second.reason) == (Answer.DECLINED, closing)
    assert first.answered_at is not None
    assert first.answered_at >= first.asked_at


def test_whoever_has_finished_counts_though_he_never_answered(ledger, lease, begun):
    ledger.acknowledgements.ask(begun, [ONE, OTHER], lease)
    ledger.acknowledgements.answer(begun, ONE.attempt_id, Answer.ACKNOWLEDGED)
    (before, _) = ledger.acknowledgements.of(begun)
    ledger.acknowledgements.settle(begun)
    assert [acknowledgement.answer for acknowledgement in ledger.acknowledgements.of(begun)] == [
        Answer.ACKNOWLEDGED
    ] * 2
    assert ledger.acknowledgements.of(begun)[0] == before


def test_nobody_may_be_asked(ledger, lease, begun):
    ledger.acknowledgements.ask(begun, [], lease)
    assert ledger.acknowledgements.of(begun) == ()


def test_who_was_overtaken_asks_nobody(ledger, lease, begun):
    ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    with pytest.raises(Fenced):
        ledger.acknowledgements.ask(begun, [ONE], lease)
    assert ledger.acknowledgements.of(begun) == ()


def test_an_attempt_sees_the_checkpoints_of_its_run_and_its_own_part_in_them(ledger, lease, begun):
    ledger.acknowledgements.ask(begun, [ONE], lease)
    second = ledger.checkpoints.begin(checkpoint(2), lease)
    ledger.checkpoints.begin(checkpoint(1, run_id="another"), lease)
    ledger.acknowledgements.answer(begun, ONE.attempt_id, Answer.ACKNOWLEDGED)
    own, strange = ledger.acknowledgements.notices(ONE, after=0)
    assert (own.checkpoint, own.asked, own.answer) == (begun, True, Answer.ACKNOWLEDGED)
    assert (strange.checkpoint, strange.asked, strange.answer) == (second, False, None)
    assert [notice.asked for notice in ledger.acknowledgements.notices(OTHER, after=0)] == [False, False]
    assert [notice.checkpoint.number for notice in ledger.acknowledgements.notices(ONE, after=1)] == [2]
