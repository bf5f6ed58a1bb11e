"""The commit protocol: what readers see, and which of several attempts may change it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties
from deltalake.exceptions import CommitFailedError
from fuzz.simulator.simulated_lake import SimulatedLake
from tests.lake.paper_table import INTERVAL, InterruptedCommitter, PaperTable

from stagehold.errors import CommitContested, Fenced, StageContractBroken
from stagehold.lake.commit.committed_waves import FEW, committed
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.tokens import partition_columns
from stagehold.lake.commit.wave_commit import Claim, WaveCommit
from stagehold.lake.store.files import mounted
from stagehold.lake.store.location import TableLocation

A, B, C = ("a", 1), ("b", 2), ("c", 3)

fence = StagedCommitter().fence


@dataclass(frozen=True)
class Namesake(PaperTable):
    """Another attempt with the epoch of the first."""

    @property
    def attempt_id(self) -> str:
        return "namesake"


def publish(location: TableLocation, wave: WaveCommit) -> int:
    return StagedCommitter().publish(location, wave).version


PLACES = ("folder", "memory", pytest.param("s3", marks=pytest.mark.slow))  # moto answers slowly
LAKES = {"folder": "tmp_path", "memory": "lake_in_memory", "s3": "s3_lake"}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake_in_memory() -> Iterator[str]:
    """The lake of the simulator, which has to be like others."""
    lake = SimulatedLake()
    with mounted(lake, lake.uri):
        yield lake.uri


@pytest.fixture(params=(PaperTable.own, PaperTable.published), ids=("own", "published"))
def table(request: pytest.FixtureRequest, place: str) -> PaperTable:
    """Every rule holds for a stage's own table and for one interval's share of a published one,
    wherever the lake is.
    """
    lake = request.getfixturevalue(LAKES[place])
    made: PaperTable = request.param(str(lake))
    return made


@pytest.fixture
def published(tmp_path: Path) -> PaperTable:
    return PaperTable.published(str(tmp_path))


def seen(table: PaperTable) -> list[tuple[int, str, int]]:
    return [row[1:] for row in table.seen()]


# What readers see


def test_nothing_is_visible_before_the_commit_and_everything_after(table):
    wave = table.wave({0: [A, B], 1: [C]})
    assert (seen(table), committed(table.location)) == ([], ())
    assert publish(table.location, wave) == table.version == 1
    assert seen(table) == [(0, *A), (0, *B), (1, *C)]


def test_a_wave_replaces_just_its_own_partitions(table):
    table.publish({0: [A], 1: [B]})
    table.publish({1: [C], 2: [C]}, 2)
    assert seen(table) == [(0, *A), (1, *C), (2, *C)]


def test_a_partition_without_rows_replaces_one_that_had_some(table):
    table.publish({0: [A], 1: [B]})
    (record,) = table.publish({1: []}, 2)
    assert seen(table) == [(0, *A)]
    assert (record.version, record.rows, record.files) == (2, 0, ())


def test_a_cut_into_fewer_partitions_leaves_nothing_of_the_earlier_one(table):
    table.publish({0: [A], 1: [B], 2: [C]})
    fewer = replace(table.next_epoch(), cut_into=2)
    fewer.publish({0: [A]})
    assert seen(table) == [(0, *A), (1, *B)]
    fewer.publish({1: [B, C]}, 2)
    assert seen(table) == [(0, *A), (1, *B), (1, *C)]


def test_a_wave_of_nothing_but_empty_partitions_is_a_commit_too(table):
    assert [record.version for record in table.publish({0: [], 1: []})] == [1, 1]
    ((version, wave),) = committed(table.location)
    assert (version, [partition.partition for partition in wave.partitions]) == (1, [0, 1])


@pytest.mark.parametrize("place", ["folder"], indirect=True)  # who reads them does not read what is in memory
def test_files_in_the_log_have_statistics(table):
    table.publish({0: [A, B]})
    (add,) = pa.table(table.handle().get_add_actions(flatten=True)).to_pylist()
    assert (add["num_records"], add["null_count.amount"], add["min.amount"], add["max.amount"]) == (2, 0, 1, 2)
    assert (add["min.name"], add["max.name"]) == ("a", "b")


def test_what_a_deletion_took_out_counts_as_committed_no_more(table):
    table.publish({0: [A], 1: [B]})
    deletion = replace(table, cut_into=0, epoch=2)
    deletion.publish({})
    assert (seen(table), committed(table.location)) == ([], ())
    table.next_epoch().next_epoch().publish({1: [C]})
    assert [commit.epoch for _, commit in committed(table.location)] == [3]


def test_files_outside_the_partitions_that_a_wave_replaces_are_refused(table):
    wave = table.wave({0: [A], 1: [B]})
    crossed = replace(wave, partitions=(replace(wave.partitions[0], partition=7),))
    with pytest.raises(StageContractBroken, match="among the files of partition 7"):
        publish(table.location, crossed)
    assert seen(table) == []


def test_the_commit_keeps_the_columns_that_the_table_has(table):
    before = table.handle().schema().to_json()
    table.publish({0: [A]})
    assert table.handle().schema().to_json() == before


# Attempts that were superseded


def test_a_zombie_that_publishes_before_the_fence_is_replaced(table):
    table.publish({0: [A]})
    newer = table.next_epoch()
    fence(newer.location, newer.claim)
    newer.publish({0: [B]})
    assert seen(table) == [(0, *B)]


def test_a_zombie_that_publishes_after_the_fence_changes_nothing(table):
    late = table.wave({0: [A]})
    fence(table.location, Claim(2, "newer"))
    with pytest.raises(Fenced, match=r"epoch 1 .* fenced by epoch 2"):
        publish(table.location, late)
    assert (table.version, seen(table)) == (1, [])


def test_a_zombie_whose_handle_is_older_than_the_fence_changes_nothing(table):
    late = table.wave({0: [A]})
    zombie = InterruptedCommitter(lambda: fence(table.location, Claim(2, "newer")))
    with pytest.raises(Fenced):
        zombie.publish(table.location, late)
    assert not zombie.waiting
    assert (table.version, seen(table)) == (1, [])


def test_a_zombie_whose_handle_is_older_than_another_attempts_commit_changes_nothing(table):
    late = table.wave({0: [A]})
    newer = table.next_epoch().wave({0: [B]})
    zombie = InterruptedCommitter(lambda: publish(table.location, newer))
    with pytest.raises(Fenced):
        zombie.publish(table.location, late)
    assert not zombie.waiting
    assert seen(table) == [(0, *B)]


def test_an_attempt_that_was_superseded_cannot_fence(table):
    fence(table.location, Claim(5, "newer"))
    with pytest.raises(Fenced):
        fence(table.location, Claim(4, "newer"))


def test_fencing_twice_is_fencing_once(table):
    for _ in range(3):
        fence(table.location, Claim(2, "newer"))
    assert table.version == 1


def test_a_fence_in_the_middle_of_ones_own_epoch_does_not_undo_it(table):
    table.publish({0: [A]})
    fence(table.location, table.claim)
    table.publish({1: [B]}, 2)
    assert seen(table) == [(0, *A), (1, *B)]


def test_a_table_that_is_not_there_needs_no_fence(tmp_path):
    location = TableLocation("gone", str(tmp_path / "gone"), "token", None)
    fence(location, Claim(1, "newer"))
    assert committed(location) == ()
    assert not (tmp_path / "gone").exists()


def test_two_attempts_with_one_epoch_cannot_both_publish(table):
    table.publish({0: [A]})
    other = replace(table.wave({0: []}), attempt_id="run.region.1.other")
    with pytest.raises(Fenced):
        publish(table.location, other)
    assert seen(table) == [(0, *A)]


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_attempts_with_one_epoch_the_second_is_kept_out_altogether(table, turn):
    """As when a ledger was lost under a living attempt, so that the next one draws the same epoch."""
    first, second = (table, Namesake(table.location))[::turn]
    fence(first.location, first.claim)
    first.publish({0: [A]}, 3)
    with pytest.raises(Fenced, match=r"fenced by another attempt with that epoch.*only one ledger"):
        fence(second.location, second.claim)
    with pytest.raises(Fenced):
        second.publish({0: [B]}, 9)
    assert seen(table) == [(0, *A)]


@pytest.mark.parametrize("change", ["fingerprint", "compute_key", "rows", "files"])
def test_an_older_commit_with_the_same_token_is_not_taken_for_ones_own(table, change):
    wave = table.wave({0: [A]})
    publish(table.location, wave)
    (one,) = wave.partitions
    different = {"fingerprint": "other", "compute_key": "other", "rows": 7, "files": ()}[change]
    with pytest.raises(Fenced):
        publish(table.location, replace(wave, partitions=(replace(one, **{change: different}),)))


# Answers that get lost


def test_a_commit_that_is_repeated_is_there_once(table):
    wave = table.wave({0: [A]})
    assert [publish(table.location, wave) for _ in range(3)] == [1, 1, 1]
    assert (table.version, seen(table)) == (1, [(0, *A)])


def test_a_commit_that_landed_though_it_failed_is_recognised(table):
    class Unheard(StagedCommitter):
        """Its commits land, and nobody hears of it."""

        def replace_partitions(self, *facts: Any) -> None:
            super().replace_partitions(*facts)
            raise CommitFailedError("the answer got lost")

    assert [record.version for record in replace(table, committer=Unheard()).publish({0: [A]})] == [1]
    assert (table.version, seen(table)) == (1, [(0, *A)])


def test_a_repeated_commit_is_found_behind_many_others(published):
    wave = published.wave({0: [A]})
    publish(published.location, wave)
    for number in range(FEW + 2):
        published.on(f"other-{number}").publish({0: [B]})
    assert publish(published.location, wave) == 1


def test_a_commit_that_never_gets_through_says_so(table):
    class Loser(StagedCommitter):
        """Somebody else is always faster."""

        pause_seconds = 0

        def replace_partitions(self, *facts: Any) -> None:
            raise CommitFailedError("somebody else was first")

    with pytest.raises(CommitContested, match=r"failed 20 times .* somebody else was first"):
        replace(table, committer=Loser()).publish({0: [A]})


# Intervals of one published table


def test_intervals_do_not_replace_or_fence_each_other(published):
    other = published.on("2026-11-21")
    published.publish({0: [A]})
    other.publish({0: [B], 1: [C]})
    fence(other.location, Claim(9, "newer"))
    published.publish({0: [C]}, 2)
    assert published.seen() == [(INTERVAL, 0, *C), ("2026-11-21", 0, *B), ("2026-11-21", 1, *C)]


def test_two_intervals_that_commit_at_the_same_moment_both_succeed(published):
    other = published.on("2026-11-21")
    wave = published.wave({0: [A]})
    version = InterruptedCommitter(lambda: other.publish({0: [B]})).publish(published.location, wave).version
    assert published.seen() == [(INTERVAL, 0, *A), ("2026-11-21", 0, *B)]
    assert [(found, one.wave) for found, one in committed(published.location)] == [(version, 1)]


# What the log tells the next attempt


def test_the_log_gives_back_what_was_committed(table):
    first, second = table.wave({0: [A], 1: [B]}), table.wave({2: []}, 2)
    versions = [publish(table.location, first), publish(table.location, second)]
    assert committed(table.location) == tuple(zip(versions, (first, second), strict=True))


def test_of_a_partition_only_the_newest_commit_counts(table):
    table.publish({0: [A], 1: [B]})
    newer = table.next_epoch()
    newer.publish({1: [C]})
    newer.publish({2: [C]}, 2)
    found = [
        (wave.epoch, wave.wave, partition.partition)
        for _, wave in committed(table.location)
        for partition in wave.partitions
    ]
    assert found == [(1, 1, 0), (2, 1, 1), (2, 2, 2)]


def test_a_commit_all_of_whose_partitions_were_replaced_is_not_mentioned(table):
    table.publish({0: [A]})
    table.next_epoch().publish({0: [B]})
    assert [wave.epoch for _, wave in committed(table.location)] == [2]


@pytest.mark.parametrize(
    "metadata", [None, "a word", "[1]", json.dumps({"stagehold": 3, "token": "later"}), json.dumps({"token": "x"})]
)
def test_commits_of_others_are_passed_over(table, metadata):
    table.publish({0: [A]})
    handle = table.handle()
    properties = CommitProperties(custom_metadata={"userMetadata": metadata} if metadata else None)
    columns = partition_columns(table.location)
    handle.create_write_transaction([], "append", handle.schema(), columns, commit_properties=properties)
    assert [version for version, _ in committed(table.location)] == [1]
