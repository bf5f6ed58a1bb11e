from __future__ import annotations

from dataclasses import replace

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


def test_verdicts_are_the_newest_results_without_their_long_texts(ledger):
    given = [
        replace(gate_result(partition, passed=partition == 0), configuration='{"type": "a"}', result='{"seen": 1}')
        for partition in (0, 1)
    ]
    ledger.gates.record([gate_result(0, passed=False, attempt_id="attempt-0"), *given])
    passed, failed = ledger.gates.verdicts(CELL)
    assert passed == replace(given[0], configuration="", result="")
    assert failed == replace(given[1], configuration="")


def test_what_one_expectation_said_in_several_intervals_is_told_of_each_partition_once(ledger):
    cells = [Cell("sales", "joined", f"2024-01-0{day}") for day in (1, 2, 3)]
    for attempt in ("attempt-1", "attempt-2"):
        ledger.gates.record(
            [
                replace(gate_result(partition, passed=True, attempt_id=attempt, cell=cell), expectation=name)
                for cell in cells
                for partition in (0, 1)
                for name in ("a", "b")
            ]
        )
    found = ledger.gates.of_expectation("sales", "joined", ["2024-01-01", "2024-01-03"], "b")
    told = sorted(
        (verdict.cell.interval, verdict.partition, verdict.attempt_id, verdict.expectation) for verdict in found
    )
    assert told == [
        (interval, partition, "attempt-2", "b") for interval in ("2024-01-01", "2024-01-03") for partition in (0, 1)
    ]
    assert ledger.gates.of_expectation("sales", "joined", [], "b") == ()
