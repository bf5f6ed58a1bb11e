"""Suites are read without Great Expectations; what is wrong in one is named with its line."""

from __future__ import annotations

import compileall
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.unseen_edits import edit_unseen

from stagehold.errors import InvalidSpec
from stagehold.gates.suite import Expectation, Samples
from stagehold.gates.suite_files import expectation_types, find_suite, load_suite
from stagehold.model.choices import Severity
from stagehold.settings import PROJECT

GOOD = """\
suite: toy
expectations:
  - {type: expect_column_values_to_be_between, column: amount, min_value: 1}
  - type: expect_column_values_to_be_between
    column: total
    min_value: 0
    severity: warning
"""


@pytest.fixture
def read(tmp_path):
    return partial(load_suite, project=tmp_path)


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "toy.yaml"
        path.write_text(text)
        return path

    return write


def test_a_suite_is_read(written, read):
    suite = read(written(GOOD))
    assert suite.name == "toy"
    first, second = suite.expectations
    assert (first.severity, second.severity) == (Severity.CRITICAL, Severity.WARNING)
    assert str(second) == "expect_column_values_to_be_between(total, min_value=0)"
    assert suite.samples == Samples(rows=20)
    assert read(written(f"samples: off\n{GOOD}")).samples == Samples(rows=0)


@pytest.mark.parametrize(
    ("given", "samples"),
    [
        ("on", Samples()),
        ("{keys: [o_orderkey]}", Samples(keys=("o_orderkey",))),
        ("{mask: [email, person.phone], rows: off}", Samples(rows=0, mask=("email", "person.phone"))),
        ("{keys: [a, b], mask: [c], rows: 3}", Samples(3, ("a", "b"), ("c",))),
        ("{}", Samples()),
    ],
)
def test_samples_are_a_switch_or_fields(written, read, given, samples):
    suite = read(written(f"samples: {given}\n{GOOD}"))
    assert suite.samples == samples
    assert suite.place_of_samples.endswith(":1")
    assert suite.fingerprint == read(written(GOOD)).fingerprint


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{key: [a]}", ":1: samples.key: got an unknown field; allowed: keys, mask, rows"),
        ("{keys: a}", ":1: samples.keys: got 'a'; allowed: a list of names of columns"),
        ("{mask: [1]}", ":1: samples.mask: got [1]; allowed: a list of names of columns"),
        ("{rows: 21}", ":1: samples.rows: got 21; allowed: off, or a number of rows from 1 to 20"),
        ("{rows: -1}", ":1: samples.rows: got -1; allowed: off, or a number of rows from 1 to 20"),
        ("{rows: all}", ":1: samples.rows: got 'all'; allowed: off, or a number of rows from 1 to 20"),
        ("{keys: [a], rows: off}", ":1: samples.keys: got keys, with rows: off; allowed: keys with some rows"),
        ("{keys: [a, Email], mask: [email]}", ":1: samples.keys: got 'Email', which is masked; allowed: columns that"),
        ("{keys: [person], mask: [person.email]}", ":1: samples.keys: got 'person', which is masked"),
        ("{keys: [person.name], mask: [person]}", ":1: samples.keys: got 'person.name', which is masked"),
        ("[a]", ":1: samples: got ['a']; allowed: on, off, or fields: keys, mask, rows"),
    ],
)
def test_a_wrong_field_of_samples_is_refused_by_its_place(written, given, problem, read):
    with pytest.raises(InvalidSpec, match=re.escape(problem)):
        read(written(f"samples: {given}\n{GOOD}"))


