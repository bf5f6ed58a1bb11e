from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.ledger.samples import START, record, waiver


def test_waivers_are_those_of_an_interval_in_their_order(ledger):
    first, later = waiver(), waiver(until=START + timedelta(days=1))
    elsewhere = replace(waiver(), interval="2024-01-02")
    ledger.waivers.record([first, elsewhere])
    ledger.waivers.record([later, replace(waiver(), pipeline="costs")])
    assert ledger.waivers.of("sales", "2024-01-01") == (first, later)
    assert ledger.waivers.of("refunds", "2024-01-01") == ()


def test_places_are_those_of_which_the_newest_word_holds(ledger):
    now = START + timedelta(days=3)
    ended, for_good = waiver(1, until=START + timedelta(days=1)), replace(waiver(2), interval="2024-01-02")
    ledger.waivers.record([ended, for_good, replace(waiver(3), pipeline="costs")])
    assert ledger.waivers.waived_places(["sales"], now) == {("sales", "2024-01-02")}
    assert ledger.waivers.waived_places(["sales"], START) == {("sales", "2024-01-01"), ("sales", "2024-01-02")}
    ledger.waivers.record([replace(for_good, until=START)])
    assert ledger.waivers.waived_places(["sales"], now) == frozenset()


def test_a_waiver_holds_for_the_data_that_was_looked_at_and_for_no_other():
    assert waiver(3).holds_for(record(3))
    assert not waiver(3).holds_for(record(4, fingerprint="fingerprint of 3"))
    assert not waiver(3).holds_for(record(3, fingerprint="other data"))
