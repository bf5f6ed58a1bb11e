"""What both committers promise, on a stage's own table and on one interval's share of a published one."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame
from tests.lake.paper_table import records
from tests.lake.stagehand import Stagehand

from stagehold.errors import CommitterRefused, Fenced
from stagehold.lake.available import missing_data
from stagehold.lake.commit.committed_waves import committed
from stagehold.lake.commit.committer import committer_for
from stagehold.lake.commit.delta_spark_committer import DeltaSparkCommitter
from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.store.files import files_at
from stagehold.model.partition_set import Share
from stagehold.spec.settings.output_settings import CommitterKind

pytestmark = pytest.mark.spark

COMBINATIONS = (
    ("staged", "hand", "folder"),
    ("staged", "shared", "s3"),
    ("delta_spark", "hand", "s3"),
    ("delta_spark", "shared", "folder"),
)

A, B, C = ("a", 1), ("b", 2), ("c", 3)

# What does not depend on the kind of table is asked of one table per committer: a commit by Spark takes its time.
CROSSED = pytest.mark.parametrize("table", [COMBINATIONS[0], COMBINATIONS[2]], ids="-".join, indirect=True)


def with_committer(hand: Stagehand, kind: str) -> Stagehand:
    return hand.at(committer=committer_for(CommitterKind(kind), hand.spark, hand.location, only_writer=True))


@pytest.fixture(params=COMBINATIONS, ids="-".join)
def table(request: pytest.FixtureRequest) -> Stagehand:
    kind, name, place = request.param
    hand = request.getfixturevalue(name)
    if place == "s3":
        hand = hand.at(
            location=replace(hand.location, uri=f"{request.getfixturevalue('lake_in_s3')}/{hand.location.stage}")
        )
    return with_committer(hand, kind).prepare()


@pytest.fixture(params=["staged", "delta_spark"])
def published(request: pytest.FixtureRequest, shared: Stagehand) -> Stagehand:
    return with_committer(shared, request.param).prepare()


def in_log(table: Stagehand) -> list[tuple[int, int, tuple[int, ...]]]:
    """(epoch, wave, partitions) of the commits that count."""
    return [
        (attempt.epoch, attempt.wave, tuple(each.partition for each in attempt.partitions))
        for _, attempt in committed(table.location)
    ]


def test_a_wave_becomes_visible_as_a_whole_and_replaces_just_its_own_partitions(table):
    wave = table.wave({0: [A, B], 1: [B], 2: []})
    assert (table.seen_by_anybody(), committed(table.location)) == ([], ())
    landed = table.committer.publish(table.location, wave)
    assert table.seen_by_anybody() == [(0, *A), (0, *B), (1, *B)]
    first = records(table.location, landed)
    second = table.publish({1: [C], 2: [C], 0: []}, 2)  # as a healed wave does
    assert table.seen_by_anybody() == [(1, *C), (2, *C)]
    assert (table.read(first), table.read(second)) == ([(0, *A), (0, *B), (1, *B)], [(1, *C), (2, *C)])
    assert table.handle(landed.version).to_pyarrow_table().num_rows == 3
    assert missing_data([*first, *second]) == frozenset()


def test_records_name_the_files_that_hold_the_rows_and_notice_when_they_go(table):
    found = table.publish({0: [A, B], 1: [C], 2: []})
    facts = files_at(table.location.uri).facts("")
    for record in found:
        assert record.rows == sum(file.rows for file in record.files) == {0: 2, 1: 1, 2: 0}[record.partition]
        assert all(facts[file.path].bytes == file.bytes for file in record.files)
    assert len(table.handle().file_uris()) == len(found[0].files) + len(found[1].files)
    files_at(table.location.uri).delete(found[1].files[0].path.rpartition("/")[0])
    assert missing_data(found) == {1}


@CROSSED
def test_a_commit_that_is_repeated_is_there_once_and_gives_the_same_answer(table):
    wave = table.wave({0: [A], 1: []})
    first = table.committer.publish(table.location, wave)
    version = table.version
    assert table.committer.publish(table.location, wave) == first
    assert (table.version, table.seen_by_anybody()) == (version, [(0, *A)])


def test_what_was_committed_can_be_adopted_from_the_log(table):
    landed = table.committer.publish(table.location, table.wave({0: [A, B], 1: []}))
    assert committed(table.location) == (landed,)
    assert table.read(records(table.location, committed(table.location)[0])) == [(0, *A), (0, *B)]
    newer = table.at(epoch=2).prepare()
    newer.publish({1: [C]})
    assert in_log(table) == [(1, 1, (0,)), (2, 1, (1,))]


@CROSSED
def test_a_wave_of_nothing_but_empty_partitions_is_a_commit_too(table):
    found = table.publish({0: [], 1: []})
    assert [(record.version, record.files) for record in found] == [(table.version, ())] * 2
    assert in_log(table) == [(1, 1, (0, 1))]
    assert table.read(found) == []


@CROSSED
def test_a_commit_has_as_many_files_as_were_staged(table):
    staged = stage_frame(
        table.frame({0: [A, B, C], 1: [A]}), WaveFiles(table.location, table.attempt_id, 1, (0, 1), rows_per_file=2)
    )
    metrics = table.measure(staged, (0, 1))
    parts = tuple(
        CommittedPartition(metric.partition, metric.rows, metric.fingerprint, "key", staged.files[metric.partition])
        for metric in metrics
    )
    landed = table.committer.publish(table.location, WaveCommit("run", "joined", table.attempt_id, 1, 1, parts, 100))
    assert {partition: sorted(file.rows for file in files) for partition, files in landed.files.items()} == {
        0: [1, 2],
        1: [1],
    }
    assert table.seen_by_anybody() == [(0, *A), (0, *B), (0, *C), (1, *A)]


def test_an_attempt_that_was_fenced_changes_nothing(table):
    table.publish({0: [A]})
    late = table.wave({0: [B]}, 2)
    newer = table.at(epoch=2).prepare()
    version = table.version
    for overtaken in (
        lambda: table.committer.publish(table.location, late),
        lambda: table.committer.fence(table.location, table.claim),
    ):
        with pytest.raises(Fenced, match=r"epoch 1 .* fenced by epoch 2"):
            overtaken()
    assert (table.version, table.seen_by_anybody()) == (version, [(0, *A)])
    newer.committer.fence(newer.location, newer.claim)
    assert table.version == version


@CROSSED
def test_a_fence_keeps_out_what_the_same_partitions_were_cut_into_before(table):
    older = table.at(location=table.location.of(Share(0, 1)))
    older.publish({0: [A]})
    late = older.wave({0: [B]}, 2)
    newer = table.at(location=table.location.of(Share(0, 3)), epoch=2)
    newer.committer.fence(newer.location, newer.claim, [older.location])
    with pytest.raises(Fenced):
        older.committer.publish(older.location, late)
    newer.publish({0: [C]})
    assert table.seen_by_anybody() == [(0, *C)]
    assert in_log(table) == [(2, 1, (0,))]


@CROSSED
def test_a_table_that_is_not_there_needs_no_fence(table, tmp_path):
    nowhere = replace(table.location, uri=str(tmp_path / "nowhere"))
    table.committer.fence(nowhere, table.claim)
    assert not (tmp_path / "nowhere").exists()


@CROSSED
def test_two_attempts_with_one_epoch_cannot_both_publish(table):
    table.publish({0: [A]})
    other = replace(table.wave({0: []}, 2), wave=1, attempt_id="run.region.1.other")
    with pytest.raises(Fenced):
        table.committer.publish(table.location, other)
    assert table.seen_by_anybody() == [(0, *A)]


def test_intervals_leave_each_other_alone(published):
    other = published.on("it's 2026-11-21T00:00").prepare()
    first = published.publish({0: [A]})
    second = other.publish({0: [B], 1: [C]})
    other.at(epoch=9).prepare()
    third = published.publish({0: [C]}, 2)
    assert published.seen_by_anybody() == [(0, *B), (0, *C), (1, *C)]
    assert (published.read(first), other.read(second), published.read(third)) == (
        [(0, *A)],
        [(0, *B), (1, *C)],
        [(0, *C)],
    )
    assert missing_data([*first, *third]) == missing_data(second) == frozenset()


def test_intervals_that_commit_at_the_same_moment_all_succeed(published):
    others = [published.on(f"2026-11-{day}").prepare() for day in (21, 22, 23)]
    waves = [(other, other.wave({0: [A], 1: [B]})) for other in others]
    together = threading.Barrier(len(waves))

    def publish(pair):
        together.wait(10)
        return pair[0].committer.publish(pair[0].location, pair[1]).version

    with ThreadPoolExecutor(len(waves)) as pool:
        assert len(set(pool.map(publish, waves))) == len(waves)
    assert published.seen_by_anybody() == sorted([(0, *A), (1, *B)] * len(waves))


def test_a_stage_whose_columns_changed_goes_on_and_its_old_versions_stay_readable(table):
    old = table.publish({0: [A], 1: [B]})
    wider = table.at(columns="name string, amount bigint, extra timestamp_ntz", epoch=2).prepare()
    moment = datetime(2026, 1, 1, 0, 0, 0, 123456)
    new = wider.publish({0: [(*C, moment)]})
    assert wider.read(new) == [(0, *C, moment)]
    assert (0, *C, moment) in wider.seen_by_anybody()
    assert table.read(old) == [(0, *A), (1, *B)]


# delta-spark alone


@pytest.fixture
def by_spark(hand: Stagehand) -> Stagehand:
    return with_committer(hand, "delta_spark").prepare()


class SlowCommitter(DeltaSparkCommitter):
    """Spark takes seconds to read the rows that it writes."""

    def __init__(self, hand: Stagehand) -> None:
        super().__init__(hand.spark, hand.location, only_writer=True)
        self.began = threading.Event()

    def staged_rows(self, *arguments: Any) -> DataFrame:
        self.began.set()
        rows = super().staged_rows(*arguments)
        return rows.where("java_method('java.lang.Thread', 'sleep', 6000L) IS NOT NULL")


class OvertakenCommitter(DeltaSparkCommitter):
    """A newer attempt fences the table right before Spark reads the rows."""

    def __init__(self, hand: Stagehand) -> None:
        super().__init__(hand.spark, hand.location, only_writer=True)
        self.newer = hand.at(epoch=2)

    def staged_rows(self, *arguments: Any) -> DataFrame:
        self.newer.prepare()
        return super().staged_rows(*arguments)


def test_a_zombie_in_the_middle_of_a_write_by_spark_changes_nothing(by_spark):
    """The fence lands while Spark is writing:
    the log has no newer token when the zombie begins, and has one when it commits.
    """
    wave, slow = by_spark.wave({0: [A]}), SlowCommitter(by_spark)
    with ThreadPoolExecutor(1) as pool:
        zombie = pool.submit(slow.publish, by_spark.location, wave)
        assert slow.began.wait(10)
        time.sleep(1)  # until Spark has looked at the log
        by_spark.committer.fence(by_spark.location, Claim(2, "newer"))
        with pytest.raises(Fenced):
            zombie.result(60)
    assert by_spark.seen_by_anybody() == []


def test_a_write_that_spark_skips_without_a_word_is_noticed(by_spark):
    """The fence lands after our own look at the log and before Spark's."""
    wave = by_spark.wave({0: [A]})
    with pytest.raises(Fenced):
        OvertakenCommitter(by_spark).publish(by_spark.location, wave)
    assert by_spark.seen_by_anybody() == []


def test_the_staged_copy_goes_once_spark_has_written_the_rows(by_spark):
    by_spark.publish({0: [A], 1: [B]})
    assert files_at(by_spark.location.uri).sizes("_data") == {}


def test_it_is_refused_on_an_object_store_unless_the_user_answers_for_it(spark, hand):
    there = replace(hand.location, uri="s3://bucket/lake/joined")
    with pytest.raises(CommitterRefused, match=r"joined .*overwrite each other.*STAGEHOLD_ONLY_SPARK_WRITER=true"):
        committer_for(CommitterKind.DELTA_SPARK, spark, there, only_writer=False)
    assert committer_for(CommitterKind.DELTA_SPARK, spark, there, only_writer=True)
