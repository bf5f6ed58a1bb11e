"""What real Great Expectations says about metrics.
It takes seconds to import, so these are not among the fast tests.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from stagehold.errors import GateErrored
from stagehold.gates.judge import judge, judged_columns, preload
from stagehold.gates.suite import Expectation, Severity, Suite, judges_one_partition
from stagehold.lake.measure import ColumnMetrics, PartitionMetrics

pytestmark = pytest.mark.spark

BETWEEN = "expect_column_values_to_be_between"
BIG = 2**53 + 1  # no float has this value
NOON = datetime.fromisoformat("2026-01-01T12:00:00")  # as YAML gives a time, and Spark a timestamp without zone


def suite(*expectations: Expectation) -> Suite:
    return Suite("toy", expectations)


def between(column: str, severity: Severity = Severity.CRITICAL, **limits: object) -> Expectation:
    return Expectation(BETWEEN, {"column": column, **limits}, severity)


def partition(number: int, rows: int = 3, **minimum_and_maximum: object) -> PartitionMetrics:
    """Metrics whose columns have one value each: it is both minimum and maximum."""
    columns = tuple(ColumnMetrics(name, 0, value, value) for name, value in minimum_and_maximum.items())
    return PartitionMetrics(number, rows, "fingerprint", columns)


def failed(*metrics: PartitionMetrics, by: Expectation) -> list[int]:
    return [verdict.partition for verdict in judge(metrics, suite(by)) if not verdict.passed]


def test_every_partition_gets_a_verdict_of_every_expectation_with_the_value_it_saw():
    verdicts = judge(
        [partition(4, amount=7), partition(9, rows=0, amount=-1)],
        suite(between("minimum.amount", min_value=0), between("rows", Severity.WARNING, min_value=1)),
    )
    assert [(one.partition, one.passed, one.observed, one.severity) for one in verdicts] == [
        (4, True, "7", Severity.CRITICAL),
        (9, False, "-1", Severity.CRITICAL),
        (4, True, "3", Severity.WARNING),
        (9, False, "0", Severity.WARNING),
    ]
    assert verdicts[0].expectation == f"{BETWEEN}(minimum.amount, min_value=0)"


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [
        (1, 3, {"max_value": 2}),
        (Decimal("100.10"), Decimal("100.11"), {"max_value": 100.1}),
        (0.5, 1.5, {"max_value": 1}),
        (date(2026, 1, 1), date(2026, 1, 2), {"max_value": date(2026, 1, 1)}),
        (date(2026, 1, 1), date(2026, 1, 2), {"max_value": "2026-01-01"}),
        (date(2026, 1, 1), date(9999, 12, 31), {"max_value": date(2026, 1, 1)}),
        (
            datetime(2026, 1, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 1, 2, tzinfo=UTC),
            {"max_value": datetime(2026, 1, 1, 1, tzinfo=UTC)},
        ),
        (NOON, NOON.replace(hour=13), {"max_value": NOON}),
        (NOON, NOON.replace(hour=13), {"max_value": "2026-01-01 12:00:00"}),
    ],
)
def test_values_of_every_type_are_compared_with_the_limits_of_a_file(low, high, limits):
    empty = PartitionMetrics(2, 0, "", (ColumnMetrics("amount", 0),))
    assert failed(
        partition(0, amount=low), partition(1, amount=high), empty, by=between("maximum.amount", **limits)
    ) == [1]


def test_whole_numbers_keep_their_digits_when_another_partition_has_none():
    empty = PartitionMetrics(1, 0, "", (ColumnMetrics("amount", 0),))
    assert [
        one.observed for one in judge([partition(0, amount=BIG), empty], suite(between("maximum.amount", min_value=1)))
    ] == [
        str(BIG),
        "None",
    ]


def test_texts_are_compared_too():
    allowed = Expectation("expect_column_values_to_be_in_set", {"column": "minimum.name", "value_set": ["a", "b"]})
    assert failed(partition(0, name="a"), partition(1, name="c"), by=allowed) == [1]


ROW_BY_ROW = [
    between("rows", max_value=1),
    Expectation("expect_column_values_to_be_in_set", {"column": "rows", "value_set": [0, 1]}),
    Expectation(
        "expect_column_pair_values_a_to_be_greater_than_b",
        {"column_A": "minimum.amount", "column_B": "rows", "or_equal": True},
    ),
    Expectation("expect_multicolumn_sum_to_equal", {"column_list": ["rows", "minimum.amount"], "sum_total": 3}),
    Expectation("expect_select_column_values_to_be_unique_within_record", {"column_list": ["rows", "minimum.amount"]}),
]


@pytest.mark.parametrize("expectation", ROW_BY_ROW, ids=lambda one: one.type)
def test_a_partition_gets_the_same_verdict_whichever_others_are_in_its_wave(expectation):
    metrics = [partition(number, rows=number, amount=amount) for number, amount in enumerate((3, 2, 1, 3))]
    together = failed(*metrics, by=expectation)
    assert together == [one.partition for one in metrics if failed(one, by=expectation)]
    assert 0 < len(together) < len(metrics)
    assert judges_one_partition(expectation.type)


def test_not_a_number_is_within_no_limits():
    assert failed(
        partition(0, amount=1.0), partition(1, amount=float("nan")), by=between("maximum.amount", min_value=0)
    ) == [1]


def test_a_metric_that_was_not_measured_is_an_error_unless_there_was_nothing_to_measure():
    flag = PartitionMetrics(0, 3, "", (ColumnMetrics("flag", 1),))
    with pytest.raises(GateErrored, match=r"minimum\.flag of partition 0 was not measured"):
        judge([flag], suite(between("minimum.flag", min_value=0)))
    nulls = PartitionMetrics(1, 3, "", (ColumnMetrics("flag", 3),))
    assert failed(nulls, by=between("minimum.flag", min_value=0)) == []


def test_an_unknown_metric_is_no_verdict_but_an_error_that_lists_the_known_ones():
    with pytest.raises(
        GateErrored,
        match=r"there is no metric minimum\.amont\. Allowed: partition, rows, " r"nulls\.amount, minimum\.amount",
    ):
        judge([partition(0, amount=1)], suite(between("rows", min_value=1), between("minimum.amont", min_value=0)))


@pytest.mark.parametrize(
    ("expectation", "reason"),
    [
        (between("rows", min_valeu=1), "min_valeu: extra fields not permitted"),
        (between("minimum.amount", min_value="many"), "minimum.amount, min_value=many"),
        (Expectation(BETWEEN, {"min_value": 1}), "column: field required"),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_names_the_expectation(expectation, reason):
    with pytest.raises(GateErrored, match="Suite toy could not judge") as raised:
        judge([partition(0, amount=1)], suite(between("rows", min_value=0), expectation))
    assert reason in str(raised.value)


def test_results_are_matched_with_their_expectations_when_metrics_are_missing():
    exists = Expectation("expect_column_to_exist", {"column": "minimum.gone"})
    verdicts = judge(
        [partition(0, amount=1)], suite(exists, between("rows", min_value=0), between("minimum.amount", max_value=0))
    )
    assert [one.passed for one in verdicts] == [False, True, False]


def test_no_partitions_need_no_judge():
    assert judge([], suite(between("rows", min_value=1))) == ()


def test_preloading_imports_in_the_background():
    thread = preload()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("expectations", "columns"),
    [
        ([between("rows", min_value=1)], set()),
        ([between("rows", min_value=1), between("nulls.a", max_value=0)], {"a"}),
        ([between("maximum.a.b", max_value=0)], {"a.b"}),
        (
            [Expectation("expect_column_pair_values_to_be_equal", {"column_A": "nulls.a", "column_B": "total.c"})],
            {"a", "c"},
        ),
        ([between("minimum.amont", min_value=0)], {"a", "a.b", "c"}),
    ],
)
def test_columns_that_a_suite_does_not_name_need_no_metrics(expectations, columns):
    assert judged_columns(suite(*expectations), ["a", "a.b", "c"]) == columns
