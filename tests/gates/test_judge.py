"""What real Great Expectations says of a wave, through files that Spark wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.dataframe import DataFrame
from tests.lake.stagehand import Stagehand

from stagehold.errors import GateErrored
from stagehold.gates.judge import Measured, measure_and_judge, observed, preload
from stagehold.gates.suite import Expectation, Severity, Suite
from stagehold.lake.location import TableLocation
from stagehold.lake.measure import Content, StagedContent

pytestmark = pytest.mark.spark

BETWEEN, COUNT = "expect_column_values_to_be_between", "expect_table_row_count_to_be_between"
ROWS = {4: [("a", 7), ("b", -2), ("c", -1)], 9: [("a", 1), ("a", None)], 11: []}
SECONDS = 6.0


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int")


def suite(*expectations: Expectation) -> Suite:
    return Suite("toy", expectations, "toy.yaml")


def between(column: str, severity: Severity = Severity.CRITICAL, line: int = 0, **limits: object) -> Expectation:
    return Expectation(BETWEEN, {"column": column, **limits}, severity, line=line)


def judged(
    hand: Stagehand, *expectations: Expectation, rows: dict[int, Sequence[Any]] | None = None, **parameters: Any
) -> Measured:
    given = ROWS if rows is None else rows
    gate = replace(suite(*expectations), parameters=parameters)
    return of_content(hand, staged(hand, given), sorted(given), gate)


def staged(hand: Stagehand, rows: dict[int, Sequence[Any]]) -> StagedContent:
    return StagedContent(hand.stage(rows), hand.schema)


def of_content(hand: Stagehand, content: Content, partitions: Sequence[int], gate: Suite) -> Measured:
    return measure_and_judge(hand.spark, content, partitions, gate, dict.fromkeys(partitions, SECONDS / 3))


def test_every_partition_gets_a_verdict_of_every_expectation_with_what_it_saw(hand):
    measured = judged(
        hand,
        between("amount", min_value=0, mostly=0.9),
        Expectation(COUNT, {"min_value": 1}, Severity.WARNING),
        Expectation("expect_column_values_to_be_unique", {"column": "name"}, Severity.INFO),
    )
    assert [(one.partition, one.rows) for one in measured.metrics] == [(4, 3), (9, 2), (11, 0)]
    assert measured.metrics == hand.measure(hand.stage(ROWS, wave=2), sorted(ROWS))
    assert [(one.partition, one.passed, one.observed, one.severity) for one in measured.verdicts] == [
        (4, False, "2 of 3 unexpected, such as -2, -1", Severity.CRITICAL),
        (9, True, "0 of 2 unexpected", Severity.CRITICAL),
        (11, True, "no rows", Severity.CRITICAL),
        (4, True, "3", Severity.WARNING),
        (9, True, "2", Severity.WARNING),
        (11, False, "0", Severity.WARNING),
        (4, True, "0 of 3 unexpected", Severity.INFO),
        (9, False, "2 of 2 unexpected, such as a", Severity.INFO),
        (11, True, "0 of 0 unexpected", Severity.INFO),
    ]
    assert measured.verdicts[0].expectation == f"{BETWEEN}(amount, min_value=0, mostly=0.9)"


def test_values_are_not_told_where_they_are_private(hand):
    gate = replace(suite(between("amount", min_value=0)), samples=False)
    assert of_content(hand, staged(hand, ROWS), sorted(ROWS), gate).verdicts[0].observed == "2 of 3 unexpected"


def test_a_wave_without_any_row_is_judged_as_well(hand):
    measured = judged(hand, Expectation(COUNT, {"min_value": 1}), rows={0: [], 1: []})
    assert [(one.partition, one.passed) for one in measured.verdicts] == [(0, False), (1, False)]


def test_facts_of_the_partition_itself_are_judged_under_names_that_no_column_has(hand):
    measured = judged(
        hand,
        between("partition(rows)", max_value=2),
        between("amount", min_value=-5),
        between("partition(bytes)", min_value=1),
        Expectation("expect_column_max_to_be_between", {"column": "partition(seconds)", "max_value": 2}),
    )
    verdicts = [one.passed for one in measured.verdicts]
    assert verdicts == [False, True, True, True, True, True, True, True, False, True, True, True]
    assert measured.verdicts[-1].observed == str(SECONDS / 3)


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        (between("amont", line=7, min_value=0), "toy.yaml:7: .*there is no column 'amont'; there is amount"),
        (between("amount", min_valeu=1), "min_valeu: extra fields not permitted"),
        (Expectation(BETWEEN, {"min_value": 1}), "column: field required"),
        (
            Expectation("expect_column_values_to_match_regex", {"column": "name", "regex": "(("}),
            "Caused by: java.util.regex.PatternSyntaxException: Unclosed group",
        ),
        (
            Expectation(COUNT, {"row_condition": "amount >", "condition_parser": "spark", "min_value": 1}),
            "PARSE_SYNTAX",
        ),
        (
            Expectation("expect_column_values_to_match_like_pattern", {"column": "name", "like_pattern": "a%"}),
            "No provider",
        ),
        (
            Expectation("expect_column_mean_to_be_between", {"column": "name", "min_value": 1}),
            "Expected numeric column",
        ),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_says_where_it_stands(hand, expectation, problem):
    with pytest.raises(GateErrored, match=f"(?s)Suite toy cannot judge 1 of its expectations.*{problem}"):
        judged(hand, between("amount", min_value=-9), expectation)


def test_a_parameter_of_the_suite_is_one_of_the_run(hand):
    limits = {"min_value": {"$PARAMETER": "least"}, "max_value": {"$PARAMETER": "least * 4"}}
    measured = judged(hand, Expectation(COUNT, limits), least=1)
    assert [one.passed for one in measured.verdicts] == [True, True, False]
    with pytest.raises(GateErrored, match="No value found for \\$PARAMETER least"):
        judged(hand.at(epoch=2), Expectation(COUNT, limits))


def test_a_server_that_is_gone_is_not_the_suites_fault(hand, monkeypatch):
    def gone(*_: object) -> None:
        raise SparkConnectGrpcException("connection refused")

    content = staged(hand, ROWS)
    monkeypatch.setattr(DataFrame, "collect", gone)
    with pytest.raises(SparkConnectGrpcException, match="connection refused"):
        of_content(hand, content, sorted(ROWS), suite(Expectation(COUNT, {"min_value": 1})))


def test_all_that_cannot_be_judged_is_named_at_once(hand):
    with pytest.raises(GateErrored) as raised:
        judged(hand, between("amont", min_value=0), between("nome", min_value=0))
    assert len(raised.value.problems) == 2


def test_a_column_that_should_be_there_and_is_not_fails(hand):
    measured = judged(hand, Expectation("expect_column_to_exist", {"column": "gone"}))
    assert [one.passed for one in measured.verdicts] == [False, False, False]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"element_count": 5, "unexpected_count": 0, "partial_unexpected_list": []}, "0 of 5 unexpected"),
        (
            {"element_count": 9, "unexpected_count": 8, "partial_unexpected_list": [1, 1, 2, 3, 4, 5, 6]},
            "8 of 9 unexpected, such as 1, 2, 3, 4, 5",
        ),
        ({"element_count": 0, "unexpected_count": None}, "no rows"),
        ({"observed_value": 3.5}, "3.5"),
        (
            {"observed_value": None, "unexpected_count": 2, "partial_unexpected_list": ["x", "y"]},
            "2 unexpected, such as x, y",
        ),
        ({"observed_value": None}, "None"),
        ({}, ""),
    ],
)
def test_what_was_seen_is_told_in_a_few_words(result, text):
    assert observed(result) == text


def test_what_is_private_is_not_among_them():
    assert observed({"unexpected_count": 2, "partial_unexpected_list": ["x", "y"]}, samples=False) == "2 unexpected"


def test_there_are_as_many_queries_for_many_partitions_as_for_few(hand):
    from great_expectations.expectations import core

    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import judge_frame

    asked = [
        core.ExpectColumnMeanToBeBetween(column="amount", min_value=0),
        core.ExpectColumnMedianToBeBetween(column="amount", min_value=0),
        core.ExpectColumnValuesToNotBeNull(column="name"),
        core.ExpectColumnValuesToBeUnique(column="amount"),
    ]
    queries = []
    for count in (2, 20):
        frame = hand.frame({number: [("a", number), ("b", number + 1)] for number in range(count)})
        partitions = AskedPartitions("_partition", range(count), 0)
        judged, _ = judge_frame(GroupedFrame(partitions, frame), dict(enumerate(asked)))
        assert all(len(some) == count and all(one.success for one in some) for some in judged.values())
        queries.append(partitions.queries)
    assert queries == [3, 3], "all aggregates, the median, and whether anything is repeated"


def test_the_first_rows_are_those_of_the_order_whatever_is_selected_of_them(hand):
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    frame = GroupedFrame(AskedPartitions("_partition", (4, 9), 4), hand.frame(ROWS))
    first = frame.orderBy("amount").select("amount", "name").limit(1)
    assert [tuple(row) for row in first.collect()] == [(-2, "b")]


def test_preloading_imports_in_the_background():
    thread = preload()
    thread.join(60)
    assert not thread.is_alive()
