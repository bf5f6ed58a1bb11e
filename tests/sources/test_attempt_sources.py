"""What there is to read of a source, and when a split counts as changed. Delta tables are made by delta-rs."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.sources.made_sources import NO_LEDGER, reading_of, source_stage

from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.model.keys.interval_text import IntervalTimes
from stagehold.model.source_position import FolderColumn, MixedColumns, SourceFile
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.source_reading import SourceReading, split_files
from stagehold.spec.settings.source import Source

WEIRD = "a b:c%d/é"


def read(lake, run_id="r1", **fields) -> SourceReading:
    return reading_of(lake, run_id, **{"path": None, "splits": 4, **fields})


def fingerprints(*arguments, **fields):
    return [split.fingerprint for split in read(*arguments, **fields).splits]


@pytest.fixture
def folder(tmp_path):
    for number in range(4):
        (tmp_path / f"part-{number:02}.parquet").write_text(str(number))
    return tmp_path


@pytest.mark.parametrize(
    ("fields", "fingerprint"),
    [
        ({"kind": "parquet"}, "2e3d7af72d469580"),
        (
            {"kind": "csv", "ddl": "a int", "header": True, "delimiter": ";", "options": {"mode": "PERMISSIVE"}},
            "81cef879af483843",
        ),
        ({"kind": "json", "ddl": "infer"}, "8a82d244c2f6097d"),
        ({"kind": "delta"}, "6d5cce0926011eaf"),
    ],
    ids=lambda given: given["kind"] if isinstance(given, dict) else "",
)
def test_fingerprints_are_the_same_in_all_versions(fields, fingerprint):
    """Another text here has everybody's data computed again."""
    file = SourceFile("/lake/raw/day=1/a.parquet", 12, "v1", (("country", "de"), ("city", None)))
    columns, mixed = [FolderColumn("day", "int")], MixedColumns((file.path,), (("a", "bigint"),), ("a",))
    (split,) = split_files(Source(path="/lake/raw", splits=1, **fields), [(file,)], "{}", columns, mixed)
    assert split.fingerprint == fingerprint


def test_files_are_dealt_evenly_and_each_once(folder):
    found = read(folder, path="${lake}/*.parquet", splits=2)
    assert [[Path(file.path).stem[5:] for file in split.files] for split in found.splits] == [
        ["00", "01"],
        ["02", "03"],
    ]
    assert found.sample == str(folder / "part-00.parquet")


def test_a_changed_file_changes_its_split_only(folder):
    before = fingerprints(folder, path="${lake}/*.parquet")
    path = folder / "part-02.parquet"
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    after = fingerprints(folder, path="${lake}/*.parquet")
    assert [left == right for left, right in zip(before, after, strict=True)] == [True, True, False, True]


@pytest.mark.parametrize(
    "change", [{"ddl": "b int"}, {"header": True}, {"delimiter": ";"}, {"options": {"quote": "'"}}]
)
def test_how_rows_are_read_changes_every_split(folder, change):
    fields = {"kind": "csv", "path": "${lake}/*", "ddl": "a int"}
    assert not set(fingerprints(folder, **fields)) & set(fingerprints(folder, **(fields | change)))


def test_a_path_that_matches_nothing_is_an_error_that_names_it(tmp_path):
    with pytest.raises(SourceMissing, match="raw/x"):
        read(tmp_path, path="${lake}/raw/x*.parquet")


def test_a_list_says_which_split_reads_what(folder):
    found = read(folder, splits=[["${lake}/part-03.parquet", "${lake}/part-00.parquet"], "${lake}/part-0[12].parquet"])
    assert [[Path(file.path).stem[5:] for file in split.files] for split in found.splits] == [
        ["03", "00"],
        ["01", "02"],
    ]


@pytest.mark.parametrize(
    "splits", [["${lake}/part-00.parquet", "${lake}/*"], [["${lake}/part-00.parquet", "${lake}/part-0[0].parquet"]]]
)
def test_a_file_that_two_splits_name_would_be_read_twice(folder, splits):
    with pytest.raises(SourceUnusable, match=r"part-00.parquet is named twice"):
        read(folder, splits=splits)


def test_sources_are_listed_once_so_that_what_was_planned_is_read(folder):
    stage = source_stage(path="${lake}/*.parquet", splits=1)
    sources = Sources("p", "2024-01-01", "r1", str(folder), NO_LEDGER)
    before = sources.of(stage)
    (folder / "part-99.parquet").write_text("late")
    assert sources.of(stage) is before


