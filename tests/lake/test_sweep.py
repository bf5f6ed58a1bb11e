"""What of a table's `_data` may be deleted, and that nothing anybody could still want is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lake.paper_table import PaperTable
from tests.ledger.samples import gate_result

from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.commit.wave_verdicts import WaveVerdicts
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.lake.sweep import StrayFolder, committed_files, find_strays, recorded_files, removable_folders, remove
from stagehold.model.records import DataFile
from stagehold.model.standing import PartitionState

A, B, C = ("a", 1), ("b", 2), ("c", 3)
NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=1)
OLD, YOUNG = FileFacts(10, "", NOW - timedelta(hours=2)), FileFacts(10, "", NOW)
HOUR_AGO = NOW - timedelta(hours=1)


def chosen(present: dict[str, FileFacts], dead: set[str], kept: set[str] = frozenset()) -> list[str]:
    return [stray.folder for stray in removable_folders("lake", present, dead, kept, HOUR_AGO)]


# The decision


def test_everything_of_a_dead_attempt_goes_as_one_folder():
    present = {"_data/a.1/1/_partition=0/x": OLD, "_data/a.1/1/_temporary/0/y": OLD, "_data/a.1/2/_partition=1/z": OLD}
    assert removable_folders("lake", present, {"a.1"}, set(), HOUR_AGO) == (StrayFolder("lake", "_data/a.1", 3, 30),)


@pytest.mark.parametrize(
    ("present", "left"),
    [
        ("_data/a.2/1/_partition=0/x", "an attempt that is not dead"),
        ("_data/a.10/1/_partition=0/x", "an attempt whose id begins like a dead one's"),
        ("_data/x", "a file that is no attempt's"),
        ("_delta_log/00000000000000000000.json", "the log"),
        ("_partition=0/part-0.parquet", "a file of Delta's own"),
        ("a.1/1/_partition=0/x", "a user's folder"),
    ],
)
def test_nothing_else_goes(present, left):
    assert chosen({present: OLD}, {"a.1"}) == [], left


def test_what_is_kept_keeps_no_more_than_its_own_folder():
    present = {f"_data/a.1/{wave}/_partition={partition}/x": OLD for wave in (1, 2) for partition in (0, 1)}
    assert chosen(present, {"a.1"}, {"_data/a.1/1/_partition=0/x"}) == ["_data/a.1/1/_partition=1", "_data/a.1/2"]
    assert chosen(present, {"a.1"}, set(present)) == []


def test_young_files_stay():
    present = {"_data/a.1/1/_partition=0/x": OLD, "_data/a.1/1/_partition=1/x": YOUNG}
    assert chosen(present, {"a.1"}) == ["_data/a.1/1/_partition=0"]


def test_of_blocked_files_the_newest_of_each_partition_are_kept(tmp_path):
    table = PaperTable.own(str(tmp_path))
    (first,) = table.publish({0: [A]})
    blocked = replace(first, state=PartitionState.BLOCKED, version=None)
    older, newer = (replace(blocked, epoch=epoch, files=(DataFile(f"blocked-{epoch}", 1, 1),)) for epoch in (2, 3))
    assert recorded_files([first, older, newer]) == {first.files[0].path, "blocked-3"}
    mended = replace(first, epoch=4, files=(DataFile("good", 1, 1),))
    assert recorded_files([mended, newer, older, first]) == {first.files[0].path, "good"}


PARTS = st.integers(0, 2)
PATHS = st.builds("_data/a.{}/{}/_partition={}/{}".format, PARTS, PARTS, PARTS, PARTS)
STORED = st.builds(FileFacts, st.integers(0, 9), st.just(""), st.sampled_from([OLD.modified, YOUNG.modified]))


@given(present=st.dictionaries(PATHS, STORED), dead=st.sets(st.sampled_from(["a.0", "a.1"])), kept=st.sets(PATHS))
def test_what_goes_is_just_what_nobody_keeps(present, dead, kept):
    gone = {path for folder in chosen(present, dead, kept) for path in present if path.startswith(f"{folder}/")}
    assert gone.isdisjoint(kept)
    assert all(path.split("/")[1] in dead and present[path].modified < HOUR_AGO for path in gone)
    folders = {path.rpartition("/")[0] for path in present}
    for folder in folders:
        inside = [path for path in present if path.startswith(f"{folder}/")]
        if folder.split("/")[1] in dead and all(
            path not in kept and present[path].modified < HOUR_AGO for path in inside
        ):
            assert gone.issuperset(inside)


# With a real table


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def table(request: pytest.FixtureRequest) -> PaperTable:
    return PaperTable.published(str(request.getfixturevalue("s3_lake" if request.param == "s3" else "tmp_path")))


def data_files(table: PaperTable) -> set[str]:
    """Without the markers that some clients leave for folders of an object store."""
    return {path for path in files_at(table.location.uri).sizes("_data") if not path.endswith("/")}


def strays(table: PaperTable, records=()) -> list[str]:
    return [stray.folder for stray in find_strays(table.location.uri, [table.attempt_id], records, LATER)]


def test_what_was_written_but_not_published_goes_and_recorded_files_stay(table):
    records = table.publish({0: [A], 1: [B]})
    table.wave({0: [C]}, 2)
    assert strays(table, records) == [f"_data/{table.attempt_id}/2"]
    remove(find_strays(table.location.uri, [table.attempt_id], records, LATER))
    assert {file.path for record in records for file in record.files} == data_files(table)
    assert [row[2:] for row in table.seen()] == [A, B]
    assert strays(table, records) == []


def test_what_was_committed_stays_though_no_record_knows_of_it(table):
    table.publish({0: [A]})
    table.publish({0: [B]}, 2)
    assert strays(table) == []
    assert committed_files(table.location.uri) >= data_files(table)


def test_what_a_gate_said_stays_until_its_wave_is_recorded(table):
    records = table.publish({0: [A], 1: [B]})
    WaveVerdicts.of(records[0]).keep([gate_result(0, passed=True)])
    assert strays(table, records[:1]) == []  # the other one is of a share that has not adopted it yet
    assert strays(table, records) == [f"_data/{table.attempt_id}/1/_verdicts"]
    remove(find_strays(table.location.uri, [table.attempt_id], records, LATER))
    assert {file.path for record in records for file in record.files} == data_files(table)


def test_what_a_commit_removed_stays_after_its_own_commit_left_the_log(tmp_path):
    table = PaperTable.own(str(tmp_path))
    table.publish({0: [A]})
    table.publish({1: [B]}, 2)
    table.handle().create_checkpoint()
    table.publish({0: []}, 3)
    for version in (0, 1):
        (Path(table.location.uri) / f"_delta_log/{version:020d}.json").unlink()
    assert strays(table) == []


def test_other_intervals_of_a_published_table_are_not_looked_at(table):
    other = table.on("2026-11-21")
    other.wave({0: [A]})
    table.wave({0: [A]})
    assert strays(table) == [f"_data/{table.attempt_id}"]


def test_without_dead_attempts_nothing_is_even_listed(tmp_path):
    assert find_strays(str(tmp_path / "nowhere"), [], (), LATER) == ()


def test_a_sweep_that_was_cut_short_is_finished_by_the_next(table):
    table.wave({0: [A]})
    table.wave({0: [A]}, 2)
    found = find_strays(table.location.uri, [table.attempt_id], (), LATER)
    remove([replace(found[0], folder=f"{found[0].folder}/1")])
    assert strays(table) == [found[0].folder]
    remove(found)
    assert data_files(table) == set()


def test_a_zombie_whose_files_were_swept_is_fenced_and_publishes_nothing(table):
    late = table.wave({0: [A]})
    committer = StagedCommitter()
    committer.fence(table.location, Claim(2, "newer"))
    remove(find_strays(table.location.uri, [table.attempt_id], (), LATER))
    with pytest.raises(Exception, match=r"fenced|No such|NoSuchKey|Not Found"):
        committer.publish(table.location, late)
    assert table.seen() == []
