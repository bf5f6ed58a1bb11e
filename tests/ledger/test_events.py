from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import event

from stagehold.model.records import TRACE


def test_events_of_a_run_are_in_order_and_can_be_followed(ledger):
    for text in ("one", "two", "three"):
        ledger.events.append(event(text))
    ledger.events.append(event("another", run_id="run-2"))
    assert ledger.events.of_run("run-1") == (event("one"), event("two"), event("three"))
    assert ledger.events.of_run("run-1", after=2) == (event("three"),)
    assert ledger.events.of_run("run-1", after=3) == ()
    assert ledger.events.of_run("run-3") == ()


def test_the_trace_of_a_failure_is_kept_beside_the_runs_history(ledger):
    ledger.events.append(event("one"))
    ledger.events.append(replace(event("Traceback ..."), kind=TRACE, subject="attempt-1"))
    assert ledger.events.of_run("run-1") == (event("one"),)
    assert ledger.events.traces("run-1") == {"attempt-1": "Traceback ..."}
    assert ledger.events.traces("run-2") == {}


def test_events_of_a_kind_are_found_alone(ledger):
    healed = replace(event("two"), kind="healed")
    for one in (event("one"), healed, replace(healed, run_id="run-2")):
        ledger.events.append(one)
    assert ledger.events.of_kind("run-1", "healed") == (healed,)
    assert ledger.events.of_kind("run-3", "healed") == ()
