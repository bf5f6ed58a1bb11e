"""A checkpoint costs what changed since the one below it, goes with what only it needs, and moves with its lake."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.lake.checkpoints.samples import (
    LONG_AGO,
    PIPELINE,
    SHAPES,
    changed,
    checkpoint,
    record,
    stage,
    stored,
)

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import CheckpointCorrupt
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import FolderFiles, files_at
from stagehold.model.source_position import FilesRead, SourceFile, VersionsRead

pytestmark = pytest.mark.slow

TOMORROW = datetime.now(UTC) + timedelta(days=1)

# What is unchanged is not written again


def test_only_parts_with_changes_are_written(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage(map(record, range(2_000)))), PIPELINE)
    before = files_at(there.uri).facts("")
    there.write(checkpoint(2, changed(range(490, 510), 1)), PIPELINE, builds_on=1)
    after = files_at(there.uri).facts("")
    new = {path: file for path, file in after.items() if path not in before}
    assert {path: after[path] for path in before} == before
    assert sorted(path.split("-")[0] for path in new) == ["0000000002.json", "parts/0000000002", "parts/0000000002"]
    one_part = max(file.bytes for path, file in before.items() if path.startswith("parts/"))
    assert sum(file.bytes for path, file in new.items() if path.startswith("parts/")) < 2.5 * one_part


def test_a_checkpoint_built_on_another_is_as_one_that_was_written_whole(lake):
    there = stored(lake)
    old = {partition: record(partition) for partition in range(0, 1_400, 2)}
    there.write(checkpoint(1, stage(old.values())), PIPELINE)
    new = {partition: record(partition, 1) for partition in (0, 3, 998, 1_399, 1_999)}
    there.write(checkpoint(2, stage(new.values())), PIPELINE, builds_on=1)
    whole = stage(each for _, each in sorted((old | new).items()))
    assert there.read_checkpoint(2) == checkpoint(2, whole)
    assert there.read_checkpoint(1) == checkpoint(1, stage(old.values()))


def test_a_partition_that_is_recorded_again_as_it_was_costs_nothing(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage(map(record, range(10)))), PIPELINE)
    there.write(checkpoint(2, stage([record(3)])), PIPELINE, builds_on=1)
    assert len(files_at(there.uri).sizes("parts")) == 1
    assert there.read_checkpoint(2) == checkpoint(2, stage(map(record, range(10))))


@pytest.mark.parametrize("change", [{"parallelism": 3}, {"max_parallelism": 4}, {"shape": SHAPES[1]}])
def test_partitions_of_a_stage_that_is_cut_differently_are_others(tmp_path, change):
    there = stored(str(tmp_path))
    there.write(checkpoint(1, stage(map(record, range(10)))), PIPELINE)
    now = replace(stage(map(record, range(3))), **change)
    there.write(checkpoint(2, now), PIPELINE, builds_on=1)
    assert there.read_checkpoint(2) == checkpoint(2, now)


def test_a_checkpoint_that_builds_on_nothing_shares_nothing(lake):
    there = stored(lake)
    same = stage(map(record, range(600)))
    parts = [{part.file for part in there.write(checkpoint(number, same), PIPELINE).parts} for number in (1, 2)]
    assert parts[0].isdisjoint(parts[1])
    there.discard(1, LONG_AGO)
    assert there.read_checkpoint(2) == checkpoint(2, same)


def test_a_wave_costs_the_same_however_many_partitions_there_are(tmp_path):
    costs = {}
    for partitions in (1_000, 20_000):
        lake, calls = str(tmp_path / str(partitions)), []
        stored(lake).write(checkpoint(1, stage(map(record, range(partitions)), 20_000)), PIPELINE)

        class Counted(FolderFiles):
            def read(self, path, calls=calls):
                calls.append(path)
                return super().read(path)

            def create(self, path, content, calls=calls):
                calls.append(path)
                return super().create(path, content)

        now = stage((record(partition, 1) for partition in range(500, 520)), 20_000)
        stored(lake, Counted).write(checkpoint(2, now), PIPELINE, builds_on=1)
        costs[partitions] = len(calls)
    assert costs == {1_000: 4, 20_000: 4}  # manifest and part, read and made


# Deleting


def test_of_many_checkpoints_three_are_kept_and_nothing_else(lake):
    there, store = stored(lake), CheckpointStore(retained=3)
    recorded, last = {}, 30 if lake.startswith("s3://") else 200
    for number in range(1, last + 1):
        wave = [record(number % 7 * 400 + partition, number) for partition in range(5)]
        recorded.update((one.partition, one) for one in wave)
        newest = store.newest.id if store.newest else None
        there.write(checkpoint(number, stage(wave)), PIPELINE, builds_on=newest)
        store, dropped = store.add(CompletedCheckpoint(number, SnapshotKind.CHECKPOINT))
        for entry in dropped:
            there.discard(entry.id, LONG_AGO)
    assert there.numbers() == (last - 2, last - 1, last)
    needed = {part.file for number in there.numbers() for part in there.read_manifest(number).parts}
    assert set(files_at(there.uri).sizes("parts")) == needed
    assert there.read_checkpoint(last) == checkpoint(last, stage(each for _, each in sorted(recorded.items())))


def test_discarding_may_be_done_twice_and_of_what_was_never_there(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage([record(0)])), PIPELINE)
    for number in (1, 1, 9):
        there.discard(number, LONG_AGO)
    assert files_at(there.uri).facts("") == {}


def test_a_checkpoint_that_cannot_be_read_can_be_discarded(lake):
    there = stored(lake)
    files_at(there.uri).create("0000000001.json", b"{")
    there.write(checkpoint(2, stage([record(0)])), PIPELINE)
    there.discard(1, LONG_AGO)
    assert there.numbers() == (2,)


def test_beside_one_that_cannot_be_read_no_part_is_deleted(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage([record(0)])), PIPELINE)
    files_at(there.uri).create("0000000002.json", b"{")
    with pytest.raises(CheckpointCorrupt, match=r"0000000002\.json"):
        there.discard(1, TOMORROW)
    assert len(files_at(there.uri).sizes("parts")) == 1


def test_what_is_not_ours_is_not_deleted(tmp_path):
    there = stored(str(tmp_path))
    for path in ("notes.txt", "parts/notes.parquet", "parts/deep/0000000001-" + "0" * 64 + ".parquet"):
        files_at(there.uri).create(path, b"x")
    there.discard(1, TOMORROW)
    assert len(files_at(there.uri).facts("")) == 3


# A lake that was moved


def moved(tmp_path, *stages):
    """A checkpoint of a lake that lies somewhere else now."""
    old, new = tmp_path / "old", tmp_path / "new"
    stored(str(old)).write(checkpoint(1, *stages), PIPELINE)
    shutil.move(old, new)
    return stored(str(new)).read_checkpoint(1)


def test_what_is_below_a_lake_moves_with_it(tmp_path):
    inside = replace(record(0), table=str(tmp_path / "old" / "stages" / "a"))
    source = FilesRead((SourceFile(str(tmp_path / "old" / "raw.parquet"), 1, "1"),))
    (found,) = moved(tmp_path, replace(stage([inside]), position=source)).stages
    assert found.partitions[0].table == str(tmp_path / "new" / "stages" / "a")
    assert found.position.files[0].path == str(tmp_path / "new" / "raw.parquet")


def test_what_is_beside_a_lake_stays_where_it_is(tmp_path):
    outside = replace(record(0), table=str(tmp_path / "older" / "a"))
    (found,) = moved(tmp_path, replace(stage([outside]), position=VersionsRead(None, 3))).stages
    assert found.partitions == (outside,)


def test_a_checkpoint_is_found_by_the_address_of_its_manifest(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(3, stage([record(0)])), PIPELINE)
    found, number = StoredCheckpoints.holding(f"{there.uri}/0000000003.json")
    assert (found.uri, number) == (there.uri, 3)
    assert found.read_checkpoint(number) == there.read_checkpoint(3)


def test_an_address_that_is_none_says_what_is_wrong(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(3, stage([record(0)])), PIPELINE)
    elsewhere = tmp_path / "0000000003.json"
    shutil.copy(f"{there.uri}/0000000003.json", elsewhere)
    for address, problem in (
        (f"{there.uri}/0000000004.json", "0000000004.json is missing"),
        (str(elsewhere), "has to lie in a lake, as LAKE/checkpoints/sample/2026-01-01/run/0000000003.json"),
    ):
        with pytest.raises(CheckpointCorrupt, match=problem):
            StoredCheckpoints.holding(address)