def of_day(folder, day, path, key=None):
    start = datetime.combine(day, time(), UTC)
    times = IntervalTimes(key) if key else IntervalTimes(str(day), start)
    sources = Sources("p", key or str(day), "r", str(folder), NO_LEDGER, times_of=lambda _: times)
    return sources.of(source_stage(path=path, splits=2))


@pytest.mark.parametrize("path", ["${lake}/day=${interval.start:%Y-%m-%d}/*", "${lake}/day=${interval}"])
def test_a_path_that_names_the_interval_reads_what_is_there_for_it_and_nothing_else(tmp_path, path):
    days = [date(2026, 11, number) for number in (24, 25, 26)]
    for day in days[:2]:
        (tmp_path / f"day={day}").mkdir()
        for number in range(3):
            (tmp_path / f"day={day}" / f"part-{number}.parquet").write_text(str(number))
    before = of_day(tmp_path, days[0], path)
    assert sum(len(split.files) for split in before.splits) == 3
    assert {Path(file.path).parent.name for split in before.splits for file in split.files} == {"day=2026-11-24"}
    with pytest.raises(SourceMissing, match="day=2026-11-26"):
        of_day(tmp_path, days[2], path)
    (tmp_path / "day=2026-11-26").mkdir()
    (tmp_path / "day=2026-11-26" / "part-0.parquet").write_text("0")
    (tmp_path / "day=2026-11-25" / "part-3.parquet").write_text("3")
    assert of_day(tmp_path, days[0], path).splits == before.splits
    assert sum(len(split.files) for split in of_day(tmp_path, days[2], path).splits) == 1


def test_splits_may_name_the_interval_too(tmp_path):
    times = IntervalTimes("2026-11-24", datetime(2026, 11, 24, tzinfo=UTC))
    for name in ("a-20261124", "b-20261124", "a-20261125"):
        (tmp_path / f"{name}.parquet").write_text(name)
    sources = Sources("p", "2026-11-24", "r", str(tmp_path), NO_LEDGER, times_of=lambda _: times)
    wanted = ["${lake}/a-${interval.start:%Y%m%d}.parquet", "${lake}/b-${interval.start:%Y%m%d}.parquet"]
    read = sources.of(source_stage(path=None, splits=wanted))
    assert [Path(split.files[0].path).stem for split in read.splits] == ["a-20261124", "b-20261124"]


@pytest.mark.parametrize(
    ("key", "path", "why"),
    [
        ("whole", "${lake}/${interval.start:%Y}", "the interval 'whole' is no date, so it has no start"),
        ("../x", "${lake}/${interval}/*", "the interval '../x' cannot be a part of a path"),
        ("*", "${lake}/${interval}/*", "cannot be a part of a path"),
    ],
)
def test_an_interval_that_cannot_stand_in_the_path_is_refused(tmp_path, key, path, why):
    with pytest.raises(SourceUnusable, match=why):
        of_day(tmp_path, date(2026, 11, 24), path, key)


@pytest.fixture
def table(tmp_path):
    """A table whose versions 0, 1 and 2 each added a file or two."""
    uri = str(tmp_path / "table")
    for number, place in enumerate([WEIRD, "x", None]):
        write_deltalake(
            uri,
            pa.table({"place": pa.array([place], pa.string()), "n": [number]}),
            partition_by=["place"],
            mode="append",
        )
    return uri


def placed(reading):
    return sorted(
        (str(dict(file.partition)["place"]), Path(file.path).exists())
        for split in reading.splits
        for file in split.files
    )


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({}, ["None", WEIRD, "x"]),
        ({"version": 1}, [WEIRD, "x"]),
        ({"from_version": 1}, ["None", "x"]),
        ({"from_version": 1, "to_version": 1}, ["x"]),
    ],
)
def test_a_table_is_read_at_a_version_or_by_what_versions_added(table, tmp_path, fields, places):
    assert placed(read(tmp_path, kind="delta", path=table, **fields)) == [(place, True) for place in places]


def test_files_that_were_only_rewritten_are_not_read_again(table, tmp_path):
    write_deltalake(table, pa.table({"place": ["x"], "n": [4]}), mode="append")
    DeltaTable(table).optimize.compact()
    assert placed(read(tmp_path, kind="delta", path=table, from_version=1)) == [
        ("None", True),
        ("x", True),
        ("x", True),
    ]


