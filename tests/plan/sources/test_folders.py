"""Which columns the folders of a source give."""

from __future__ import annotations

import pytest

from stagehold.model.source_position import FolderColumn
from stagehold.plan.sources.folders import MixedFolders, common_type, folder_columns, root_of

LAKE = "/home/a=b/lake"


def columns(*paths: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in folder_columns([f"{LAKE}/{path}" for path in paths], LAKE)]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], []),
        (["raw/a", "raw/b"], []),
        (["raw/day=2026-01-01/a", "raw/day=2026-01-02/a"], [("day", "date")]),
        (["raw/day=1/a", "raw/day=x/a"], [("day", "string")]),
        (["raw/day=__HIVE_DEFAULT_PARTITION__/a", "raw/day=1/a"], [("day", "int")]),
        (["raw/year=2026/month=01/a", "raw/year=2026/month=12/b"], [("year", "int"), ("month", "int")]),
        (["raw/day=1/part/a", "raw/day=2/b"], [("day", "int")]),
        (["x/day=1/a", "y/day=2/b"], [("day", "int")]),
        (["raw/the%20day=1/a"], [("the day", "int")]),
        (["raw/a=b=c/a"], [("a", "string")]),
        (["env=test/raw/day=1/a", "env=test/raw/day=2/a"], [("day", "int")]),
    ],
)
def test_folders_give_columns(paths, expected):
    assert columns(*paths) == expected


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (
            ["raw/a", "raw/day=1/b"],
            f"the folders of {LAKE}/raw/a give no columns, and the folders of {LAKE}/raw/day=1/b give day",
        ),
        (["raw/day=1/a", "raw/day=1/hour=2/b"], "give day, hour"),
        (["raw/day=1/hour=2/a", "raw/hour=2/day=1/b"], "give hour, day"),
        (["raw/day=1/a", "raw/Day=1/b"], "give Day"),
        (["env=test/raw/day=1/a", "env=live/raw/day=2/a"], "between env=live and day= is a folder without a column"),
        (["raw/day=/a"], "no value beside its ="),
        (["raw/=1/a"], "no name or no value"),
        (["raw/day=1/Day=2/a"], "two folders of"),
    ],
)
def test_folders_that_do_not_agree_are_refused(paths, said):
    with pytest.raises(MixedFolders) as refused:
        columns(*paths)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("path", "levels", "root"),
    [
        ("/lake/raw/day=1/a", 1, "/lake/raw"),
        ("/x=1/lake/raw/day=1/part/a", 1, "/x=1/lake/raw"),
        ("s3://bucket/year=1/month=2/a", 2, "s3://bucket"),
        ("/x=1/y=2/a", 1, "/x=1"),
    ],
)
def test_the_root_is_above_the_folders_that_give_columns(path, levels, root):
    assert root_of(path, levels) == root


def test_folders_of_an_address_outside_the_lake_count_from_its_root():
    assert folder_columns(["/mnt/env=test/a.csv"], LAKE) == (FolderColumn("env", "string"),)


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
