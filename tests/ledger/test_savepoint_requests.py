from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from stagehold.model.checkpoint_records import SavepointRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = SavepointRequest("kept", "run-1", False, "ann", "to be sure", NOW)


def test_a_request_is_open_until_it_is_settled(ledger):
    assert ledger.savepoint_requests.get("kept") is None
    assert ledger.savepoint_requests.ask(ASKED) == ASKED
    assert ledger.savepoint_requests.open_of("run-1") == (ASKED,)
    assert ledger.savepoint_requests.open_of("run-2") == ()
    ledger.savepoint_requests.settle("kept")
    assert ledger.savepoint_requests.open_of("run-1") == ()
    settled = ledger.savepoint_requests.get("kept")
    assert settled == replace(ASKED, settled_at=settled.settled_at)


def test_they_are_served_in_the_order_in_which_they_came(ledger):
    later = replace(ASKED, name="a-later-one", requested_at=NOW + timedelta(seconds=1))
    ledger.savepoint_requests.ask(later)
    ledger.savepoint_requests.ask(ASKED)
    assert ledger.savepoint_requests.open_of("run-1") == (ASKED, later)


def test_the_first_word_on_a_request_counts(ledger):
    ledger.savepoint_requests.ask(ASKED)
    ledger.savepoint_requests.settle("kept", "too late")
    ledger.savepoint_requests.settle("kept")
    assert ledger.savepoint_requests.get("kept").failure == "too late"


def test_an_open_request_stands_and_a_settled_one_makes_room(ledger):
    ledger.savepoint_requests.ask(ASKED)
    other = replace(ASKED, run_id="run-2", stop=True, reason="because")
    assert ledger.savepoint_requests.ask(other) == ASKED
    ledger.savepoint_requests.settle("kept", "too late")
    assert ledger.savepoint_requests.ask(other) == other
    assert ledger.savepoint_requests.open_of("run-2") == (other,)