def test_removed_rows_are_refused_where_only_added_ones_are_read(table, tmp_path):
    DeltaTable(table).delete("n = 1")
    with pytest.raises(SourceChanged, match=r"version 3 of .* removed or replaced rows"):
        read(tmp_path, kind="delta", path=table, from_version=1)
    ignoring = read(tmp_path, kind="delta", path=table, from_version=1, on_change="ignore")
    assert placed(ignoring) == [("None", True), ("x", True)]
    assert placed(read(tmp_path, kind="delta", path=table)) == [("None", True), (WEIRD, True)]


def test_a_new_version_changes_only_the_splits_whose_files_changed(table, tmp_path):
    before = fingerprints(tmp_path, kind="delta", path=table, splits=1)
    assert fingerprints(tmp_path, kind="delta", path=table, splits=1, version=2) == before
    write_deltalake(table, pa.table({"place": ["x"], "n": [4]}), mode="append")
    assert fingerprints(tmp_path, kind="delta", path=table, splits=1) != before
    assert fingerprints(tmp_path, kind="delta", path=table, splits=1, version=2) == before


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"path": "${lake}/none"}, SourceMissing, "none, as a Delta table"),
        ({"version": 9}, SourceUnusable, "at version 9"),
        ({"from_version": 0, "to_version": 9}, SourceUnusable, "at version 9"),
    ],
)
def test_a_table_or_version_that_is_not_there_is_an_error(table, tmp_path, fields, error, text):
    with pytest.raises(error, match=text):
        read(tmp_path, **({"kind": "delta", "path": table} | fields))


def test_a_version_that_the_log_has_lost_is_an_error(table, tmp_path):
    DeltaTable(table).create_checkpoint()
    Path(table, "_delta_log/00000000000000000000.json").unlink()
    assert len(placed(read(tmp_path, kind="delta", path=table))) == 3
    with pytest.raises(SourceUnusable, match=r"version 0 is not in the log of .*, which begins with 1"):
        read(tmp_path, kind="delta", path=table, from_version=0)


def test_what_is_said_of_columns_in_another_order_makes_no_other_split(tmp_path):
    said = {b"comment": b"a", b"unit": b"b", b"owner": b"c", b"place": b"d"}
    table = pa.table({"n": [1]}, pa.schema([pa.field("n", pa.int64(), metadata=said)]))
    write_deltalake(str(tmp_path / "table"), table)
    found = {read(tmp_path, kind="delta", path=str(tmp_path / "table")).splits[0].fingerprint for _ in range(9)}
    assert len(found) == 1


def test_a_table_whose_files_do_not_tell_its_rows_is_refused(tmp_path):
    """In a table that is mapped by ids, as one that was Iceberg's may be, files may have any names for its columns."""
    uri = str(tmp_path / "table")
    write_deltalake(uri, pa.table({"n": [1]}))
    log = Path(uri, "_delta_log/00000000000000000000.json")
    log.write_text(log.read_text().replace('"configuration":{', '"configuration":{"delta.columnMapping.mode":"id"'))
    with pytest.raises(SourceUnusable, match=r"has the features delta\.columnMapping\.mode=id"):
        read(tmp_path, kind="delta", path=uri)


DATABASE = {"kind": "jdbc", "url": "jdbc:derby:/x", "table": "t"}


def test_a_database_is_cut_by_the_range_of_a_column_or_by_conditions(tmp_path):
    ranged = read(tmp_path, **DATABASE, column="id", lower=0, upper=100, splits=2)
    assert [split.condition for split in ranged.splits] == ["id < 50 or id is null", "id >= 50"]
    listed = read(tmp_path, **DATABASE, splits=["a = 1", ["a = 2", "b = 3"]])
    assert [split.condition for split in listed.splits] == ["(a = 1)", "(a = 2) and (b = 3)"]
    assert [split.condition for split in read(tmp_path, **DATABASE, splits=1).splits] == ["1 = 1"]


def test_a_database_is_read_again_by_a_new_run_only_when_asked_to(tmp_path):
    once = {**DATABASE, "column": "id", "lower": 0, "upper": 100, "splits": 2}
    assert fingerprints(tmp_path, "r1", **once) == fingerprints(tmp_path, "r2", **once)
    assert fingerprints(tmp_path, "r1", **once) != fingerprints(tmp_path, "r1", **(once | {"table": "other"}))
    always = once | {"reread": "run"}
    assert fingerprints(tmp_path, "r1", **always) == fingerprints(tmp_path, "r1", **always)
    assert not set(fingerprints(tmp_path, "r1", **always)) & set(fingerprints(tmp_path, "r2", **always))