@pytest.mark.parametrize(
    ("kind", "kwargs", "hidden"),
    [
        ("expect_column_values_to_not_be_null", {"column": "Email"}, ("email",)),
        ("expect_column_values_to_not_be_null", {"column": "email_sent"}, ()),
        ("expect_column_values_to_not_be_null", {"column": "person"}, ("person.phone",)),
        ("expect_column_values_to_not_be_null", {"column": "person.name"}, ()),
        ("expect_column_pair_values_to_be_equal", {"column_A": "a", "column_B": "email"}, ("email",)),
        ("expect_compound_columns_to_be_unique", {"column_list": ["a", "email"]}, ("email",)),
        ("expect_column_values_to_be_unique", {"column": "a", "row_condition": "email IS NULL"}, ("email",)),
        ("expect_column_max_to_be_between", {"column": "a"}, ()),
        ("expect_table_row_count_to_be_between", {"min_value": 1}, ()),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch}"}, ("email", "person.phone")),
        ("expect_column_mean_to_be_between", {"column": "partition(rows)"}, ()),
    ],
)
def test_an_expectation_that_names_a_masked_column_may_have_its_values(kind, kwargs, hidden):
    assert Samples(mask=("email", "person.phone")).hides(Expectation(kind, kwargs)) == hidden


@pytest.mark.parametrize("path", sorted((PROJECT / "include" / "suites").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_suites_of_the_samples_are_valid(path, read):
    assert read(path).expectations


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "to_be_between, column: amount",
            "to_be_betwen, column: amount",
            ":3: expectations.0.type: got 'expect_column_values_to_be_betwen'",
        ),
        (
            "to_be_between, column: amount",
            "to_be_betwen, column: amount",
            "did you mean expect_column_values_to_be_between?",
        ),
        (
            "severity: warning",
            "severity: fatal",
            ":7: expectations.1.severity: got 'fatal'; allowed: critical, warning, info",
        ),
        ("suite: toy", "suite: 3", ":1: suite: got 3; allowed: the suite's name"),
        ("suite: toy", "suite: toy\nsamples: few", ":2: samples: got 'few'; allowed: on, off, or fields"),
        (
            "suite: toy",
            "sweet: toy",
            ":1: sweet: got an unknown field; allowed: suite, expectations, on_fail, max_quarantined, modules, samples",
        ),
        ("- type: ", "- kind: ", ":4: expectations.1: got {'kind'"),
        (
            "expectations:",
            "expectations: []\nothers:",
            ":2: expectations: got []; allowed: a list of at least one expectation",
        ),
        ("    min_value: 0", "    min_value: 0\n    min_value: 1", "each name once"),
        (
            "column: total",
            "column: partition(row)",
            ":4: expectations.1: got 'partition(row)'; allowed: a column, or one of partition(rows), partition(bytes)",
        ),
        ("    min_value: 0", "    kwargs: 3", ":6: expectations.1.kwargs: got 3; allowed: a mapping of arguments"),
        (
            "    column: total\n    min_value: 0",
            "    column: partition(rows)\n    min_value: {$PARAMETER: 2 * previous.row}",
            ":6: expectations.1.min_value: got 'previous.row'; allowed: previous.rows, previous.bytes, "
            "previous.seconds, previous.mean_rows, previous.mean_bytes, previous.mean_seconds, previous.min_rows, ",
        ),
        (
            "    column: total\n    min_value: 0",
            "    kwargs:\n      column: partition(rows)\n      max_value: {$PARAMETER: previous.rows.mean}",
            ":7: expectations.1.kwargs.max_value: got 'previous.rows.mean'; allowed: previous.rows, ",
        ),
        (
            "    min_value: 0",
            "    min_value: {$PARAMETER: previous.rows}",
            ":6: expectations.1.min_value: got previous.rows as min_value of expect_column_values_to_be_between; "
            "allowed: previous.rows in an expectation about partition(rows), partition(bytes), partition(seconds); "
            "or as min_value, max_value, value of expect_column_max_to_be_between, ",
        ),
        (
            "column: amount, min_value: 1",
            "column: amount, mostly: {$PARAMETER: previous.rows}",
            ":3: expectations.0.mostly: got previous.rows as mostly of ",
        ),
    ],
)
def test_problems_name_line_field_and_what_is_allowed(written, before, after, problem, read):
    with pytest.raises(InvalidSpec) as raised:
        read(written(GOOD.replace(before, after)))
    assert problem in str(raised.value)


