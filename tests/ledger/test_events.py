from __future__ import annotations

from tests.ledger.samples import event


def test_events_of_a_run_are_in_order_and_can_be_followed(ledger):
    for text in ("one", "two", "three"):
        ledger.events.append(event(text))
    ledger.events.append(event("another", run_id="run-2"))
    assert ledger.events.of_run("run-1") == (event("one"), event("two"), event("three"))
    assert ledger.events.of_run("run-1", after=2) == (event("three"),)
    assert ledger.events.of_run("run-1", after=3) == ()
    assert ledger.events.of_run("run-3") == ()
