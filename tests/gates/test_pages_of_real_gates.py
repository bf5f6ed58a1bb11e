"""What a real gate said becomes pages, and a line on the run page: nothing of it is made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.gates.test_judge import ROWS, judged, of_content, staged, suite
from tests.lake.stagehand import Stagehand

from stagehold.airflow.run_page.verdict_answers import observed_points, stage_verdicts
from stagehold.gates.suite import Expectation, Samples
from stagehold.gates.verdict_pages import render_index, render_page, site_of
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity
from stagehold.model.records import Cell, GateResult

pytestmark = pytest.mark.spark

CELL = Cell("toy", "stage", "2024-01-01")
NUMBERS = {"column": "amount"}
ASKED = (
    Expectation("expect_column_values_to_be_between", {**NUMBERS, "min_value": 0, "mostly": 0.9}),
    Expectation("expect_column_values_to_not_be_null", NUMBERS, Severity.WARNING),
    Expectation("expect_column_mean_to_be_between", {**NUMBERS, "min_value": {"$PARAMETER": "least"}}),
    Expectation("expect_column_values_to_be_unique", {"column": "name"}, Severity.INFO),
    Expectation("expect_column_values_to_match_regex", {"column": "name", "regex": "^[b-z]<?"}),
    Expectation("expect_column_distinct_values_to_be_in_set", {"column": "name", "value_set": ["a", "b"]}),
    Expectation(
        "expect_column_quantile_values_to_be_between",
        {**NUMBERS, "quantile_ranges": {"quantiles": [0.1, 0.5], "value_ranges": [[-9, 9], [None, 9]]}},
    ),
    Expectation("expect_table_row_count_to_be_between", {"min_value": 1, "max_value": 2}),
    Expectation("expect_table_columns_to_match_set", {"column_set": ["name", "colour"]}),
    Expectation("expect_compound_columns_to_be_unique", {"column_list": ["name", "amount"]}),
    Expectation("expect_column_max_to_be_between", {"column": "partition(rows)", "max_value": 2}),
    Expectation(
        "expect_column_values_to_be_in_set",
        {"column": "name", "value_set": ["a"], "row_condition": "amount < 0", "condition_parser": "spark"},
    ),
)


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int")


def recorded(verdicts: tuple[GateVerdict, ...]) -> list[GateResult]:
    now = datetime.now(UTC)
    return [
        GateResult(
            cell=CELL,
            partition=one.partition,
            attempt_id="attempt",
            suite="toy",
            expectation=one.expectation,
            passed=one.passed,
            observed=one.observed,
            recorded_at=now,
            severity=one.severity,
            configuration=one.configuration,
            result=one.result,
        )
        for one in sorted(verdicts, key=lambda one: one.partition)
    ]


def test_every_verdict_is_shown_in_great_expectations_words(hand):
    results = recorded(judged(hand, *ASKED, least=0).verdicts)
    site = site_of("toy", "2024-01-01", {"stage": results}, {})
    assert sum(len(page.partitions) for page in site.pages) == len(ROWS)
    for page in site.pages:
        text = render_page(page, site)
        assert "Told without" not in text
        assert "mean must be greater than or equal to" in text
        assert page.title in render_index(site)
    assert "Sampled Unexpected Values" in "".join(render_page(page, site) for page in site.pages)


def test_the_run_page_shows_the_same_with_samples_and_bounds(hand):
    results = recorded(judged(hand, *ASKED, least=0).verdicts)
    stage = stage_verdicts("stage", "toy", 12, results, {})
    assert [one.expectation for one in stage.expectations] == [str(one) for one in ASKED]
    between = stage.expectations[0].outcomes[0]
    assert (between.outcome, between.partitions, between.samples[0].values) == ("failed", ((4, 4),), ("-2", "-1"))
    assert [one.numeric for one in stage.expectations[:4]] == [False, False, True, False]
    (point,) = observed_points(["2024-01-01"], [one for one in results if one.expectation == str(ASKED[2])])
    assert (point.low, point.high, point.partitions, point.least, point.most) == (1, 4 / 3, 2, 0, None)


def test_private_values_are_on_no_page(hand):
    rows = {0: [("anna-secret", -77), ("bert-secret", 5)]}
    gate = replace(
        suite(
            Expectation("expect_column_values_to_be_between", {**NUMBERS, "min_value": 0}),
            Expectation("expect_column_values_to_match_regex", {"column": "name", "regex": "^b"}),
            Expectation("expect_column_values_to_be_unique", {"column": "name"}),
        ),
        samples=Samples(rows=0),
    )
    results = recorded(of_content(hand, staged(hand, rows), [0], gate).verdicts)
    site = site_of("toy", "2024-01-01", {"stage": results}, {})
    text = render_page(site.pages[0], site)
    assert "1 unexpected values found" in text
    assert "secret" not in text
    assert "-77" not in text
