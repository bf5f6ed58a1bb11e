"""What real Great Expectations says of a wave, through files that Spark wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.dataframe import DataFrame
from tests.gates.judged_waves import BETWEEN, COUNT, ROWS, SECONDS, between, of_content, staged, suite
from tests.lake.stagehand import Stagehand

from stagehold.errors import GateErrored, SuiteModuleUnusable
from stagehold.gates import judge
from stagehold.gates.judge import Measured
from stagehold.gates.suite import Expectation, Samples
from stagehold.gates.suite_files import load_suite
from stagehold.gates.verdicts import COUNTED, GateVerdict, observed, shown_of
from stagehold.lake.measure import StagedContent
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity

pytestmark = pytest.mark.spark

UNIQUE = "expect_column_values_to_be_unique"


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int")


def judged(
    hand: Stagehand, *expectations: Expectation, rows: dict[int, Sequence[Any]] | None = None, **parameters: Any
) -> Measured:
    given = ROWS if rows is None else rows
    gate = replace(suite(*expectations), parameters=parameters)
    return of_content(hand, staged(hand, given), sorted(given), gate)


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


def test_private_values_are_not_shown(hand):
    gate = replace(suite(between("amount", min_value=0)), samples=Samples(rows=0))
    assert of_content(hand, staged(hand, ROWS), sorted(ROWS), gate).verdicts[0].observed == "2 of 3 unexpected"


def sampled(hand: Stagehand, samples: Samples, *expectations: Expectation, wave: int = 1) -> tuple[GateVerdict, ...]:
    gate = replace(suite(*expectations), samples=samples, samples_line=3)
    content = StagedContent(hand.stage(ROWS, wave=wave), hand.schema)
    return of_content(hand, content, sorted(ROWS), gate).verdicts


def test_unexpected_rows_are_shown_by_their_keys(hand):
    keyed = Samples(rows=1, keys=("name",))
    first, *_ = sampled(hand, keyed, between("amount", min_value=0))
    assert first.observed == "2 of 3 unexpected, such as -2 (name=b)"
    assert json.loads(first.result)["partial_unexpected_index_list"] == [{"name": "b", "amount": -2}]
    assert len(json.loads(first.result)["partial_unexpected_list"]) == 1
    unique = sampled(hand, Samples(keys=("amount",)), Expectation(UNIQUE, {"column": "name"}), wave=2)
    assert [one.observed for one in unique] == [
        "0 of 3 unexpected",
        "2 of 2 unexpected, such as a (amount=None), a (amount=1)",
        "0 of 0 unexpected",
    ]
    of_all = Expectation("expect_column_mean_to_be_between", {"column": "amount", "min_value": 9})
    (mean, *_) = sampled(hand, keyed, of_all, wave=3)
    assert mean.observed == str(4 / 3)  # which is about all rows


def test_of_masked_columns_only_counts_of_rows_are_shown(hand):
    masked = Samples(keys=("name",), mask=("amount",))
    said = sampled(
        hand,
        masked,
        between("amount", min_value=0),
        Expectation("expect_column_max_to_be_between", {"column": "amount", "max_value": 1}),
        Expectation("expect_column_values_to_be_in_set", {"column": "name", "value_set": ["a"]}),
        Expectation(
            "unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch} WHERE amount = -2"}
        ),
    )
    values, most, names, query = said[::3]
    assert values.observed == "2 of 3 unexpected"
    assert json.loads(values.result).keys() <= {*COUNTED}
    assert (most.observed, json.loads(most.result)) == ("not shown: amount is masked", {})
    assert names.observed == "2 of 3 unexpected, such as name=b, name=c"
    assert (query.passed, "-2" in query.result + query.observed) == (False, False)
    assert not any("-2" in one.result or "-2" in one.observed for one in said)


@pytest.mark.parametrize(("samples", "field"), [(Samples(keys=("nam",)), "keys"), (Samples(mask=("amont",)), "mask")])
def test_a_column_of_samples_that_does_not_exist_is_refused_before_anything_is_shown(hand, samples, field):
    with pytest.raises(GateErrored, match=rf"toy.yaml:3: samples.{field}: there is no column .*allowed: name, amount"):
        sampled(hand, samples, between("amount", min_value=0))


def test_an_error_of_judging_shows_no_value_of_a_masked_column(hand):
    condition = {"row_condition": "cast(name as int) > 0", "condition_parser": "spark", "min_value": 1}
    wrong = Expectation(COUNT, condition)
    with pytest.raises(GateErrored) as told:
        sampled(hand, Samples(), wrong)
    assert "CAST_INVALID_INPUT" in str(told.value)
    with pytest.raises(GateErrored) as hidden:
        sampled(hand, Samples(mask=("name",)), wrong, wave=2)
    assert "CAST_INVALID_INPUT" not in str(hidden.value)
    assert "whose text is not shown: name masked" in str(hidden.value)


def test_a_wave_without_rows_is_judged(hand):
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
            Expectation("expect_column_values_to_match_regex", {"column": "name", "regex": "[a-z"}),
            "regex=.a-z.: .*Unclosed character class",
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
def test_an_expectation_that_cannot_be_judged_is_an_error_with_its_place(hand, expectation, problem):
    with pytest.raises(GateErrored, match=f"(?s)Suite toy cannot judge 1 of its expectations.*{problem}"):
        judged(hand, between("amount", min_value=-9), expectation)


def test_all_expectations_that_cannot_be_judged_are_told_at_once(hand):
    regex = Expectation("expect_column_values_to_match_regex", {"column": "name", "regex": "(("}, line=3)
    with pytest.raises(GateErrored) as raised:
        judged(hand, regex, between("amont", line=4, min_value=0), between("amount", line=5, min_valeu=1))
    assert [problem.partition(": ")[0] for problem in raised.value.problems] == [
        "toy.yaml:3",
        "toy.yaml:4",
        "toy.yaml:5",
    ]


def test_a_parameter_of_the_suite_is_one_of_the_run(hand):
    limits = {"min_value": {"$PARAMETER": "least"}, "max_value": {"$PARAMETER": "least * 4"}}
    measured = judged(hand, Expectation(COUNT, limits), least=1)
    assert [one.passed for one in measured.verdicts] == [True, True, False]
    with pytest.raises(GateErrored, match="No value found for \\$PARAMETER least"):
        judged(hand.at(epoch=2), Expectation(COUNT, limits))


BROKEN = [
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("def f(:", "SyntaxError: .*checks_of_ones_own.py, line 1"),
    ("raise ValueError('first\\nlast')", "ValueError: last"),
    ("raise SystemExit", "SystemExit"),
]


@pytest.mark.parametrize(("code", "cause"), BROKEN)
def test_a_module_of_the_suite_that_cannot_be_imported_is_an_error_of_the_suite(
    hand, tmp_path, monkeypatch, code, cause
):
    (tmp_path / "checks_of_ones_own.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "toy.yaml").write_text(
        "suite: toy\nmodules:\n  - checks_of_ones_own\nexpectations:\n  - {type: expect_of_mine, column: amount}\n"
    )
    gate = load_suite(tmp_path / "toy.yaml", tmp_path)
    with pytest.raises(SuiteModuleUnusable, match=f"(?s)toy.yaml:3: modules: checks_of_ones_own .*: {cause}"):
        of_content(hand, staged(hand, ROWS), sorted(ROWS), gate)


def test_a_module_that_makes_a_suite_is_named_by_the_gate_where_there_is_no_file(hand):
    gate = replace(suite(between("amount", min_value=0)), file="gone.checks:toy", modules=("gone.checks",))
    with pytest.raises(SuiteModuleUnusable, match=r"gone\.checks:toy: modules: gone.checks .*'gone'"):
        of_content(hand, staged(hand, ROWS), sorted(ROWS), gate)


def test_a_server_that_is_gone_is_not_the_suites_fault(hand, monkeypatch):
    def gone(*_: object) -> None:
        raise SparkConnectGrpcException("connection refused")

    content = staged(hand, ROWS)
    monkeypatch.setattr(DataFrame, "collect", gone)
    with pytest.raises(SparkConnectGrpcException, match="connection refused"):
        of_content(hand, content, sorted(ROWS), suite(Expectation(COUNT, {"min_value": 1})))


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
def test_a_result_is_shown_in_a_few_words(result, text):
    assert observed(result) == text


def test_those_words_have_no_private_values():
    told = {"unexpected_count": 2, "partial_unexpected_list": ["x", "y"]}
    own = between("amount")
    assert observed(shown_of(own, told, Samples(rows=0))) == "2 unexpected"
    assert observed(shown_of(own, told, Samples(rows=1))) == "2 unexpected, such as x"
    assert observed(shown_of(own, told, Samples(mask=("amount",)))) == "2 unexpected"


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
        partitions = AskedPartitions("_partition", range(count))
        judged, _ = judge_frame(GroupedFrame(partitions, frame), dict(enumerate(asked)))
        assert all(len(some) == count and all(one.success for one in some) for some in judged.values())
        queries.append(partitions.queries)
    assert queries == [3, 3], "all aggregates, the median, and whether anything is repeated"


def test_the_first_rows_are_those_of_the_order_whatever_is_selected_of_them(hand):
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    frame = GroupedFrame(AskedPartitions("_partition", (4, 9)), hand.frame(ROWS))
    first = frame.orderBy("amount").select("amount", "name").limit(1)
    assert [tuple(row) for row in first.collect()] == [(-2, "b")]


def test_what_is_imported_meanwhile_is_there_when_the_block_ends(monkeypatch):
    done = []
    monkeypatch.setattr(judge, "IMPORTED", "not imported yet")
    monkeypatch.setattr(judge, "import_great_expectations", lambda: (time.sleep(0.2), done.append("imported")))
    with suppress(ZeroDivisionError), judge.imported_meanwhile():
        done.append(1 / len(done))
    assert done == ["imported"]
