"""Which intervals keep their outputs, by the newest word on each."""

from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import pin

OTHER = "2024-01-02"


def test_the_newest_word_on_an_interval_counts(ledger):
    ledger.pins.record([pin(), pin(OTHER)])
    assert ledger.pins.holding("sales") == {"2024-01-01": pin(), OTHER: pin(OTHER)}
    ledger.pins.record([pin(pinned=False, minutes=1)])
    assert ledger.pins.holding("sales") == {OTHER: pin(OTHER)}
    again = pin(minutes=2, reason="once more")
    ledger.pins.record([again])
    assert ledger.pins.holding("sales") == {"2024-01-01": again, OTHER: pin(OTHER)}


def test_pins_are_asked_for_by_pipeline_and_interval(ledger):
    ledger.pins.record([pin(), pin(OTHER), replace(pin(), pipeline="costs")])
    assert ledger.pins.holding("sales", [OTHER, "2024-01-03"]) == {OTHER: pin(OTHER)}
    assert ledger.pins.holding("sales", []) == {}
    assert list(ledger.pins.holding("costs")) == ["2024-01-01"]
    assert ledger.pins.holding("refunds") == {}


def test_who_keeps_an_answer_sees_that_something_was_pinned(ledger):
    before = ledger.revision
    ledger.pins.record([pin()])
    assert ledger.revision != before


def test_a_pin_says_who_when_and_why():
    assert str(pin()) == "by ann at 2024-01-02 03:04 (UTC): for the audit"
    assert str(pin(reason="")) == "by ann at 2024-01-02 03:04 (UTC)"