def test_figures_of_earlier_intervals_may_be_named_where_they_cost_no_more_queries(written, read):
    suite = read(
        written(
            "suite: toy\nexpectations:\n"
            "  - {type: expect_column_values_to_be_between, column: partition(rows), min_value: {$PARAMETER: "
            "previous.rows * low - previous.min_rows}, max_value: {$PARAMETER: previous.rows}, mostly: 1}\n"
            "  - {type: expect_table_row_count_to_equal, value: {$PARAMETER: previous.rows}}\n"
            "  - {type: expect_column_max_to_be_between, column: amount, max_value: {$PARAMETER: previous_rows}}\n"
        )
    )
    assert [one.earlier_figures for one in suite.expectations] == [
        ("previous.rows", "previous.min_rows"),
        ("previous.rows",),
        (),
    ]
    assert suite.compares
    assert not read(written(GOOD)).compares
    assert str(suite.expectations[1]) == "expect_table_row_count_to_equal(value=previous.rows)"


def test_a_suite_has_at_most_a_thousand_expectations(written, read):
    one = "  - {type: expect_table_row_count_to_equal, value: 1}\n"
    assert len(read(written("suite: long\nexpectations:\n" + 1000 * one)).expectations) == 1000
    with pytest.raises(InvalidSpec, match="got 1001 expectations; allowed: at most 1000"):
        read(written("suite: long\nexpectations:\n" + 1001 * one))


def test_all_problems_are_listed(written, read):
    with pytest.raises(InvalidSpec) as raised:
        read(written(GOOD.replace("severity: warning", "severity: fatal").replace("suite: toy", "suite: 3")))
    assert len(raised.value.problems) == 2


def test_a_missing_or_empty_file_is_a_problem(tmp_path, written, read):
    with pytest.raises(InvalidSpec, match=r"gone\.yaml"):
        read(tmp_path / "gone.yaml")
    with pytest.raises(InvalidSpec, match="got nothing"):
        read(written(""))


def test_fingerprints_are_the_same_in_all_versions(written, read):
    """Another text here has everybody's partitions judged again, or computed, where rows are set aside."""
    assert read(written(GOOD)).fingerprint == "4f3df7f4fedfcec9"
    aside = read(written(GOOD + "on_fail: quarantine\nmax_quarantined: 1%\n"))
    assert (aside.fingerprint, aside.quarantine) == ("31a2b10b612a0e54", "329de118edc5ae0b")


def test_the_fingerprint_follows_what_the_gate_decides_by(written, read):
    def fingerprint(text: str) -> str:
        return read(written(text)).fingerprint

    before, turned = fingerprint(GOOD), GOOD.replace("column: amount, min_value: 1", "min_value: 1, column: amount")
    assert fingerprint("# why\n" + turned) == before
    assert fingerprint(GOOD.replace("min_value: 1", "min_value: 2")) != before
    assert fingerprint(GOOD.replace("warning", "critical")) != before


THEIRS = {
    "name": "orders",
    "id": "5f6c2f5e-0000-4000-8000-000000000000",
    "notes": None,
    "meta": {"great_expectations_version": "1.24.1"},
    "expectations": [
        {
            "type": "expect_column_values_to_match_regex",
            "id": "5f6c2f5e-0000-4000-8000-000000000001",
            "kwargs": {"column": "email", "regex": "@", "mostly": 0.99, "batch_id": "x", "result_format": "BASIC"},
            "meta": {"owner": "ann"},
            "severity": "warning",
        },
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}, "meta": {}},
    ],
}


def test_a_suite_that_great_expectations_wrote_is_read_as_it_is(tmp_path, read):
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(THEIRS, indent=2))
    suite = read(path)
    first, second = suite.expectations
    assert suite.name == "orders"
    assert dict(first.kwargs) == {"column": "email", "regex": "@", "mostly": 0.99}
    assert (first.severity, second.severity) == (Severity.WARNING, Severity.CRITICAL)
    assert suite.place(second) == f"{path}:24"


