"""Verdicts as the run page is told them, from results made by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.ledger.samples import CELL, START, gate_result, record, waiver

from stagehold.airflow.run_page.verdict_answers import (
    MOST_INTERVALS,
    MOST_SAMPLES,
    MOST_VALUES,
    last_intervals,
    number_in,
    observed_points,
    stage_verdicts,
)
from stagehold.gates.verdicts import outcome_of, waived_in
from stagehold.model.choices import Severity
from stagehold.model.records import GateResult
from stagehold.model.standing import PartitionState

NULLS = "no nulls"
CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO


def result(partition: int, passed: bool = True, expectation: str = NULLS, **facts: Any) -> GateResult:
    return replace(gate_result(partition, passed=passed, expectation=expectation), **facts)


@pytest.mark.parametrize(
    ("passed", "severity", "waived", "outcome"),
    [
        (True, CRITICAL, False, "passed"),
        (True, CRITICAL, True, "passed"),  # judged again, by another suite
        (False, CRITICAL, False, "failed"),
        (False, CRITICAL, True, "waived"),
        (False, WARNING, False, "warning"),
        (False, WARNING, True, "warning"),
        (False, INFO, False, "info"),
    ],
)
def test_a_verdict_has_one_outcome(passed, severity, waived, outcome):
    words = waived_in([record(3, refused=(NULLS,))], [waiver(3)]) if waived else {}
    assert outcome_of(result(3, passed, severity=severity), words) == outcome


def test_a_waiver_of_other_data_waives_nothing():
    blocked = record(3, state=PartitionState.BLOCKED, refused=(NULLS,), fingerprint="other")
    assert waived_in([blocked], [waiver(3)]) == {}


def told(results: list[GateResult], **facts: Any) -> list[Any]:
    stage = stage_verdicts("joined", "gate", 9, results, facts.get("waived", {}))
    return [
        (one.expectation, one.severity, [(some.outcome, some.count, some.partitions) for some in one.outcomes])
        for one in stage.expectations
    ]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param([], [], id="nothing was judged"),
        pytest.param(
            [result(number) for number in range(4)],
            [(NULLS, CRITICAL, [("passed", 4, ((0, 3),))])],
            id="all pass",
        ),
        pytest.param(
            [result(number, passed=number != 2) for number in range(4)],
            [(NULLS, CRITICAL, [("failed", 1, ((2, 2),)), ("passed", 3, ((0, 1), (3, 3)))])],
            id="what fails comes first",
        ),
        pytest.param(
            [result(0), result(0, False, "rows", severity=WARNING), result(1), result(1, False, "rows", severity=INFO)],
            [
                (NULLS, CRITICAL, [("passed", 2, ((0, 1),))]),
                ("rows", WARNING, [("warning", 1, ((0, 0),)), ("info", 1, ((1, 1),))]),
            ],
            id="in the order of the suite",
        ),
    ],
)
def test_partitions_of_one_outcome_are_one_group(results, expected):
    assert told(results) == expected


def test_an_unmet_expectation_has_a_few_samples():
    many = json.dumps({"partial_unexpected_list": ["x" * 500, *range(50)]})
    (one,) = stage_verdicts("joined", "gate", 9, [result(n, False, result=many) for n in range(9)], {}).expectations
    (group,) = one.outcomes
    assert [sample.partition for sample in group.samples] == list(range(MOST_SAMPLES))
    values = group.samples[0].values
    assert (len(values), len(values[0]), values[1]) == (MOST_VALUES, 80, "0")


def test_a_sample_has_rows_by_column_if_the_verdict_has_them():
    rows = [{"id": n, "note": "x" * 500} for n in range(50)]
    seen = json.dumps({"partial_unexpected_list": [1], "partial_unexpected_index_list": rows})
    (one,) = stage_verdicts("joined", "gate", 9, [result(0, False, result=seen)], {}).expectations
    (sample,) = one.outcomes[0].samples
    assert (len(sample.rows), sample.rows[1]) == (MOST_VALUES, {"id": "1", "note": "x" * 80})


@pytest.mark.parametrize("text", ["", "{}", '{"partial_unexpected_list": null}', '{"observed_value": 3}'])
def test_results_need_not_have_samples(text):
    (one,) = stage_verdicts("joined", "gate", 9, [result(0, False, result=text)], {}).expectations
    assert one.outcomes[0].samples[0].values == ()


@pytest.mark.parametrize(
    ("observed", "number"),
    [
        ("12", 12.0),
        ("-1.5e3", -1500.0),
        ("3 of 100 unexpected", None),
        ("", None),
        ("None", None),
        ("nan", None),
        ("inf", None),
        ("2024-01-01", None),
        ("[1, 2]", None),
        (None, None),
        ([1], None),
        (7, 7.0),
    ],
)
def test_only_numbers_have_a_history(observed, number):
    assert number_in(observed) == number


def known(*intervals: str) -> list[tuple[str, Any]]:
    return [(interval, START + timedelta(days=place)) for place, interval in enumerate(intervals)]


@pytest.mark.parametrize(
    ("intervals", "own", "expected"),
    [
        (["2024-01-03", "2024-01-01", "2024-01-02"], "2024-01-02", ("2024-01-01", "2024-01-02")),
        (["first", "second", "third"], "second", ("first", "second")),
        (["first"], "unheard of", ("unheard of",)),
        ([f"2024-01-{day:02}" for day in range(1, 31)], "2024-01-30", tuple(f"2024-01-{day}" for day in range(17, 31))),
    ],
)
def test_a_history_ends_with_the_runs_own_interval(intervals, own, expected):
    assert last_intervals(known(*intervals), own, None) == expected
    assert len(expected) <= MOST_INTERVALS


def seen(interval: str, partition: int, observed: str, *, passed: bool = True, **kwargs: Any) -> GateResult:
    configuration = json.dumps({"kwargs": kwargs})
    return result(
        partition, passed, observed=observed, configuration=configuration, cell=replace(CELL, interval=interval)
    )


def test_an_interval_is_one_point_with_its_bounds_at_that_time():
    results = [
        seen("b", 0, "10", min_value=1, max_value=20),
        seen("b", 1, "14", min_value=1, max_value=20),
        seen("b", 2, "30", min_value=1, max_value=20, passed=False),
        seen("a", 0, "5", min_value=2, max_value=None),
        seen("c", 0, "none"),
        seen("d", 0, "7", value=7),
    ]
    points = observed_points(["a", "b", "c", "d", "e"], results)
    assert [tuple(one.model_dump().values()) for one in points] == [
        ("a", 5, 5, 5, 1, 0, 2, None),
        ("b", 10, 14, 30, 3, 1, 1, 20),
        ("d", 7, 7, 7, 1, 0, 7, 7),
    ]


def test_bounds_may_be_unknown_or_no_numbers():
    results = [replace(seen("a", 0, "5", min_value="2024-01-01"), configuration=text) for text in ("", "{}")]
    assert [(one.least, one.most) for some in results for one in observed_points(["a"], [some])] == [(None, None)] * 2
    (dated,) = observed_points(["a"], [seen("a", 0, "5", min_value="2024-01-01")])
    assert dated.least is None


def many(partitions: int, expectations: int, failing: int) -> Iterator[GateResult]:
    """One of ``failing`` verdicts is not met, here and there."""
    for partition in range(partitions):
        for number in range(expectations):
            passed = (partition * 7 + number) % failing != 0
            samples = "" if passed else json.dumps({"partial_unexpected_list": [*range(20)]})
            yield result(partition, passed, f"expect_column_values_to_not_be_null(column_{number})", result=samples)


@pytest.mark.parametrize(
    ("failing", "most_bytes"), [(10**9, 4_000), (97, 20_000), (2, 150_000)], ids=["none", "one in 97", "one in 2"]
)
def test_a_thousand_partitions_of_twelve_expectations_are_few_bytes(failing, most_bytes):
    results = list(many(1000, 12, failing))
    began = time.perf_counter()
    stage = stage_verdicts("joined", "gate", 1000, results, {})
    seconds = time.perf_counter() - began
    size = len(stage.model_dump_json())
    print(f"1 of {failing} fails: {size} bytes in {seconds * 1000:.0f} ms")
    assert size < most_bytes
    assert seconds < 2
