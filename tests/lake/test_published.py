"""What a published table still holds of what was recorded, after all that others can do to it and to its log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.lake.paper_table import INTERVAL, PaperTable, lose_commits

from stagehold.lake.commit.delta_log import storage_options
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.published import Absences, absences
from stagehold.lake.store.files import files_at
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import PartitionRecord

A, B, C = ("a", 1), ("b", 2), ("c", 3)
ALL_THERE = Absences()


@pytest.fixture
def table(tmp_path: Path) -> PaperTable:
    return PaperTable.published(str(tmp_path))


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def anywhere(request: pytest.FixtureRequest) -> PaperTable:
    return PaperTable.published(str(request.getfixturevalue("s3_lake" if request.param == "s3" else "tmp_path")))


def lose(table: PaperTable, version: int) -> None:
    Path(table.location.uri, "_delta_log", f"{version:020d}.json").unlink()


def write(
    table: PaperTable, *rows: tuple[str, int], partition: int = 0, interval: str = INTERVAL, mode: str = "append"
) -> None:
    """As somebody would who knows nothing of us."""
    columns = {"name": [row[0] for row in rows], "amount": [row[1] for row in rows]}
    own = {"_partition": pa.array([partition] * len(rows), pa.int32()), "_interval": [interval] * len(rows)}
    frame = pa.table(columns | own)
    write_deltalake(table.location.uri, frame, mode=mode, storage_options=storage_options(table.location.uri))


def removed_by(found: Absences) -> dict[int, tuple[int | None, str | None]]:
    assert not found.lost
    return {partition: (change.version, change.operation) for partition, change in found.removed.items()}


# Lost log files


def test_what_was_published_is_there_and_also_when_other_intervals_came_since(table):
    recorded = table.publish({0: [A], 1: [], 2: [B]})
    table.on("tuesday").publish({0: [A], 1: [C]})
    assert absences(recorded) == ALL_THERE
    assert absences([]) == ALL_THERE


def test_a_wave_whose_log_file_was_lost_is_lost_also_when_its_number_was_given_again(table):
    monday = table.publish({0: [A], 1: [B]})
    tuesday = table.on("tuesday").publish({0: [A], 1: []})
    lose(table, tuesday[0].version)
    assert (absences(monday), absences(tuesday)) == (ALL_THERE, Absences(frozenset({0})))
    wednesday = table.on("wednesday").publish({0: [C]})
    assert wednesday[0].version == tuesday[0].version
    assert (absences(monday), absences(wednesday)) == (ALL_THERE, ALL_THERE)
    assert absences(tuesday).lost >= {0}
    healed = replace(table.on("tuesday"), epoch=2).publish({0: [A]})
    assert absences(healed) == ALL_THERE
    assert [row[0] for row in table.seen()] == [INTERVAL, INTERVAL, "tuesday", "wednesday"]


def test_rows_that_a_lost_wave_had_emptied_are_no_longer_right(table):
    table.publish({0: [A]})
    emptied = table.publish({0: []}, 2)
    lose(table, emptied[0].version)
    assert absences(emptied) == Absences(frozenset({0}))


def test_a_wave_that_replaced_another_and_was_lost_is_lost(table):
    table.publish({0: [A]})
    second = table.publish({0: [B]}, 2)
    lose(table, second[0].version)
    table.on("tuesday").publish({0: [C]})
    assert absences(second) == Absences(frozenset({0}))


def test_what_somebody_deleted_is_told_though_the_wave_was_lost_before(table):
    """It took out what an older wave had left.
    Nobody knows whether the lost one had other rows, so the plan must not bring any back.
    """
    table.publish({0: [A], 1: [B]})
    second = table.publish({0: [A, C], 1: [B]}, 2)
    other = table.on("tuesday").publish({0: [A]})
    lose(table, other[0].version)
    lose(table, second[0].version)
    table.handle().delete(f"_partition = 0 AND _interval = '{INTERVAL}'")
    found = absences(second)
    assert found.lost == {1}
    assert {partition: (change.version, change.operation) for partition, change in found.removed.items()} == {
        0: (second[0].version, "DELETE")
    }
    assert absences(other) == Absences(frozenset({0}))


@pytest.mark.parametrize("lost", ["_delta_log", ""])
def test_without_its_log_or_its_folder_everything_is_lost(table, lost):
    recorded = table.publish({0: [A], 1: []})
    files_at(table.location.uri).delete(lost or "_delta_log")
    assert absences(recorded) == Absences(frozenset({0, 1}))


def test_old_log_files_that_were_cleaned_up_are_not_missed(table):
    recorded = table.publish({0: [A], 1: []})
    table.publish({2: [B]}, 2)
    table.handle().create_checkpoint()
    for version in range(table.version):
        lose(table, version)
    assert absences(recorded) == ALL_THERE


# What somebody else removed


@pytest.mark.parametrize(
    ("operation", "meddle"),
    [
        ("DELETE", lambda table: table.delete("amount = 1")),
        ("DELETE", lambda table: table.delete("name = 'a' AND _partition = 0")),
        ("UPDATE", lambda table: table.update({"amount": "7"}, predicate="name = 'a'")),
        ("RESTORE", lambda table: table.restore(0)),
        ("MERGE", lambda table: _merge(table)),
    ],
)
def test_rows_that_somebody_removed_or_changed_are_told_with_the_commit_that_did_it(table, operation, meddle):
    recorded = table.publish({0: [A, B], 1: [C]})
    meddle(table.handle())
    found = absences(recorded)
    assert removed_by(found)[0] == (table.version, operation)
    assert set(found.removed) == ({0, 1} if operation == "RESTORE" else {0})
    change = found.removed[0]
    assert (change.who or "").startswith("delta-rs")
    assert change.at is not None
    assert str(change).startswith(f"removed by commit {table.version} ({operation}) of delta-rs")
    table.on("tuesday").publish({0: [A]})
    assert absences(recorded) == found


def _merge(table: DeltaTable) -> None:
    source = pa.table({"name": ["a"], "amount": [9]})
    merge = table.merge(source, "target.name = source.name", source_alias="source", target_alias="target")
    merge.when_matched_update({"amount": "source.amount"}).execute()


def test_a_table_that_was_overwritten_or_emptied_is_told_as_well(table):
    recorded = table.publish({0: [A], 1: []})
    write(table, C, mode="overwrite")
    assert removed_by(absences(recorded)) == {0: (table.version, "WRITE")}
    table.handle().delete()
    assert removed_by(absences(recorded)) == {0: (table.version - 1, "WRITE")}


def test_a_delete_is_told_wherever_the_lake_is(anywhere):
    recorded = anywhere.publish({0: [A], 1: [B]})
    assert absences(recorded) == ALL_THERE
    anywhere.handle().delete("_partition = 0")
    anywhere.on("tuesday").publish({0: [A]})
    assert removed_by(absences(recorded)) == {0: (anywhere.version - 1, "DELETE")}


def test_a_delete_that_was_restored_did_nothing_in_the_end(table):
    recorded = table.publish({0: [A], 1: [B]})
    version = table.version
    table.handle().delete("_partition = 0")
    table.handle().restore(version)
    assert absences(recorded) == ALL_THERE
    table.handle().delete("_partition = 1")
    assert removed_by(absences(recorded)) == {1: (table.version, "DELETE")}


def test_rows_that_somebody_added_change_nothing_for_ours(table):
    recorded = table.publish({0: [A], 1: []})
    write(table, C)
    write(table, C, partition=1)
    assert absences(recorded) == ALL_THERE
    table.on("tuesday").publish({1: [B]})
    assert absences(recorded) == ALL_THERE


def test_a_removal_that_is_no_longer_in_the_log_is_not_taken_for_a_loss(table):
    recorded = table.publish({0: [A], 1: [B]})
    table.handle().delete("_partition = 0")
    table.on("tuesday").publish({0: [A]})
    table.handle().create_checkpoint()
    for version in range(table.version):
        lose(table, version)
    assert absences(recorded) == Absences(removed={0: ForeignChange(None)})
    assert str(ForeignChange(None)) == "removed by a commit that is no longer in the table's log"


# Files that were only rewritten


@pytest.mark.parametrize(
    "rewrite", [lambda table: table.optimize.compact(), lambda table: table.optimize.z_order(["name"])]
)
def test_rows_that_were_moved_to_other_files_are_there(table, rewrite):
    recorded = table.publish({0: [A], 1: [B]})
    write(table, C)
    rewrite(table.handle())
    assert absences(recorded) == ALL_THERE
    write(table, C)
    rewrite(table.handle())
    assert absences(recorded) == ALL_THERE
    assert not any(uri.endswith(recorded[0].files[0].path) for uri in table.handle().file_uris())


def test_intervals_whose_files_were_moved_by_one_commit_are_both_there(table):
    monday, tuesday = table.publish({0: [A], 1: [B]}), table.on("tuesday").publish({0: [C], 1: []})
    write(table, C)
    write(table, B, interval="tuesday")
    table.handle().optimize.compact()
    assert (absences(monday), absences(tuesday)) == (ALL_THERE, ALL_THERE)
    table.handle().delete("_interval = 'tuesday'")
    assert (absences(monday), removed_by(absences(tuesday))) == (ALL_THERE, {0: (table.version, "DELETE")})


def test_rows_that_were_moved_and_then_removed_are_told(table):
    recorded = table.publish({0: [A], 1: [B]})
    write(table, C)
    table.handle().optimize.compact()
    table.handle().delete("name = 'a'")
    assert removed_by(absences(recorded)) == {0: (table.version, "DELETE")}
    table.handle().restore(table.version - 1)
    assert absences(recorded) == ALL_THERE


def test_rows_that_were_moved_are_replaced_and_not_doubled_when_their_partition_is_published_again(table):
    recorded = table.publish({0: [A]})
    write(table, C)
    table.handle().optimize.compact()
    replace(table, epoch=2).publish({0: [A]})
    assert table.seen() == [(INTERVAL, 0, *A)]
    assert absences(recorded).lost == {0}  # a newer wave of ours took its place


# Our own commits


def test_what_a_newer_wave_of_ours_replaced_is_nobody_elses_deed(table):
    recorded = table.publish({0: [A], 1: []})
    replace(table, epoch=2).publish({0: [B], 1: [C]})
    assert absences(recorded) == Absences(frozenset({0, 1}))


def test_fences_change_nothing(table):
    recorded = table.publish({0: [A], 1: []})
    later = replace(table, epoch=9)
    StagedCommitter().fence(later.location, later.claim)
    assert absences(recorded) == ALL_THERE


def test_many_partitions_cost_one_look_at_the_snapshot(table):
    recorded: list[PartitionRecord] = table.publish({partition: [A] for partition in range(50)})
    lose_commits(table)
    assert absences(recorded) == ALL_THERE
