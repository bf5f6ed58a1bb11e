"""No secret gets into the ledger: every free text passes the masking function of whoever opened it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.ledger.samples import CELL, attempt, event, gate_result, record

from stagehold.ledger import Ledger
from stagehold.ledger.attempts import Failure
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent


@pytest.fixture
def masking(ledger_url):
    with Ledger.open(ledger_url, lambda text: text.replace("hunter2", "***")) as opened:
        yield opened


def test_free_texts_are_masked_before_they_are_stored(masking):
    masking.attempts.create(attempt(), *UNTIL_RUNNING)
    masking.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL, failure=Failure("login of bob:hunter2 failed"))
    masking.events.append(event("failed. login of bob:hunter2"))
    lease = masking.leases.acquire("lease", "me", 60)
    masking.partitions.record([record(0, reason="hunter2 in row 1"), record(1)], lease)
    masking.gates.record([gate_result(0, passed=False, expectation="x")])
    assert masking.attempts.of_run("run-1")[0].failure == "login of bob:*** failed"
    assert masking.events.of_run("run-1")[0].text == "failed. login of bob:***"
    assert [partition.reason for partition in masking.partitions.newest(CELL)] == ["*** in row 1", None]


def test_a_secret_is_found_in_a_sample_however_json_writes_it(ledger_url):
    secret = 'pa"ß'
    seen = json.dumps({"partial_unexpected_index_list": [{"id": 1, "url": f"x:{secret}@y"}], secret: 1})
    assert secret not in seen
    with Ledger.open(ledger_url, lambda text: text.replace(secret, "***")) as masking:
        masking.gates.record([replace(gate_result(0, passed=False), result=seen)])
        (stored,) = masking.gates.newest(CELL)
    assert json.loads(stored.result) == {"partial_unexpected_index_list": [{"id": 1, "url": "x:***@y"}], "***": 1}


def test_what_a_gate_observed_is_masked(masking):
    masking.gates.record([replace(gate_result(0, passed=False), observed="hunter2")])
    assert masking.gates.failures(CELL)[0].observed == "***"
