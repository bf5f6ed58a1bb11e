"""What real Great Expectations says of a wave, through files that Spark wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from great_expectations.expectations.registry import get_expectation_impl
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.dataframe import DataFrame
from tests.lake.stagehand import Stagehand

from stagehold.errors import GateErrored, SuiteModuleUnusable
from stagehold.gates.earlier_figures import COMPARED, COMPARING, EarlierFigures
from stagehold.gates.judge import Measured, measure_and_judge, preload
from stagehold.gates.suite import Expectation, Samples, Suite
from stagehold.gates.suite_files import load_suite
from stagehold.gates.verdicts import COUNTED, GateVerdict, observed, shown_of
from stagehold.lake.measure import Content, StagedContent
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import Severity

pytestmark = pytest.mark.spark

BETWEEN, COUNT = "expect_column_values_to_be_between", "expect_table_row_count_to_be_between"
UNIQUE = "expect_column_values_to_be_unique"
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
    return measure_and_judge(
        content.frame(hand.spark), content, partitions, gate, dict.fromkeys(partitions, SECONDS / 3)
    )


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
    gate = replace(suite(between("amount", min_value=0)), samples=Samples(rows=0))
    assert of_content(hand, staged(hand, ROWS), sorted(ROWS), gate).verdicts[0].observed == "2 of 3 unexpected"


def sampled(hand: Stagehand, samples: Samples, *expectations: Expectation, wave: int = 1) -> tuple[GateVerdict, ...]:
    gate = replace(suite(*expectations), samples=samples, samples_line=3)
    content = StagedContent(hand.stage(ROWS, wave=wave), hand.schema)
    return of_content(hand, content, sorted(ROWS), gate).verdicts


def test_rows_that_are_not_expected_are_told_by_their_keys(hand):
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


def test_of_masked_columns_nothing_but_numbers_of_rows_is_told(hand):
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
def test_a_column_of_samples_that_is_not_there_is_refused_before_anything_is_told(hand, samples, field):
    with pytest.raises(GateErrored, match=rf"toy.yaml:3: samples.{field}: there is no column .*allowed: name, amount"):
        sampled(hand, samples, between("amount", min_value=0))


def test_what_cannot_be_judged_tells_no_value_of_a_masked_column(hand):
    condition = {"row_condition": "cast(name as int) > 0", "condition_parser": "spark", "min_value": 1}
    wrong = Expectation(COUNT, condition)
    with pytest.raises(GateErrored) as told:
        sampled(hand, Samples(), wrong)
    assert "CAST_INVALID_INPUT" in str(told.value)
    with pytest.raises(GateErrored) as hidden:
        sampled(hand, Samples(mask=("name",)), wrong, wave=2)
    assert "CAST_INVALID_INPUT" not in str(hidden.value)
    assert "whose text is not shown: name masked" in str(hidden.value)


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
def test_what_cannot_be_judged_is_an_error_that_says_where_it_stands(hand, expectation, problem):
    with pytest.raises(GateErrored, match=f"(?s)Suite toy cannot judge 1 of its expectations.*{problem}"):
        judged(hand, between("amount", min_value=-9), expectation)


def test_all_that_cannot_be_judged_is_told_at_once(hand):
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


def test_preloading_imports_in_the_background():
    thread = preload()
    thread.join(60)
    assert not thread.is_alive()
