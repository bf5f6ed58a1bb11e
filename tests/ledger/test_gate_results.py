from __future__ import annotations

from tests.ledger.samples import CELL, gate_result

from stagehold.model.records import Cell


def test_what_passed_is_recorded_but_is_no_failure(ledger):
    failed = gate_result(1, passed=False)
    ledger.gates.record([gate_result(0, passed=True), failed])
    assert ledger.gates.failures(CELL) == (failed,)


def test_recording_no_result_is_fine(ledger):
    ledger.gates.record([])
    assert ledger.gates.failures(CELL) == ()


def test_only_the_attempt_that_judged_a_partition_last_counts_for_it(ledger):
    first = [
        gate_result(partition, passed=False, attempt_id="attempt-1", expectation=name)
        for partition in (0, 1, 2)
        for name in ("a", "b")
    ]
    again = [
        gate_result(1, passed=False, attempt_id="attempt-2", expectation="b"),
        gate_result(1, passed=True, attempt_id="attempt-2", expectation="a"),
    ]
    ledger.gates.record(first)
    ledger.gates.record([gate_result(0, passed=True, attempt_id="attempt-2"), *again])
    assert ledger.gates.failures(CELL) == (again[0], *first[4:])


def test_failures_of_other_cells_do_not_mix(ledger):
    other = Cell("sales", "joined", "2024-01-02")
    ledger.gates.record([gate_result(0, passed=False), gate_result(0, passed=False, cell=other)])
    assert ledger.gates.failures(other) == (gate_result(0, passed=False, cell=other),)


def test_who_asks_for_some_partitions_is_told_of_no_others(ledger):
    given = [gate_result(partition, passed=True) for partition in (0, 1, 2)]
    ledger.gates.record(given)
    assert ledger.gates.newest(CELL, {0, 2}) == (given[0], given[2])
    assert ledger.gates.newest(CELL, set()) == ()
