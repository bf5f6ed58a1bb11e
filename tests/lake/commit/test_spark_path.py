"""A wave's way through Spark: staged, measured, published, read at its version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.lake.stagehand import Stagehand

from stagehold.errors import StageContractBroken
from stagehold.lake.available import missing_data
from stagehold.lake.commit.staging import StagedWave, WaveFiles, stage_frame
from stagehold.lake.measure import measure
from stagehold.lake.read import united
from stagehold.lake.store.files import files_at
from stagehold.model.records import DataFile
from stagehold.spark.server.server_record import read_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

A, B, C = ("a", 1), ("b", 2), ("c", 3)


@pytest.fixture(params=["hand", "shared"])
def table(request: pytest.FixtureRequest) -> Stagehand:
    return request.getfixturevalue(request.param)


def vacuum_everything(table: Stagehand) -> None:
    """Both ways in which others may clean a table, as harsh as they can be."""
    with_checks = "spark.databricks.delta.retentionDurationCheck.enabled"
    table.spark.conf.set(with_checks, "false")
    table.spark.sql(f"VACUUM delta.`{table.location.uri}` RETAIN 0 HOURS")
    table.spark.conf.unset(with_checks)
    DeltaTable(table.location.uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)


# Staging


def test_each_partition_is_one_file_sorted_as_its_readers_prune(hand):
    frame = hand.spark.range(4000).selectExpr(
        "id", "cast(pmod(id, 4) * 3 as int) as _partition", "cast(pmod(hash(id), 128) as int) as _group_128"
    )
    staged = stage_frame(frame.repartition(8), WaveFiles(hand.location, "attempt", 1, (0, 3, 6, 9), ("_group_128",)))
    assert {partition: len(files) for partition, files in staged.files.items()} == {0: 1, 3: 1, 6: 1, 9: 1}
    for (file,) in staged.files.values():
        groups = pq.read_table(Path(hand.location.uri) / file.path)["_group_128"].to_pylist()
        assert groups == sorted(groups)
        assert (file.rows, file.bytes) == (1000, (Path(hand.location.uri) / file.path).stat().st_size)


def test_to_write_files_of_a_folder_starts_no_programs(hand, spark_settings, tmp_path):
    """Hadoop's own class starts `chmod` four times for each file. The lake may be reached through a link."""

    def children() -> int:
        """Processor time, in hundredths of a second, of programs that the server started and that have ended."""
        state = read_state(spark_settings)
        assert state is not None
        return sum(map(int, Path(f"/proc/{state.pid}/stat").read_text().rpartition(")")[2].split()[13:15]))

    Path(hand.location.uri).mkdir(parents=True, exist_ok=True)
    (tmp_path / "linked").symlink_to(hand.location.uri, target_is_directory=True)
    linked, frame = replace(hand.location, uri=str(tmp_path / "linked")), hand.spark.range(64).selectExpr("id")
    frame = frame.withColumn("_partition", frame.id.cast("int"))
    taken = list[int]()
    for attempt in ("one", "two", "three"):  # a Python worker may end meanwhile
        began = children()
        staged = stage_frame(frame, WaveFiles(linked, attempt, 1, tuple(range(64))))
        taken.append(children() - began)
        files = [Path(linked.uri, file.path) for (file,) in staged.files.values()]
    assert min(taken) < 10, taken  # 64 times 4 programs take ten times as long
    assert len(files) == 64
    usual = tmp_path / "usual"
    usual.touch()
    assert {file.stat().st_mode for file in files} == {usual.stat().st_mode}
    assert all(file.with_name(f".{file.name}.crc").exists() for file in files)


def test_settings_of_the_session_are_what_they_were_when_a_wave_is_written(hand):
    declared = {"spark.sql.files.maxPartitionBytes": "77", "spark.sql.maxConcurrentOutputFileWriters": "7"}
    for name, text in declared.items():
        hand.spark.conf.set(name, text)
    try:
        frame = hand.spark.range(2).selectExpr("id", "0 as _partition", "0 as _group_128")
        stage_frame(frame, WaveFiles(hand.location, "attempt", 1, (0,), ("_group_128",), arranged=True))
        assert {name: hand.spark.conf.get(name) for name in declared} == declared
    finally:
        for name in declared:
            hand.spark.conf.unset(name)


def test_a_large_partition_is_several_files_one_after_the_other_in_its_order(hand):
    frame = hand.spark.range(4000).selectExpr(
        "id", "cast(pmod(id, 2) as int) as _partition", "cast(pmod(hash(id), 128) as int) as _group_128"
    )
    staged = stage_frame(
        frame.repartition(8), WaveFiles(hand.location, "attempt", 1, (0, 1), ("_group_128",), rows_per_file=600)
    )
    assert [[file.rows for file in staged.files[partition]] for partition in (0, 1)] == [[600, 600, 600, 200]] * 2
    for files in staged.files.values():
        groups = [
            group
            for file in files
            for group in pq.read_table(Path(hand.location.uri) / file.path)["_group_128"].to_pylist()
        ]
        assert groups == sorted(groups)


