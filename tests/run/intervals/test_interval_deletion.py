"""An interval that is deleted: what goes, what stays, and that nobody who dies half-way or lives on brings it back."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from tests.run.clearing.nights import PIPELINE, STAGES, Nights

from stagehold.errors import Fenced, LeaseHeld, UnknownName
from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import CommittedPartition, WaveCommit
from stagehold.lake.published import shows_rows
from stagehold.lake.store.location import table_location
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import IntervalState, PartitionState
from stagehold.run.clearing.interval_garbage import READERS_TIME
from stagehold.run.faults import ClearingPoint, Point
from stagehold.run.intervals.interval_deletion import DELETED, IntervalDeletion
from stagehold.run.intervals.interval_standings import known_intervals

pytestmark = pytest.mark.slow

DAY, NEXT = "2026-11-20", "2026-11-21"
GONE = {stage: {PartitionState.RELEASED} for stage in STAGES}
THERE = {stage: {PartitionState.CONSUMABLE} for stage in STAGES}


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path)
    for day in (DAY, NEXT):
        nights.run(day)
    return nights


def next_wave_of(record: PartitionRecord) -> WaveCommit:
    """What the attempt that made a partition commits next: the same once more."""
    return WaveCommit(
        run_id="r",
        stage=record.cell.stage,
        attempt_id=record.attempt_id,
        epoch=record.epoch,
        wave=record.wave + 1,
        partitions=(CommittedPartition.of(record),),
        cut_into=3,
    )


def deletion(nights: Nights, day: str = DAY) -> IntervalDeletion:
    return IntervalDeletion.of(nights.pipeline, day, nights.workplace, "ann", "loaded twice")


def test_rows_leave_the_table_files_go_and_the_other_interval_stays(nights):
    announced = {stage.stage: stage for stage in deletion(nights).announced().stages}
    assert {name: (record.table, record.partitions, record.rows) for name, record in announced.items()} == {
        "drafts": (None, 3, 3),
        "edits": (None, 3, 3),
        "prints": ("marts.prints", 3, 3),
    }
    cleared = {record.stage: record.files for record in deletion(nights).carry_out() if record.stage}
    assert cleared == {name: record.files for name, record in announced.items()}
    assert nights.states(DAY) == GONE
    assert nights.files(DAY) == {"drafts": [], "edits": []}
    assert (nights.published(DAY), nights.published(NEXT)) == ([], nights.expected)
    assert nights.states(NEXT) == THERE
    assert list(nights.kept(DAY)) == []
    nights.check()


def test_who_did_it_is_in_the_tables_history_and_with_the_run(nights):
    deletion(nights).carry_out()
    uri = table_location(nights.settings.lake_uri, PIPELINE, nights.pipeline.stage("prints"), DAY).uri
    notes = [json.loads(one["userMetadata"])["note"] for one in DeltaTable(uri).history() if "userMetadata" in one]
    assert f"ann deleted {DAY}: loaded twice" in notes
    (event,) = (event for event in nights.ledger.events.of_run(f"r.{DAY}") if event.kind == DELETED)
    assert event.text == "ann deleted the interval: loaded twice"


def test_a_later_run_computes_it_again(nights):
    deletion(nights).carry_out()
    nights.run(DAY, run="again")
    assert nights.published(DAY) == nights.published(NEXT) == nights.expected
    nights.check()


def test_deleting_twice_changes_nothing_more(nights):
    deletion(nights).carry_out()
    versions = DeltaTable(
        table_location(nights.settings.lake_uri, PIPELINE, nights.pipeline.stage("prints"), DAY).uri
    ).version()
    assert deletion(nights).announced().stages == ()
    assert [record for record in deletion(nights).carry_out() if record.files] == []
    assert nights.states(DAY) == GONE
    again = DeltaTable(table_location(nights.settings.lake_uri, PIPELINE, nights.pipeline.stage("prints"), DAY).uri)
    assert again.version() - versions <= 1  # a fence


def test_what_was_never_computed_cannot_be_deleted(nights):
    with pytest.raises(UnknownName, match=f"no interval on record '2026-12-24'. Known: {NEXT}, {DAY}"):
        deletion(nights, "2026-12-24")


def test_nothing_goes_while_somebody_works_on_it(nights):
    nights.write_source(0, 50)
    nights.begin(DAY, "drafts", run="second").go_to("its end")
    worker = nights.begin(DAY, "edits", run="second")
    assert worker.go_to("session")
    with pytest.raises(LeaseHeld):
        deletion(nights).carry_out()
    assert nights.states(DAY) == THERE
    assert nights.published(DAY) == nights.published(NEXT)
    worker.kill()


@pytest.mark.parametrize(
    ("half_way", "of", "taken_out"),
    [
        (Point.BEFORE_PUBLISH, "prints", False),
        (Point.AFTER_PUBLISH, "prints", True),
        (Point.AFTER_RECORD, "prints", True),
        (ClearingPoint.TAKEN_OUT, PIPELINE, True),
    ],
)
def test_whoever_dies_half_way_leaves_what_can_be_repeated_or_run_again(nights, monkeypatch, half_way, of, taken_out):
    def dies(self: object, point: object, name: str, *_: object) -> None:
        if (point, name) == (half_way, of):
            raise KeyboardInterrupt

    place = nights.workplace
    with monkeypatch.context() as dying:
        dying.setattr(type(place.faults), "reach", dies)
        with pytest.raises(KeyboardInterrupt):
            IntervalDeletion.of(nights.pipeline, DAY, place, "ann").carry_out()
    assert nights.published(DAY) == ([] if taken_out else nights.expected)
    assert nights.states(DAY) == THERE
    nights.end_leases()
    (known,) = (
        interval for interval in known_intervals(nights.pipeline, nights.ledger, None) if interval.interval == DAY
    )
    assert known.state is IntervalState.COMPLETE  # as far as the ledger knows; each plan asks the lake
    nights.run(DAY, run="again")
    assert nights.published(DAY) == nights.expected
    deletion(nights).carry_out()
    assert (nights.published(DAY), nights.states(DAY)) == ([], GONE)


def test_an_attempt_that_slept_through_it_cannot_bring_rows_back(nights):
    record = nights.records(DAY, "prints")[0]
    place = table_location(nights.settings.lake_uri, PIPELINE, nights.pipeline.stage("prints"), DAY)
    zombie = next_wave_of(record)
    deletion(nights).carry_out()
    with pytest.raises(Fenced):
        StagedCommitter().publish(place, zombie)
    assert nights.published(DAY) == []


def test_a_log_stays_while_somebody_may_sleep_in_the_middle_of_a_commit_and_goes_a_day_later(nights):
    """Who deletes may have slept, too, and a log has the same names as the one before it."""
    record = nights.records(DAY, "drafts")[0]
    place = table_location(nights.settings.lake_uri, PIPELINE, nights.pipeline.stage("drafts"), DAY)
    asleep = DeltaTable(place.uri)
    deletion(nights).carry_out()
    assert shows_rows(place.uri, None) is False
    zombie = next_wave_of(record)
    with pytest.raises(CommitFailedError):
        StagedCommitter().replace_partitions(asleep, place, zombie, [])
    with pytest.raises(Fenced):
        StagedCommitter().publish(place, zombie)
    nights.collect()
    assert table_exists(place.uri)
    long_ago = time.time() - READERS_TIME.total_seconds() - 60
    for file in Path(place.uri, "_delta_log").iterdir():
        os.utime(file, (long_ago, long_ago))
    nights.collect()
    assert not Path(place.uri).exists()


def test_intervals_are_listed_with_what_is_there_of_them(nights):
    deletion(nights).carry_out()
    states = {interval.interval: interval.state for interval in known_intervals(nights.pipeline, nights.ledger, None)}
    assert states == {DAY: IntervalState.EMPTY, NEXT: IntervalState.COMPLETE}
    newest = known_intervals(nights.pipeline, nights.ledger, 1)[0]
    assert [(stage.stage, stage.consumable, stage.total, stage.rows) for stage in newest.stages] == [
        (stage, 0 if newest.interval == DAY else 3, 3, 3) for stage in STAGES
    ]
