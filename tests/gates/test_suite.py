"""Suites are read without Great Expectations; what is wrong in one is named with its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.gates.suite import Severity, load_suite, suite_fingerprint
from stagehold.settings import PROJECT

GOOD = """\
suite: toy
expectations:
  - {type: expect_column_values_to_be_between, column: rows, min_value: 1}
  - type: expect_column_values_to_be_between
    column: minimum.total
    min_value: 0
    severity: warning
"""


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "toy.yaml"
        path.write_text(text)
        return path

    return write


def test_a_suite_is_read(written):
    suite = load_suite(written(GOOD))
    assert suite.name == "toy"
    first, second = suite.expectations
    assert (first.severity, second.severity) == (Severity.CRITICAL, Severity.WARNING)
    assert str(second) == "expect_column_values_to_be_between(minimum.total, min_value=0)"


@pytest.mark.parametrize("path", sorted((PROJECT / "include" / "suites").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_suites_of_the_samples_are_valid(path):
    assert load_suite(path).expectations


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "to_be_between, column: rows",
            "to_be_betwen, column: rows",
            ":3: expectations.0.type: got 'expect_column_values_to_be_betwen'",
        ),
        (
            "to_be_between, column: rows",
            "to_be_betwen, column: rows",
            "did you mean expect_column_values_to_be_between?",
        ),
        (
            "severity: warning",
            "severity: fatal",
            ":7: expectations.1.severity: got 'fatal'; allowed: critical, warning, info",
        ),
        ("suite: toy", "suite: 3", ":1: suite: got 3; allowed: the suite's name"),
        ("suite: toy", "sweet: toy", ":1: sweet: got an unknown field; allowed: suite or expectations"),
        ("- type: ", "- kind: ", ":4: expectations.1: got {'kind'"),
        (
            "expectations:",
            "expectations: []\nothers:",
            ":2: expectations: got []; allowed: a list of at least one expectation",
        ),
        ("    min_value: 0", "    min_value: 0\n    min_value: 1", "each name once"),
        (
            "type: expect_column_values_to_be_between\n",
            "type: expect_table_row_count_to_equal\n",
            ":4: expectations.1.type: got 'expect_table_row",
        ),
        ("type: expect_column_values_to_be_between\n", "type: expect_table_row_count_to_equal\n", "column: rows"),
        (
            "type: expect_column_values_to_be_between\n",
            "type: expect_column_sum_to_be_between\n",
            "about each partition",
        ),
        (
            "type: expect_column_values_to_be_between\n",
            "type: expect_column_values_to_be_unique\n",
            "about each partition",
        ),
        (
            "    min_value: 0",
            "    min_value: 0\n    mostly: 0.9",
            ":7: expectations.1.mostly: got 0.9; allowed: nothing",
        ),
    ],
)
def test_problems_name_line_field_and_what_is_allowed(written, before, after, problem):
    with pytest.raises(InvalidSpec) as raised:
        load_suite(written(GOOD.replace(before, after)))
    assert problem in str(raised.value)


def test_all_problems_are_listed(written):
    with pytest.raises(InvalidSpec) as raised:
        load_suite(written(GOOD.replace("severity: warning", "severity: fatal").replace("suite: toy", "suite: 3")))
    assert len(raised.value.problems) == 2


def test_a_file_that_is_not_there_or_empty_is_a_problem_too(tmp_path, written):
    with pytest.raises(InvalidSpec, match=r"gone\.yaml"):
        load_suite(tmp_path / "gone.yaml")
    with pytest.raises(InvalidSpec, match="got nothing"):
        load_suite(written(""))


def test_the_fingerprint_follows_what_the_gate_decides_by(written):
    before = suite_fingerprint(written(GOOD))
    assert (
        suite_fingerprint(written("# why\n" + GOOD.replace("column: rows, min_value: 1", "min_value: 1, column: rows")))
        == before
    )
    assert suite_fingerprint(written(GOOD.replace("min_value: 1", "min_value: 2"))) != before
    assert suite_fingerprint(written(GOOD.replace("warning", "critical"))) != before


def test_reading_a_suite_does_not_import_great_expectations(written):
    code = (
        "from pathlib import Path; from stagehold.gates.suite import load_suite; "
        f"load_suite(Path({str(written(GOOD))!r}))"
    )
    check = "; import sys; assert not {'great_expectations', 'pyspark', 'deltalake', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code + check], check=True)