def test_frames_that_are_one_per_partition_are_written_without_a_shuffle(hand):
    one_each = [hand.frame({partition: [A, B]}).coalesce(1) for partition in (4, 5)]
    staged = stage_frame(
        one_each[0].unionByName(one_each[1]), WaveFiles(hand.location, "attempt", 1, (4, 5), arranged=True)
    )
    assert {partition: [file.rows for file in files] for partition, files in staged.files.items()} == {4: [2], 5: [2]}


WRITTEN = (0, 3, 4, 6, 9, 12, 77)


def skewed(hand: Stagehand) -> DataFrame:
    """Rows of which most are in partition 4, none in 12 and one in 77; some have no group."""
    return hand.spark.range(4000).selectExpr(
        "id",
        "cast(CASE WHEN id = 5 THEN 77 WHEN id % 5 = 0 THEN pmod(id, 4) * 3 ELSE 4 END as int) as _partition",
        "cast(CASE WHEN id % 7 > 0 THEN pmod(hash(id), 128) END as int) as _group_128",
    )


def read_whole(hand: Stagehand, files: Sequence[DataFile]) -> list[dict[str, Any]]:
    return [row for file in files for row in pq.read_table(Path(hand.location.uri) / file.path).to_pylist()]


@pytest.mark.parametrize("rows_per_file", [0, 150])
@pytest.mark.parametrize("arranged", [False, True])
@pytest.mark.parametrize("sort_by", [(), ("_group_128",)])
def test_partitions_that_share_a_task_are_written_as_if_each_had_its_own(hand, sort_by, arranged, rows_per_file):
    frame = skewed(hand).repartition(8)
    if arranged:
        frame = united([frame.where(f"_partition = {number}").coalesce(1) for number in WRITTEN])
    own = WaveFiles(hand.location, "own", 1, WRITTEN, sort_by, arranged=arranged, rows_per_file=rows_per_file)
    apart, shared = stage_frame(frame, own), stage_frame(frame, replace(own, attempt_id="shared", starts=(0, 4, 9)))
    assert measure(hand.spark, shared, frame.schema, WRITTEN) == measure(hand.spark, apart, frame.schema, WRITTEN)
    assert shared.files.keys() == apart.files.keys() == {*WRITTEN} - {12}
    for number, files in shared.files.items():
        assert [file.rows for file in files] == [file.rows for file in apart.files[number]]
        groups = [row["_group_128"] for row in read_whole(hand, files)]
        assert not sort_by or groups == sorted(groups, key=lambda group: -1 if group is None else group)
    assert (tasks_of(apart), tasks_of(shared)) == (6, 3)


def tasks_of(staged: StagedWave) -> int:
    return len({re.findall(r"part-(\d+)-", file.path)[0] for files in staged.files.values() for file in files})


@pytest.mark.parametrize("starts", [(0,), (0, 1)])
@pytest.mark.parametrize(
    ("stranger", "named"), [(7, "1 of 7"), (-1, "1 of -1"), (None, "1 of __HIVE_DEFAULT_PARTITION__")]
)
def test_rows_of_other_partitions_are_refused_and_deleted(hand, stranger, named, starts):
    frame = hand.frame({0: [A], stranger: [B]})
    with pytest.raises(StageContractBroken, match=rf"Stage joined .*\({named}\).* asked for 0, 1"):
        stage_frame(frame, WaveFiles(hand.location, "attempt", 1, (0, 1), starts=starts))
    assert files_at(hand.location.uri).sizes("_data") == {}


def test_a_wave_without_rows_has_no_files_and_can_be_published(table):
    records = table.prepare().publish({0: [], 1: []})
    assert [(record.rows, record.files, record.version) for record in records] == [(0, (), table.version)] * 2
    assert table.read(records) == []
    assert missing_data(records) == frozenset()


def test_a_wave_is_written_once(hand):
    hand.prepare().stage({0: [A]})
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        hand.stage({0: [B]})


# Reading


def test_what_is_read_is_what_was_recorded_whatever_came_later(table):
    first = table.prepare().publish({0: [A], 1: [B]})
    second = table.at(epoch=2).prepare().publish({1: [C]})
    assert table.read(first) == [(0, *A), (1, *B)]
    assert table.read([first[0], second[0]]) == [(0, *A), (1, *C)]
    assert table.read([first[1]]) == [(1, *B)]


def test_a_part_of_a_wave_is_written_in_order_by_the_tasks_that_have_some_of_it(hand):
    some = (0, 3, 4)
    frame = skewed(hand).where("_partition in (0, 3, 4)").repartition(8)
    staged = stage_frame(frame, WaveFiles(hand.location, "a", 1, some, ("_group_128",), starts=(0, 9, 77)))
    assert {number: len(files) for number, files in staged.files.items()} == dict.fromkeys(some, 1)
    for files in staged.files.values():
        groups = [row["_group_128"] for row in read_whole(hand, files)]
        assert groups == sorted(groups, key=lambda group: -1 if group is None else group)


