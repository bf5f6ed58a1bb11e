from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import record

from stagehold.plan.determinism.reproduction import remark
from stagehold.plan.grounds.reasons import Unexplained, because

BEFORE = replace(record(1), compute_key="key", fingerprint="before")

TABLE = [
    # compute key, fingerprint, healed -> remark
    ("key", "before", True, None),
    ("key", "after", True, "was healed and came out different (fingerprint after, before before): not deterministic"),
    (
        "key",
        "after",
        False,
        "was computed again and came out different (fingerprint after, before before): not deterministic",
    ),
    ("another key", "after", True, None),
]


@pytest.mark.parametrize(("compute_key", "fingerprint", "healed", "expected"), TABLE)
def test_other_data_from_the_same_key_is_remarked_on(compute_key, fingerprint, healed, expected):
    assert remark(BEFORE, compute_key=compute_key, fingerprint=fingerprint, healed=healed) == expected


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
    assert remark(None, compute_key="key", fingerprint="after", healed=False) is None
    assert remark(replace(BEFORE, fingerprint=""), compute_key="key", fingerprint="after", healed=True) is None
