"""Which recorded partitions can be read now."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lake.paper_table import PaperTable

from stagehold.lake.available import missing_data, readable_versions, sizes_now

A, B, C = ("a", 1), ("b", 2), ("c", 3)


@pytest.fixture
def table(tmp_path: Path) -> PaperTable:
    return PaperTable.own(str(tmp_path))


def test_what_was_just_published_is_there(table):
    assert missing_data(table.publish({0: [A], 1: [], 2: [B]})) == frozenset()


def test_what_was_replaced_later_is_still_there(table):
    first = table.publish({0: [A]})
    table.publish({0: [B]}, 2)
    assert missing_data(first) == frozenset()


def test_a_deleted_or_cut_file_is_missing_and_others_are_not(table):
    recorded = table.publish({0: [A], 1: [B], 2: [C], 3: []})
    Path(table.location.uri, recorded[0].files[0].path).unlink()
    Path(table.location.uri, recorded[1].files[0].path).write_bytes(b"PAR1")
    assert missing_data(recorded) == {0, 1}
    sizes = [list(sizes_now(record).values()) for record in recorded]
    assert sizes == [[None], [4], [recorded[2].files[0].bytes], []]


@pytest.mark.parametrize("lost", ["_delta_log", "."])
def test_without_its_log_or_its_folder_everything_is_missing(table, lost):
    recorded = table.publish({0: [A], 1: []})
    shutil.rmtree(Path(table.location.uri) / lost)
    assert missing_data(recorded) == {0, 1}


def test_a_version_that_is_gone_from_the_log_is_missing(table):
    first, second = table.publish({0: [A]}), table.publish({1: [B]}, 2)
    table.handle().create_checkpoint()
    Path(table.location.uri, "_delta_log", f"{1:020d}.json").unlink()
    assert missing_data([*first, *second]) == {0}


def test_a_version_that_never_was_is_missing(table):
    (record,) = table.publish({0: [A]})
    assert missing_data([replace(record, version=99)]) == {0}


def test_records_of_several_tables_are_each_looked_for_in_their_own(table, tmp_path):
    other = PaperTable.published(str(tmp_path))
    recorded = [*table.publish({0: [A]}), *other.publish({1: [B]})]
    shutil.rmtree(other.location.uri)
    assert missing_data(recorded) == {1}


def test_no_records_miss_nothing():
    assert missing_data([]) == frozenset()


@pytest.mark.parametrize(
    ("commits", "checkpoints", "readable"),
    [
        ([], [], []),
        ([0, 1, 2], [], [0, 1, 2]),
        ([1, 2], [], []),
        ([3, 4], ["2.checkpoint.parquet"], [2, 3, 4]),
        ([2, 4], ["2.checkpoint.parquet"], [2]),
        ([0, 1, 4, 5], ["4.checkpoint.0000000001.0000000002.parquet"], [0, 1, 4, 5]),
        ([5], ["4.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"], [4, 5]),
    ],
)
def test_a_version_needs_every_commit_since_a_checkpoint_or_the_start(commits, checkpoints, readable):
    names = [f"_delta_log/{version:020d}.json" for version in commits]
    names += [
        f"_delta_log/{number.zfill(20)}.{rest}" for number, _, rest in (text.partition(".") for text in checkpoints)
    ]
    assert sorted(readable_versions([*names, "_delta_log/_last_checkpoint", "_delta_log/.tmp"])) == readable
