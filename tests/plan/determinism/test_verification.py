from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.ledger.samples import record

from stagehold.model.records import DataFile
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import NO_MATCH, SAMPLE, as_damaged, same_content, to_verify
from stagehold.spec.settings.run_settings import VerifyPolicy

WRITTEN = DataFile("_data/now.a/1/_partition=0/part.parquet", 1, 1)
OWN = [replace(record(partition), run_id="now", attempt_id="now.a", files=(WRITTEN,)) for partition in range(4)]
TAKEN = [replace(one, attempt_id="now.b") for one in OWN]
OLD = [replace(record(partition), run_id="before") for partition in range(4)]
EMPTY = [replace(one, files=()) for one in OLD]


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
    assert {one.partition for sample in drawn for one in sample} == {0, 1, 2, 3}
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
