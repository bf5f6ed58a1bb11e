"""Types that Spark 4.2 was measured to infer; tests/run/pipelines/test_source_folders.py asks it again."""

from __future__ import annotations

import pytest

from stagehold.plan.sources.folder_types import common_type

ALONE = {
    "int": ["1", "-1", "+1", "007", "2147483647", "2026", "20260101", "-0"],
    "bigint": ["2147483648", "-9223372036854775808"],
    "decimal(20,0)": ["99999999999999999999"],
    "decimal(6,0)": ["1e5"],
    "decimal(1,0)": ["5."],
    "decimal(3,0)": ["1E+2"],
    "double": [
        "1.5",
        "1e-5",
        "1E400",
        "NaN",
        "-Infinity",
        "1d",
        "1f",
        "1.0D",
        "0x1p3",
        ".5",
        " 1",
        "1 ",
        "1e400000000000",
        "0.0",
    ],
    "date": ["2026-01-01", "2024-02-29"],
    "timestamp": ["2026-01-01 10:00:00", "2026-01-01 10%3A00%3A00", "2026-01-01 10%3A00%3A00.5"],
    "string": [
        *(
            "x",
            "true",
            "inf",
            "1_000",
            "1L",
            "--1",
            "0-0",
            "a%2Fb",
            "2026-1-1",
            "2026-13-45",
            "2026-02-30",
            "12026-01-01",
            "2026-01-01 ",
        ),
        *(
            "2026-01-01T10:00:00",
            "2026-01-01 10%3A00",
            "2026-01-01 10%3A00%3A00.123456",
            "2026-01-01 24%3A00%3A00",
            "00:00",
            "%31",
        ),
    ],
}


@pytest.mark.parametrize(("expected", "value"), [(kind, value) for kind, values in ALONE.items() for value in values])
def test_a_value_has_the_type_that_spark_gives_it(expected, value):
    assert common_type([value]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2147483648"], "bigint"),
        (["1", "1.5"], "double"),
        (["2147483648", "1.5"], "string"),
        (["1", "99999999999999999999"], "decimal(20,0)"),
        (["1", "1e5"], "decimal(10,0)"),
        (["1.5", "99999999999999999999"], "string"),
        (["1", "2026-01-01"], "string"),
        (["2026-01-01", "2026-01-01 10%3A00%3A00"], "timestamp"),
        (["2026-01-01", "x"], "string"),
        (["1", None], "int"),
        ([None, "2026-01-01"], "date"),
        ([None], "string"),
    ],
)
def test_the_type_of_several_fits_all_in_any_order(values, expected):
    assert common_type(values) == common_type(values[::-1]) == expected