def test_a_gate_is_a_file_of_the_suites_or_a_suite_of_a_project_folder(tmp_path, written):
    suites, project = tmp_path, tmp_path / "project"
    written(GOOD)
    (suites / "plain.json").write_text(json.dumps({**THEIRS, "name": "plain"}))
    (project / "gx" / "expectations").mkdir(parents=True)
    (project / "gx" / "expectations" / "orders.json").write_text(json.dumps(THEIRS))
    assert [find_suite(gate, suites, project).name for gate in ("toy", "plain", "gx/orders")] == [
        *("toy", "plain", "orders"),
    ]
    with pytest.raises(InvalidSpec, match=r"nothing\.yaml"):
        find_suite("nothing", suites, project)


def test_reading_a_suite_does_not_import_great_expectations(written):
    code = (
        "from pathlib import Path; from stagehold.gates.suite_files import load_suite; "
        f"load_suite(Path({str(written(GOOD))!r}), Path())"
    )
    check = "; import sys; assert not {'great_expectations', 'pyspark', 'deltalake', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code + check], check=True)


def test_the_documentation_says_of_every_expectation_how_it_is_asked():
    text = (PROJECT / "docs" / "reference" / "expectations.md").read_text()
    assert tuple(re.findall(r"^\| `(\w*expect\w*)` \| .+ \|$", text, re.MULTILINE)) == expectation_types()


PYTHON = """\
import great_expectations as gx
import great_expectations.expectations as gxe

LIMIT = 3


class ExpectEvenColumn(gxe.ExpectColumnSumToBeBetween):
    description = "made here"


def orders():
    print("imported")
    return gx.ExpectationSuite(name="orders", expectations=[gxe.ExpectTableRowCountToBeBetween(min_value=LIMIT)])
"""


@pytest.mark.slow
def test_a_suite_of_python_is_what_its_code_makes(tmp_path):
    (tmp_path / "checks.py").write_text(PYTHON)
    suite = find_suite("checks:orders", tmp_path, tmp_path)
    (expectation,) = suite.expectations
    assert (suite.name, str(expectation)) == ("orders", "expect_table_row_count_to_be_between(min_value=3)")
    assert suite.modules == ("checks",)
    compileall.compile_file(tmp_path / "checks.py", quiet=2)
    edit_unseen(tmp_path / "checks.py", "LIMIT = 3", "LIMIT = 4")
    changed = find_suite("checks:orders", tmp_path, tmp_path)
    assert dict(changed.expectations[0].kwargs) == {"min_value": 4}
    assert changed.fingerprint != suite.fingerprint
    (tmp_path / "src").mkdir()
    (tmp_path / "checks.py").rename(tmp_path / "src" / "checks.py")
    assert find_suite("checks:orders", tmp_path, tmp_path) == changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "problem"),
    [("def orders(): raise ValueError('no')", "ValueError: no"), ("others = 1", "has no attribute 'orders'")],
)
def test_python_that_makes_no_suite_is_an_error_of_the_suite(tmp_path, code, problem):
    (tmp_path / "checks.py").write_text(code)
    with pytest.raises(InvalidSpec, match=problem):
        find_suite("checks:orders", tmp_path, tmp_path)


def test_expectations_of_the_projects_modules_are_accepted_unseen(written, read, tmp_path):
    (tmp_path / "checks.py").write_text(PYTHON)
    text = GOOD.replace("suite: toy", "suite: toy\nmodules: [checks]").replace("values_to_be_between, c", "of_mine, c")
    suite = read(written(text))
    assert (suite.modules, suite.expectations[0].type) == (("checks",), "expect_column_of_mine")
    (tmp_path / "checks.py").write_text(PYTHON + "\n")
    assert read(written(text)).fingerprint != suite.fingerprint
    changed = read(written(text)).fingerprint
    os.utime(tmp_path / "checks.py", (1, 1))
    assert read(written(text)).fingerprint == changed, "a fresh checkout has other times"
    with pytest.raises(InvalidSpec, match="a list of modules of the project"):
        read(written(text.replace("[checks]", "checks")))
    with pytest.raises(InvalidSpec, match=r":2: modules: got 'chekcs'; allowed: under .* or its src/"):
        read(written(text.replace("[checks]", "[chekcs]")))
