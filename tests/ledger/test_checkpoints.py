from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import checkpoint

from stagehold.errors import Fenced
from stagehold.ledger import Ledger
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointState
from stagehold.model.records import Lease

NAME = "sales/2024-01-01/run-1/coordinator"


@pytest.fixture
def lease(ledger: Ledger) -> Lease:
    return ledger.leases.take(NAME, None, "me", 60, lambda _: False)


def test_what_became_of_a_checkpoint_is_in_its_fields(ledger, lease):
    first, second = (ledger.checkpoints.begin(checkpoint(number), lease) for number in (1, 2))
    done = ledger.checkpoints.complete(first, lease, written=10, referenced=5, covers=77)
    late = CheckpointFailure.CHECKPOINT_EXPIRED
    failed = ledger.checkpoints.fail(second, lease, late, "took longer than 1s", fails_run=True)
    assert ledger.checkpoints.of_run("run-1") == (done, failed)
    assert (done.state, done.bytes_written, done.reason, done.kept) == (CheckpointState.COMPLETED, 10, None, True)
    assert (failed.reason, failed.failure, failed.fails_run) == (late, "took longer than 1s", True)
    ledger.checkpoints.discard(done, lease)
    assert [checkpoint.kept for checkpoint in ledger.checkpoints.of_run("run-1")] == [False, False]


def test_who_has_a_part_in_one_is_told_once_it_has_ended_and_that_is_kept(ledger, lease, tmp_path):
    begun = [ledger.checkpoints.begin(checkpoint(number), lease) for number in (1, 2, 3)]
    assert not any(record.untold for record in begun)
    ledger.checkpoints.complete(begun[0], lease, written=1, referenced=0, covers=1, untold=True)
    ledger.checkpoints.fail(begun[1], lease, CheckpointFailure.IO_EXCEPTION, "", untold=True)
    ledger.checkpoints.complete(begun[2], lease, written=1, referenced=0, covers=1)
    untold = [record for record in ledger.checkpoints.of_run("run-1") if record.untold]
    assert [record.number for record in untold] == [1, 2]
    ledger.checkpoints.acknowledge(untold[0], lease)
    known = from_lines(to_lines(ledger.facts.all()))
    with Ledger.open(f"sqlite:///{tmp_path / 'rebuilt.db'}") as rebuilt:
        rebuilt.facts.mend(lambda _: known)
        assert [record.untold for record in rebuilt.checkpoints.of_run("run-1")] == [False, True, False]


def test_who_was_overtaken_writes_nothing(ledger, lease):
    begun = ledger.checkpoints.begin(checkpoint(1), lease)
    ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    for write in (
        lambda: ledger.checkpoints.begin(checkpoint(2), lease),
        lambda: ledger.checkpoints.complete(begun, lease, written=1, referenced=0, covers=1),
        lambda: ledger.checkpoints.fail(begun, lease, CheckpointFailure.IO_EXCEPTION, ""),
        lambda: ledger.checkpoints.discard(begun, lease),
        lambda: ledger.checkpoints.acknowledge(begun, lease),
    ):
        with pytest.raises(Fenced):
            write()
    assert ledger.checkpoints.of_run("run-1") == (begun,)


def test_which_rows_one_covers_is_not_said_of_it_anywhere_else(ledger, lease, tmp_path):
    done = ledger.checkpoints.complete(
        ledger.checkpoints.begin(checkpoint(1), lease), lease, written=1, referenced=0, covers=77
    )
    assert ledger.checkpoints.covered(done) == 77
    with Ledger.open(f"sqlite:///{tmp_path / 'rebuilt.db'}") as rebuilt:
        rebuilt.facts.mend(lambda _: ledger.facts.all())
        assert rebuilt.checkpoints.of_run("run-1") == (done,)
        assert rebuilt.checkpoints.covered(replace(done)) is None
