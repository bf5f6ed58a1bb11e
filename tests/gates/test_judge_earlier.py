"""What real Great Expectations says of partitions compared with earlier intervals, through files that Spark wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from great_expectations.expectations.registry import get_expectation_impl
from pyspark.sql.connect.dataframe import DataFrame
from tests.gates.judged_waves import COUNT, ROWS, between, of_content, staged, suite
from tests.lake.stagehand import Stagehand

from stagehold.errors import GateErrored
from stagehold.gates.earlier_figures import COMPARED, COMPARING, EarlierFigures
from stagehold.gates.suite import Expectation, Suite
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity

pytestmark = pytest.mark.spark


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int")


def of_earlier(rows: dict[int, float], lacking: str = "no earlier interval", **others: float) -> EarlierFigures:
    known = {
        number: {"previous.rows": count, **{f"previous.{name}": others[name] for name in others}}
        for number, count in rows.items()
    }
    return EarlierFigures(known, lacking)


def compared(hand: Stagehand, gate: Suite, rows: dict[int, Sequence[Any]]) -> list[tuple[int, bool, str]]:
    measured = of_content(hand, staged(hand, rows), sorted(rows), gate)
    return [(one.partition, one.passed, one.observed) for one in measured.verdicts]


def within(fraction: float) -> dict[str, Any]:
    low, high = f"previous.rows * {1 - fraction}", f"previous.rows * {1 + fraction}"
    return {"min_value": {"$PARAMETER": low}, "max_value": {"$PARAMETER": high}}


@pytest.mark.parametrize(
    ("expectation", "seen"),
    [
        (between("partition(rows)", **within(0.2)), ("3", "2", "0")),
        (Expectation("expect_column_sum_to_be_between", {"column": "partition(rows)", **within(0.2)}), ("3", "2", "0")),
        (Expectation(COUNT, within(0.2)), ("3", "2", "0")),
        (
            Expectation("expect_column_unique_value_count_to_be_between", {"column": "amount", **within(0.2)}),
            ("3", "1", "0"),
        ),
    ],
)
def test_a_partition_is_compared_with_itself_in_earlier_intervals(hand, expectation, seen):
    gate = replace(suite(expectation), earlier=of_earlier({4: 3, 9: 4}))
    assert compared(hand, gate, ROWS) == [
        (4, True, f"{seen[0]}, where previous.rows is 3"),
        (9, False, f"{seen[1]}, where previous.rows is 4"),
        (11, True, "no earlier interval"),
    ]


def test_what_is_compared_stands_between_what_is_not(hand):
    gate = suite(
        Expectation(COUNT, {"max_value": {"$PARAMETER": "most"}}),
        between("partition(rows)", max_value={"$PARAMETER": "previous.mean_rows + most"}),
        Expectation(COUNT, {"min_value": {"$PARAMETER": "previous.rows"}}, Severity.WARNING),
        between("amount", min_value=-9),
    )
    gate = replace(gate, earlier=of_earlier({4: 9, 9: 1, 11: 0}, mean_rows=1.5), parameters={"most": 1})
    measured = of_content(hand, staged(hand, ROWS), sorted(ROWS), gate)
    assert [one.passed for one in measured.verdicts] == [
        *(False, False, True),
        *(False, True, True),
        *(False, True, True),
        *(True, True, True),
    ]
    assert measured.verdicts[3].observed == "3, where previous.mean_rows is 1.5"
    assert measured.verdicts[6].severity is Severity.WARNING


def test_on_the_first_night_nothing_is_compared_and_other_problems_are_found(hand):
    gate = suite(between("partition(rows)", **within(0.2)))
    assert compared(hand, gate, ROWS) == [(number, True, "no earlier interval") for number in ROWS]
    with pytest.raises(GateErrored, match="there is no column 'amont'"):
        compared(hand.at(epoch=2), suite(between("partition(rows)", **within(1)), between("amont")), ROWS)


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        (
            Expectation(COUNT, {"max_value": {"$PARAMETER": "1 / previous.rows"}}, line=5),
            "toy.yaml:5: .*division by zero",
        ),
        (
            between("partition(rows)", max_value={"$PARAMETER": "previous.rows +"}, line=5),
            "toy.yaml:5: .*Parse Failure",
        ),
        (between("partition(rows)", most={"$PARAMETER": "previous.rows"}, line=5), "toy.yaml:5: .*most: extra fields"),
    ],
)
def test_what_cannot_be_compared_is_an_error_of_the_suite(hand, expectation, problem):
    with pytest.raises(GateErrored, match=problem):
        compared(hand, replace(suite(expectation), earlier=of_earlier({4: 0, 9: 1, 11: 2})), ROWS)


def test_a_hundred_partitions_that_were_all_different_are_compared_in_as_many_queries_as_three(hand, monkeypatch):
    """But for figures of the partitions themselves, which are no rows of Spark's."""
    asked: list[object] = []
    collect = DataFrame.collect
    monkeypatch.setattr(DataFrame, "collect", lambda frame: asked.append(frame) or collect(frame))
    counts = []
    for number in (3, 100):
        rows = {partition: [("a", one) for one in range(partition % 3)] for partition in range(number)}
        most = {"max_value": {"$PARAMETER": "previous.rows"}}
        gate = suite(
            Expectation(COUNT, most),
            Expectation("expect_column_max_to_be_between", {"column": "amount", **most}),
            Expectation(
                "expect_column_median_to_be_between",
                {"column": "amount", "row_condition": "amount > 0", "condition_parser": "spark", **most},
            ),
            between("amount", min_value=0),
        )
        content, before = staged(hand.at(epoch=number), rows), len(asked)
        earlier = of_earlier({partition: partition for partition in rows})
        measured = of_content(hand, content, sorted(rows), replace(gate, earlier=earlier))
        counts.append(len(asked) - before)
        assert [one.passed for one in measured.verdicts[:number]] == [part % 3 <= part for part in range(number)]
    assert counts[0] == counts[1]


def test_a_hundred_figures_of_partitions_are_compared_in_a_few_queries(hand):
    rows = {partition: [("a", 1)] * (partition % 4) for partition in range(120)}
    earlier = of_earlier({partition: partition % 60 for partition in rows})
    found = compared(hand, replace(suite(between("partition(rows)", **within(0))), earlier=earlier), rows)
    assert found == [(part, part % 4 == part % 60, f"{part % 4}, where previous.rows is {part % 60}") for part in rows]


def test_what_may_be_compared_asks_the_same_whatever_its_bounds_are(hand):
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.metrics import engine_of

    engine = engine_of(GroupedFrame(AskedPartitions("_partition", (4,)), hand.frame(ROWS)))
    for name in COMPARING:
        kind = get_expectation_impl(name)
        bounds = [one for one in COMPARED if one in kind.__fields__]
        column = {"column": "amount"} if "column" in kind.__fields__ else {}
        asked = [
            kind(**column, **dict.fromkeys(bounds, value))
            .get_validation_dependencies(engine, {})
            .get_metric_configurations()
            for value in (0, 1)
        ]
        first, second = ([metric.id for metric in some] for some in asked)
        assert bounds
        assert first == second
