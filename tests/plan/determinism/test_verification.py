from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.ledger.samples import record

from stagehold.model.records import DataFile
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import NO_MATCH, SAMPLE, as_damaged, remark, same_content, to_verify
from stagehold.plan.grounds.reasons import Unexplained, because
from stagehold.spec.settings.run_settings import VerifyPolicy

WRITTEN = DataFile("_data/now.a/1/_partition=0/part.parquet", 1, 1)
OWN = [replace(record(partition), run_id="now", attempt_id="now.a", files=(WRITTEN,)) for partition in range(4)]
TAKEN = [replace(record, attempt_id="now.b") for record in OWN]
OLD = [replace(record(partition), run_id="before") for partition in range(4)]
EMPTY = [replace(record, files=()) for record in OLD]


@pytest.mark.parametrize(
    ("policy", "records", "interrupted", "expected"),
    [
        (VerifyPolicy.NEVER, OLD, True, 0),
        (VerifyPolicy.ALWAYS, OWN, False, 4),
        (VerifyPolicy.ALWAYS, EMPTY, True, 0),
        (VerifyPolicy.SAMPLE, OLD, False, SAMPLE),
        (VerifyPolicy.SAMPLE, OLD[:1], False, 1),
        (VerifyPolicy.SAMPLE, OWN, False, 0),
        (VerifyPolicy.SAMPLE, OWN, True, SAMPLE),
        (VerifyPolicy.SAMPLE, EMPTY, True, 0),
        (VerifyPolicy.SAMPLE, TAKEN, False, SAMPLE),
    ],
)
def test_how_many_are_compared(policy, records, interrupted, expected):
    assert len(to_verify(policy, records, run_id="now", interrupted=interrupted, seed="s")) == expected


def test_attempts_draw_other_samples_and_one_draws_the_same_again():
    drawn = [to_verify(VerifyPolicy.SAMPLE, OLD, run_id="now", interrupted=True, seed=str(seed)) for seed in range(20)]
    assert {record.partition for sample in drawn for record in sample} == {0, 1, 2, 3}
    assert drawn[3] == to_verify(VerifyPolicy.SAMPLE, OLD, run_id="now", interrupted=True, seed="3")


@pytest.mark.parametrize(
    ("measured", "same"),
    [
        ("columns-3-aa-1", True),
        ("columns-3-aa-2", False),
        ("columns-3-bb-1", False),
        ("other-3-zz-9", True),
        ("other-4-aa-1", False),
    ],
)
def test_fingerprints_are_compared_as_far_as_they_can_be(measured, same):
    assert same_content("columns-3-aa-1", measured) == same


def test_what_is_damaged_is_put_on_record_with_the_reason():
    now = datetime.now(UTC)
    damaged = as_damaged(OLD[0], now)
    assert (damaged.state, damaged.reason, damaged.recorded_at) == (PartitionState.DAMAGED, NO_MATCH, now)
    assert damaged.fingerprint == OLD[0].fingerprint


KEY, UNKNOWN_CODE = "code.settings.environment.params.inputs", ".settings.environment.params.inputs"
BEFORE = replace(record(1), compute_key=KEY, fingerprint="before")

TABLE = [
    # compute key, fingerprint, healed -> remark
    (KEY, "before", True, None),
    (KEY, "after", True, "was healed and came out different (fingerprint after, before before): not deterministic"),
    (
        KEY,
        "after",
        False,
        "was computed again and came out different (fingerprint after, before before): not deterministic",
    ),
    ("another key", "after", True, None),
]


@pytest.mark.parametrize(("compute_key", "fingerprint", "healed", "expected"), TABLE)
def test_other_data_from_the_same_key_is_remarked_on(compute_key, fingerprint, healed, expected):
    assert remark(BEFORE, compute_key=compute_key, fingerprint=fingerprint, healed=healed) == expected


@pytest.mark.parametrize("key", [UNKNOWN_CODE, str(None)])
def test_where_code_cannot_be_compared_nobody_knows_whether_other_data_is_odd(key):
    assert remark(replace(BEFORE, compute_key=key), compute_key=key, fingerprint="after", healed=False) is None


def test_what_was_made_again_from_such_data_says_so_to_its_own_readers():
    unexplained = because(("raw", 1), " ", Unexplained("was healed and is another"))
    again = {"compute_key": "other", "healed": False}
    told = remark(BEFORE, fingerprint="after", because=unexplained, **again)
    assert told == "was computed again because raw[1] was healed and is another"
    assert remark(BEFORE, fingerprint="before", because=unexplained, **again) is None
    assert (
        remark(BEFORE, fingerprint="after", because=because("raw[1] came out different, says its author"), **again)
        is None
    )


def test_a_first_time_and_an_unmeasured_one_are_not_compared():
    assert remark(None, compute_key=KEY, fingerprint="after", healed=False) is None
    assert remark(replace(BEFORE, fingerprint=""), compute_key=KEY, fingerprint="after", healed=True) is None
