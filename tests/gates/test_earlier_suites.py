"""Suites that Great Expectations 0.x wrote, as projects have them in their repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.gates.suite_files import find_suite, load_suite

ABOUT_TAXIS = {
    "data_asset_type": "Dataset",
    "expectation_suite_name": "taxi.demo",
    "evaluation_parameters": {},
    "expectations": [
        {
            "expectation_context": {"description": None},
            "expectation_type": "expect_table_row_count_to_be_between",
            "ge_cloud_id": None,
            "kwargs": {"max_value": 10000, "min_value": 10000},
            "meta": {},
        },
        {
            "expectation_type": "expect_column_values_to_be_between",
            "kwargs": {
                "allow_cross_type_comparisons": None,
                "auto": False,
                "column": "passenger_count",
                "max_value": 6,
                "min_value": 1,
                "mostly": 0.95,
                "parse_strings_as_datetimes": False,
                "profiler_config": None,
            },
            "meta": {"stagehold": {"on_fail": "quarantine"}},
        },
    ],
    "ge_cloud_id": None,
    "meta": {"great_expectations_version": "0.15.2", "citations": []},
}


def write(file: Path, suite: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(suite, indent=2))
    return file


def test_a_suite_of_an_earlier_great_expectations_is_read_in_todays_words(tmp_path):
    write(tmp_path / "great_expectations" / "expectations" / "taxi" / "demo.json", ABOUT_TAXIS)
    suite = find_suite("great_expectations/taxi/demo", tmp_path / "suites", tmp_path)
    assert suite.name == "taxi.demo"
    count, between = suite.expectations
    assert str(count) == "expect_table_row_count_to_be_between(max_value=10000, min_value=10000)"
    assert dict(between.kwargs) == {"column": "passenger_count", "max_value": 6, "min_value": 1, "mostly": 0.95}
    assert between.sets_aside
    assert suite.place(between).endswith("demo.json:18")


def test_a_word_of_0x_in_a_suite_of_ones_own_is_read_too(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "suite: own\nexpectations:\n  - {expectation_type: expect_column_to_exist, column: id}\n"
        "  - {type: expect_column_to_exist, column: day}\n"
    )
    assert [each.columns for each in load_suite(tmp_path / "own.yaml", tmp_path).expectations] == [("id",), ("day",)]


@pytest.mark.parametrize(
    ("expectation", "line", "text"),
    [
        (
            {"expectation_type": "expect_column_max_to_be_between", "kwargs": {"parse_strings_as_datetimes": True}},
            *(7, "expectations.0.kwargs.parse_strings_as_datetimes: got True; allowed: no such argument since"),
        ),
        ({"expectation_type": "expect_nothing_at_all"}, 5, "expectations.0.type: got 'expect_nothing_at_all'"),
        ({"expectation_type": 7}, 4, "fields of one expectation, of which `type` is one"),
        (["expectation_type"], 4, "fields of one expectation"),
    ],
)
def test_what_is_gone_since_0x_is_told_with_its_line_and_what_to_write(tmp_path, expectation, line, text):
    path = write(tmp_path / "old.json", {"expectation_suite_name": "old", "expectations": [expectation]})
    with pytest.raises(InvalidSpec) as refused:
        load_suite(path, tmp_path)
    assert text in str(refused.value)
    assert f"old.json:{line}:" in str(refused.value)
