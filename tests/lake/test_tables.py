"""Creating tables and keeping their columns those of their stages."""

from __future__ import annotations

import re
import shutil
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable

from stagehold.errors import StageContractBroken, TableSchemaConflict
from stagehold.lake.commit.delta_spark_committer import DeltaSparkCommitter
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.measure import fingerprints
from stagehold.lake.tables import ensure_table
from stagehold.spec.pipeline import OutputForm
from stagehold.spec.settings.output_settings import CommitterKind

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


def test_a_published_table_takes_wider_types_and_reads_its_old_rows_with_them(shared, spark):
    narrow = shared.at(columns="name string, amount int, share float, price decimal(5,2)")
    old = narrow.prepare().publish({0: [("a", 1, 0.5, Decimal("1.25"))]})
    wide = shared.on("2026-11-21").at(columns="name string, amount bigint, share double, price decimal(12,4)")
    new = wide.prepare().publish({0: [("b", 1 << 40, 0.1, Decimal("1234567.1234"))]})
    whole = [(0, "a", 1, 0.5, Decimal("1.25")), (0, "b", 1 << 40, 0.1, Decimal("1234567.1234"))]
    assert shared.seen_by_anybody() == whole
    read = spark.read.format("delta").load(shared.location.uri).where("amount >= 1 and price >= 1.25 and share > 0")
    assert sorted((row._partition, *row[:4]) for row in read.collect()) == whole
    assert fingerprints(spark, [*old]) == {0: old[0].fingerprint}
    assert fingerprints(spark, [*new]) == {0: new[0].fingerprint}


def test_a_day_with_narrower_types_is_taken_as_it_is(shared):
    shared.at(columns="name string, amount bigint").prepare().publish({0: [("a", 1 << 40)]})
    before = shared.version
    narrow = shared.on("2026-11-21").at(columns="name string, amount int")
    narrow.prepare().publish({0: [("b", 1)]})
    assert shared.seen_by_anybody() == [(0, "a", 1 << 40), (0, "b", 1)]
    assert shared.handle(before).schema().fields == shared.handle().schema().fields


@pytest.mark.parametrize("committer", ["staged", "delta_spark"])
def test_a_day_of_before_a_column_came_is_written_again_as_it_is_recorded(shared, spark, committer):
    own = shared.at(committer=DeltaSparkCommitter(spark, shared.location, only_writer=True))
    day = own if committer == "delta_spark" else shared
    old = day.prepare().publish({0: [A], 1: [B]})
    wider = day.on("2026-11-21").at(columns="name string, amount bigint, extra int")
    wider.prepare().publish({0: [(*B, 7)]})
    with pytest.raises(TableSchemaConflict, match=re.escape('as NULL: F.lit(None).cast("int").alias("extra")')):
        day.at(epoch=2).prepare()
    again = day.at(epoch=2)
    ensure_table(again.location, again.schema, again.claim, as_recorded=True)
    healed = again.publish({0: [A], 1: [B]})
    assert [record.fingerprint for record in healed] == [record.fingerprint for record in old]
    assert fingerprints(spark, healed) == {record.partition: record.fingerprint for record in old}
    rows = spark.read.format("delta").load(shared.location.uri)
    seen = sorted((row._interval, row._partition, row.name, row.amount, row.extra) for row in rows.collect())
    assert seen == [
        ("2026-11-20", 0, *A, None),
        ("2026-11-20", 1, *B, None),
        ("2026-11-21", 0, *B, 7),
    ]
    assert len(shared.seen_by_anybody()) == 3


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("name string, amount bigint, extra int", "`schema: fail` keeps them out: extra"),
        ("name string, amount decimal(38,0)", r"another type: amount \(bigint in the table, decimal\(38,0\) in"),
        ("name string, amount int", r"another type: amount \(bigint in the table, int in the output\)"),
        ("name string", "no longer in the output: amount"),
    ],
)
def test_a_table_whose_schema_may_not_grow_takes_no_other_columns(shared, changed, named):
    output = OutputForm.model_validate({"schema": "fail"})
    shared.prepare().publish({0: [A]})
    before, other = shared.version, shared.on("2026-11-21").at(columns=changed)
    with pytest.raises(TableSchemaConflict, match=named):
        ensure_table(other.location, other.schema, other.claim, output)
    assert shared.version == before
    ensure_table(shared.location, shared.schema, shared.claim, output)


def test_delta_spark_takes_no_narrower_types_as_it_would_write_wide_ones(shared):
    output = OutputForm(committer=CommitterKind.DELTA_SPARK)
    narrow = shared.prepare().on("2026-11-21").at(columns="name string, amount int")
    with pytest.raises(TableSchemaConflict, match="Cast what is of another type"):
        ensure_table(narrow.location, narrow.schema, narrow.claim, output, as_recorded=True)


def test_a_column_of_a_type_that_a_table_is_prepared_for_comes_later(shared):
    shared.prepare().publish({0: [A]})
    wider = shared.on("2026-11-21").at(columns="name string, amount bigint, at timestamp_ntz")
    moment = datetime(2026, 11, 21, 1)
    records = wider.prepare().publish({0: [(*B, moment)]})
    assert wider.read(records) == [(0, *B, moment)]


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
