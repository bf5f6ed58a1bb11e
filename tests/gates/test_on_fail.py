"""What follows if an expectation is not met, whoever wrote the suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.gates.suite import RowLimit
from stagehold.gates.suite_files import load_suite

NULLS, MEAN, TYPE = (
    "expect_column_values_to_not_be_null",
    "expect_column_mean_to_be_between",
    "expect_column_values_to_be_of_type",
)


def suite(folder: Path, expectations: list[dict], **fields: object):
    """As Great Expectations would write it, with ours in its place for what others may say."""
    path = folder / "own.json"
    written = [{"kwargs": {"column": "a"}, **one} for one in expectations]
    path.write_text(json.dumps({"name": "own", "expectations": written, **fields}))
    return load_suite(path, folder)


@pytest.mark.parametrize(
    ("fields", "of_suite", "severity", "sets_aside"),
    [
        ({}, None, "critical", False),
        ({"severity": "info"}, None, "info", False),
        ({"on_fail": "block"}, None, "critical", False),
        ({"on_fail": "warn"}, None, "warning", False),
        ({"on_fail": "warn", "severity": "info"}, None, "info", False),
        ({"on_fail": "quarantine"}, None, "warning", True),
        ({"on_fail": "quarantine", "severity": "info"}, None, "info", True),
        ({"on_fail": "quarantine", "severity": "critical"}, None, "critical", True),
        ({}, "warn", "warning", False),
        ({}, "quarantine", "warning", True),
        ({"severity": "critical"}, "quarantine", "critical", False),  # it says for itself what it wants
        ({"on_fail": "block"}, "quarantine", "critical", False),
        ({"on_fail": "quarantine"}, "warn", "warning", True),
        ({"type": MEAN}, "quarantine", "critical", False),  # no row is to blame
        ({"type": TYPE}, "quarantine", "critical", False),
        ({"meta": {"stagehold": {"on_fail": "quarantine"}}}, None, "warning", True),
    ],
)
def test_on_fail_and_severity_say_what_follows(tmp_path, fields, of_suite, severity, sets_aside):
    said = {"on_fail": of_suite} if of_suite else {}
    (one,) = suite(tmp_path, [{"type": NULLS, **fields}], **said).expectations
    assert (one.severity, one.sets_aside) == (severity, sets_aside)


@pytest.mark.parametrize(
    ("limit", "rows", "of_all", "allowed"),
    [
        ("1%", 1, 100, True),
        ("1%", 2, 100, False),
        ("0.5 %", 1, 200, True),
        (3, 3, 3, True),
        ("3", 4, 1000, False),
        (0, 1, 10, False),
        ("100%", 10, 10, True),
    ],
)
def test_a_limit_allows_a_number_of_rows_or_a_share(tmp_path, limit, rows, of_all, allowed):
    found = suite(tmp_path, [{"type": NULLS}], on_fail="quarantine", max_quarantined=limit).max_quarantined
    assert isinstance(found, RowLimit)
    assert found.allows(rows, of_all) is allowed


@pytest.mark.parametrize(
    ("fields", "of_suite", "problem"),
    [
        ({"on_fail": "drop"}, {}, "expectations.0.on_fail: got 'drop'; allowed: block, warn, quarantine"),
        (
            {"on_fail": "block", "severity": "info"},
            {},
            "got block, with the severity info; allowed: block with critical",
        ),
        ({"on_fail": "warn", "severity": "critical"}, {}, "got warn, with the severity critical"),
        ({"type": TYPE, "on_fail": "quarantine"}, {}, "allowed: block or warn: no row is to blame for a type"),
        ({}, {"on_fail": "stop"}, "on_fail: got 'stop'; allowed: block, warn, quarantine"),
        (
            {},
            {"max_quarantined": "few"},
            "max_quarantined: got 'few'; allowed: a number of rows, or a share such as 1%",
        ),
        ({}, {"max_quarantined": -1}, "max_quarantined: got -1"),
        ({}, {"max_quarantined": True}, "max_quarantined: got True"),
    ],
)
def test_a_problem_is_named_with_what_is_allowed(tmp_path, fields, of_suite, problem):
    with pytest.raises(InvalidSpec) as raised:
        suite(tmp_path, [{"type": NULLS, **fields}], **of_suite)
    assert problem in str(raised.value)


def test_only_expectations_that_set_rows_aside_change_what_is_computed(tmp_path):
    plain, other = [{"type": NULLS}], [{"type": NULLS}, {"type": MEAN}]
    aside = [{"type": NULLS, "on_fail": "quarantine"}]
    assert suite(tmp_path, plain).quarantine == suite(tmp_path, other).quarantine == ""
    rules = suite(tmp_path, aside).quarantine
    assert rules
    assert suite(tmp_path, [*aside, {"type": MEAN}]).quarantine == rules
    assert suite(tmp_path, [*aside, {"type": MEAN}]).fingerprint != suite(tmp_path, aside).fingerprint
    assert suite(tmp_path, aside, max_quarantined=1).quarantine != rules
    assert suite(tmp_path, plain).fingerprint != suite(tmp_path, aside).fingerprint


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"scope": "table"}, "scope: got 'table'; allowed: partition, stage"),
        ({"scope": "stage", "on_fail": "quarantine"}, "on_fail: got quarantine, with scope: stage"),
        ({"scope": "stage", "kwargs": {"column": "partition(rows)"}}, "partition(rows), with scope: stage"),
        (
            {"scope": "stage", "type": MEAN, "kwargs": {"column": "a", "min_value": {"$PARAMETER": "previous.rows"}}},
            "min_value: got previous.rows, with scope: stage",
        ),
        ({"meta": {"stagehold": {"scope": "no"}}}, "scope: got 'no'"),
    ],
)
def test_a_fact_of_one_partition_is_refused_in_an_expectation_about_a_stage(tmp_path, fields, problem):
    with pytest.raises(InvalidSpec) as refused:
        suite(tmp_path, [{"type": NULLS, **fields}])
    assert problem in str(refused.value)


def test_a_suite_is_told_apart_by_what_its_expectations_judge(tmp_path):
    of_stage = {"type": MEAN, "meta": {"stagehold": {"scope": "stage"}}}
    own = suite(tmp_path, [{"type": NULLS}, of_stage], on_fail="quarantine")
    assert [one.type for one in own.of_partitions.expectations] == [NULLS]
    assert own.of_stage is not None
    assert [(one.type, one.severity) for one in own.of_stage.expectations] == [(MEAN, "critical")]
    alone = suite(tmp_path, [{"type": NULLS}], on_fail="quarantine")
    assert alone.of_stage is None
    assert alone.fingerprint == own.of_partitions.fingerprint
