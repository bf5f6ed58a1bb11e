from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import CELL, gate_result

from stagehold.model.choices import Severity
from stagehold.model.records import WHOLE

OTHER_DAY = replace(CELL, interval="2024-01-02")


def told(ledger, *intervals: str) -> list[tuple[str, str, bool, int]]:
    found = ledger.gate_tallies.of("sales", intervals or (CELL.interval,))
    return [(verdict.interval, verdict.expectation, verdict.passed, verdict.partitions) for verdict in found]


def test_the_newest_word_of_each_partition_counts(ledger):
    ledger.gates.record([gate_result(number, passed=number != 1) for number in range(4)])
    ledger.gates.record([gate_result(2, passed=False), gate_result(1, passed=True)])
    assert sorted(told(ledger)) == [("2024-01-01", "no nulls", False, 1), ("2024-01-01", "no nulls", True, 3)]


def test_expectations_severities_and_intervals_are_told_apart(ledger):
    warning = replace(gate_result(0, passed=False, expectation="few rows"), severity=Severity.WARNING)
    whole = replace(gate_result(0, passed=True, expectation="a sum"), partition=WHOLE)
    ledger.gates.record([gate_result(0, passed=True), warning, whole])
    ledger.gates.record([gate_result(0, passed=False, cell=OTHER_DAY)])
    found = ledger.gate_tallies.of("sales", (CELL.interval, OTHER_DAY.interval))
    severities = {
        (verdict.interval, verdict.expectation): (verdict.severity, verdict.passed, verdict.stage, verdict.suite)
        for verdict in found
    }
    assert severities == {
        ("2024-01-01", "no nulls"): (Severity.CRITICAL, True, "joined", "joined"),
        ("2024-01-01", "few rows"): (Severity.WARNING, False, "joined", "joined"),
        ("2024-01-01", "a sum"): (Severity.CRITICAL, True, "joined", "joined"),
        ("2024-01-02", "no nulls"): (Severity.CRITICAL, False, "joined", "joined"),
    }
    assert told(ledger, "never") == []