def test_hundreds_of_frames_are_united_in_no_deep_plan(hand):
    frames = [hand.spark.range(number, number + 1) for number in range(600)]
    assert united(frames).columns == ["id"]


def test_partitions_of_several_waves_are_read_in_one_scan(table):
    records = [*table.prepare().publish({0: [A]}), *table.publish({1: [B]}, 2), *table.publish({2: []}, 3)]
    from stagehold.lake.read import read_partitions

    plan = read_partitions(table.spark, records)._explain_string()
    assert plan.count("FileScan") == 1
    assert table.read(records) == [(0, *A), (1, *B)]


def test_recorded_versions_outlive_replacement_and_vacuum_by_spark_and_delta_rs(table):
    first = table.prepare().publish({0: [A], 1: [B]})
    second = table.at(epoch=2).prepare().publish({0: [C], 1: []})
    vacuum_everything(table)
    assert missing_data([*first, *second]) == frozenset()
    assert table.read(first) == [(0, *A), (1, *B)]
    assert table.read(second) == [(0, *C)]


def test_any_reader_of_delta_opens_the_table(table):
    records = table.prepare().publish({0: [A], 1: [B]})
    frame = DeltaTable(table.location.uri).to_pandas()
    assert sorted(frame["amount"]) == [1, 2]
    assert (
        table.spark.sql(f"SELECT sum(amount) FROM delta.`{table.location.uri}` WHERE name = 'b'").collect()[0][0] == 2
    )
    assert table.read(records) == table.seen_by_anybody()


def test_spark_skips_files_by_the_statistics_of_the_log_and_skips_no_row(hand):
    hand.prepare().publish(
        {number: [(f"n{number}", number * 10), (f"n{number}", number * 10 + 9)] for number in range(4)}
    )
    for number in (0, 5, 9, 10, 39):
        found = hand.spark.sql(f"SELECT count(*) FROM delta.`{hand.location.uri}` WHERE amount = {number}").collect()[
            0
        ][0]
        assert found == (number % 10 in (0, 9))


def test_intervals_of_a_published_table_are_read_apart(shared):
    other = shared.on("2026-11-21")
    first, second = shared.prepare().publish({0: [A]}), other.prepare().publish({0: [B]})
    assert shared.read(first) == [(0, *A)]
    assert other.read(second) == [(0, *B)]
    assert shared.seen_by_anybody() == [(0, *A), (0, *B)]


def test_group_columns_that_not_all_versions_have_are_not_offered_to_readers(hand):
    old = hand.prepare().publish({0: [A]})
    wider = hand.at(columns="name string, amount bigint, _group_8_k int", epoch=2)
    new = wider.prepare().publish({1: [(*B, 5)]})
    from stagehold.lake.read import read_partitions

    assert "_group_8_k" in read_partitions(hand.spark, new).columns
    assert "_group_8_k" not in read_partitions(hand.spark, [*old, *new]).columns
    assert hand.read([*old, *new]) == [(0, *A), (1, *B)]


# What a stage may contain


def test_all_usual_types_are_written_measured_and_read(hand):
    table = hand.at(
        columns="b boolean, y tinyint, i int, f float, d double, m decimal(38, 10), s string, x binary, t timestamp, "
        "n timestamp_ntz, day date, l array<struct<a: int>>, o struct<`odd-name`: map<string, int>>"
    )
    values = (
        "true, cast(1 as tinyint), 1, cast(1.5 as float), cast('NaN' as double), "
        "cast('12345678901234567890.0123456789' as decimal(38, 10)), "
        "repeat('x', 5000), unhex('00'), timestamp'2026-01-01 00:00:00.123456', timestamp_ntz'2026-01-01 "
        "00:00:00.123456', date'2026-01-01', array(named_struct('a', null)), named_struct('odd-name', map('k', 1))"
    )
    table.prepare()
    frame = table.spark.sql(f"SELECT {values}").toDF(*table.frame({}).columns[:-1]).selectExpr("*", "0 as _partition")
    rows = [tuple(row)[:-1] for row in frame.collect()]
    records = table.publish({0: rows})
    ((_, *read),) = table.read(records)
    assert repr(tuple(read)) == repr(rows[0])
    for where in (
        "t = timestamp'2026-01-01 00:00:00.123456'",
        "n = timestamp_ntz'2026-01-01 00:00:00.123456'",
        "isnan(d)",
        "d > 1e300",
        "m > 1",
    ):
        assert (
            table.spark.sql(f"SELECT count(*) FROM delta.`{table.location.uri}` WHERE {where}").collect()[0][0] == 1
        ), where
