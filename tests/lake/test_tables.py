"""Creating tables and keeping their columns those of their stages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from stagehold.errors import StageContractBroken, TableSchemaConflict
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.tables import ensure_table

pytestmark = pytest.mark.spark

A, B = ("a", 1), ("b", 2)


def columns(table) -> list[str]:
    return [field.name for field in DeltaTable(table.location.uri).schema().fields]


def test_recorded_versions_are_kept_for_years_from_the_first_moment(hand, shared):
    for table in (hand, shared):
        properties = DeltaTable(table.prepare().location.uri).metadata().configuration
        assert properties["delta.deletedFileRetentionDuration"] == "interval 3650 days"
        assert properties["delta.logRetentionDuration"] == "interval 3650 days"


def test_a_table_is_partitioned_as_its_commits_replace(hand, shared):
    assert DeltaTable(hand.prepare().location.uri).metadata().partition_columns == ["_partition"]
    assert DeltaTable(shared.prepare().location.uri).metadata().partition_columns == ["_interval", "_partition"]


def test_a_table_that_is_there_and_fits_is_left_alone(hand, shared):
    for table in (hand, shared):
        version = table.prepare().version
        table.prepare()
        assert table.version == version


def test_a_stages_own_table_takes_new_columns_and_its_old_versions_stay_readable(hand):
    old = hand.prepare().publish({0: [A], 1: [B]})
    changed = hand.at(columns="amount string, extra int", epoch=2)
    new = changed.prepare().publish({0: [("x", 1)]})
    assert changed.read(new) == [(0, "x", 1)]
    assert hand.read(old) == [(0, *A), (1, *B)]
    assert columns(hand) == ["amount", "extra", "_partition"]


def test_the_fence_outlives_a_change_of_columns(hand):
    from stagehold.errors import Fenced

    hand.at(epoch=3).prepare().publish({0: [A]})
    hand.at(columns="other int", epoch=4).prepare()
    with pytest.raises(Fenced):
        hand.committer.fence(hand.location, Claim(3, "newer"))


def test_a_published_table_gains_columns_and_keeps_its_rows(shared):
    shared.prepare().publish({0: [A]})
    wider = shared.on("2026-11-21").at(columns="name string, amount bigint, extra int")
    records = wider.prepare().publish({0: [(*B, 7)]})
    assert wider.read(records) == [(0, *B, 7)]
    assert len(shared.seen_by_anybody()) == 2


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("name string", "no longer in the output: amount"),
        ("name string, amount string", "of another type: amount"),
        ("total bigint", "no longer in the output: name, amount"),
    ],
)
def test_a_published_table_neither_loses_nor_changes_columns(shared, changed, named):
    shared.prepare().publish({0: [A]})
    before = shared.version
    with pytest.raises(TableSchemaConflict, match=named):
        shared.at(columns=changed).prepare()
    assert shared.version == before


@pytest.mark.parametrize(
    ("select", "named"),
    [
        ("1 as `a b`", "called 'a b'"),
        ("1 as a, 2 as A", "2 columns called 'a'"),
        ("parse_json('1') as v", "column 'v' of type variant"),
        ("array(parse_json('1')) as v", "column 'v' of type variant"),
        ("null as n", "column 'n' of type void"),
        ("interval '1' day as i", "column 'i' of type interval"),
    ],
)
def test_columns_that_cannot_be_stored_are_refused_by_name(spark, hand, select, named):
    schema = spark.sql(f"SELECT {select}, 0 as _partition").schema
    with pytest.raises(StageContractBroken, match=named):
        ensure_table(hand.location, schema, hand.claim)
    assert not Path(hand.location.uri).exists()


def test_a_frame_without_columns_is_refused(spark, hand):
    with pytest.raises(StageContractBroken, match="no column of its own"):
        ensure_table(hand.location, spark.sql("SELECT 0 as _partition").schema, hand.claim)


@pytest.mark.parametrize("lost", ["_delta_log", "."])
def test_a_table_that_was_deleted_is_made_anew_by_a_server_that_knew_it(hand, shared, lost):
    for table in (hand, shared):
        first = table.prepare().publish({0: [A], 1: [A]})
        table.read(first)
        shutil.rmtree(Path(table.location.uri) / lost)
        again = table.at(epoch=2).prepare()
        assert again.read(again.publish({0: [B]})) == [(0, *B)]
        assert again.seen_by_anybody() == [(0, *B)]
        assert (
            DeltaTable(table.location.uri).metadata().configuration["delta.logRetentionDuration"] == "interval "
            "3650 days"
        )


def test_two_intervals_may_create_a_published_table_at_once(shared):
    from concurrent.futures import ThreadPoolExecutor

    others = [shared.on(f"2026-11-{day}") for day in (20, 21)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda table: table.prepare(), others))
    for table in others:
        table.publish({0: [A]})
    assert shared.seen_by_anybody() == [(0, *A), (0, *A)]
