"""What gates said of all partitions of a stage together."""

from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import CELL, gate_result, stage_verdict

from stagehold.model.records import WHOLE


def test_verdicts_are_kept_in_the_order_in_which_they_were_said(ledger):
    said = [stage_verdict(refused=("unique",), reason="unique: got 2"), stage_verdict("other"), stage_verdict()]
    for one in said:
        ledger.stage_verdicts.record(one)
    assert ledger.stage_verdicts.of(CELL.pipeline, CELL.interval) == tuple(said)
    assert ledger.stage_verdicts.of(CELL.pipeline, "other") == ()


def test_text_that_a_database_cannot_store_is_replaced(ledger):
    ledger.stage_verdicts.record(stage_verdict(refused=("a\x00",), reason="b\x00"))
    (kept,) = ledger.stage_verdicts.of(CELL.pipeline, CELL.interval)
    assert (kept.refused, kept.reason) == (("a\N{REPLACEMENT CHARACTER}",), "b\N{REPLACEMENT CHARACTER}")


def test_what_an_attempt_took_over_and_judged_again_counts_once(ledger):
    before, again = gate_result(0, passed=False), gate_result(0, passed=True, expectation="other")
    ledger.gates.record([before])
    later = replace(again, recorded_at=again.recorded_at.replace(year=2030))
    ledger.gates.record([later])
    assert ledger.gates.newest(CELL) == (later,)


def test_what_was_said_of_a_stage_stands_beside_what_was_said_of_partitions(ledger):
    some = [gate_result(WHOLE, passed=False), gate_result(0, passed=True)]
    ledger.gates.record(some)
    assert ledger.gates.newest(CELL) == tuple(some)
