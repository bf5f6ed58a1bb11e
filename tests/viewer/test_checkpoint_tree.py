"""The tree of a checkpoint has its sizes at every level, and opens no data file."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.viewer.samples import RUN, checkpoint, names, orders, partition, sample_lake, write

from stagehold.lake.checkpoints.manifest import VERSION
from stagehold.lake.checkpoints.references import find_checkpoint
from stagehold.model.standing import Amount, PartitionState
from stagehold.viewer.checkpoint_tree import HeldPart, consumable_in, file_troubles, partition_lines, stage_tree


def opened(lake: str, reference: str = "sales/run"):
    stored, number = find_checkpoint(reference, lake)
    return stored.open(number)


def trees(lake: str):
    return tuple(map(stage_tree, opened(lake).stages))


def test_sizes_are_those_of_the_records(tmp_path):
    lake = sample_lake(tmp_path)
    records = orders(lake).partitions
    first, second = trees(lake)
    manifest = opened(lake).manifest
    assert (manifest.run, manifest.number, VERSION) == (RUN, 3, 1)
    assert first.amounts == {
        PartitionState.CONSUMABLE: Amount(2, 4, sum(record.bytes for record in records[:2])),
        PartitionState.BLOCKED: Amount(1, 2, records[2].bytes),
    }
    assert (first.missing, second.missing) == (1, 0)
    assert consumable_in((first, second)) == Amount(3, 6, first.consumable.bytes + second.consumable.bytes)


def test_state_is_told_by_partition_with_the_key_groups_that_it_owns(tmp_path):
    lake = sample_lake(tmp_path)
    held = [record.kept for record in orders(lake).partitions[:2]]
    seen, offsets = trees(lake)[0].states
    assert seen.parts == (
        HeldPart(0, 2, held[0][0].files[0].bytes, 0, 31),
        HeldPart(1, 1, held[1][0].files[0].bytes, 32, 63),
    )
    assert (seen.amount.partitions, seen.amount.rows) == (2, 3)
    assert [part.first_group for part in offsets.parts] == [None, None]


def test_a_stage_without_partitions_is_shown_as_missing(tmp_path):
    lake = str(tmp_path / "lake")
    write(lake, checkpoint(1, replace(orders(lake), partitions=(), verdicts=())))
    (stage,) = trees(lake)
    assert (stage.amounts, stage.missing, [state.amount for state in stage.states]) == ({}, 4, [Amount(), Amount()])


def test_the_tree_needs_no_data_file_and_a_check_says_which_are_gone(tmp_path):
    lake = sample_lake(tmp_path)
    before = trees(lake)
    data = Path(lake, "stages/sales/orders/2026-01-01/_data/attempt-1/0")
    shutil.rmtree(data / "_partition=1")
    (data / "_state/seen/_partition=0/part-0.parquet").write_bytes(b"short")
    assert trees(lake) == before
    checkpoint_now = opened(lake)
    troubles = file_troubles(checkpoint_now.records(checkpoint_now.stage("orders")))
    assert [(trouble.partition, trouble.path.split("/")[-2], trouble.found) for trouble in troubles] == [
        (0, "_partition=0", 5),
        (1, "_partition=1", None),
    ]


def test_a_moved_lake_is_shown_where_it_is_now(tmp_path):
    lake = sample_lake(tmp_path)
    moved = str(shutil.move(lake, tmp_path / "moved"))
    stage = opened(moved).stage("orders")
    assert {row.record.table for row in opened(moved).records(stage)} == {f"{moved}/stages/sales/orders/2026-01-01"}
    assert [file.path for file in stage.position.files] == [f"{moved}/raw/1.parquet", "/elsewhere/2.parquet"]


@pytest.mark.parametrize(
    ("fold_above", "expected"), [(100, [(0, 0), (1, 1), (2, 2), (3, 3)]), (3, [(0, 1), (2, 2), (3, 3)])]
)
def test_neighbours_that_are_alike_are_one_line_if_there_are_many(tmp_path, fold_above, expected):
    lake = str(tmp_path / "lake")
    records = [partition(lake, "orders", number, [{"id": number}], wave) for number, wave in enumerate((0, 0, 1, 0))]
    write(lake, checkpoint(1, replace(orders(lake), partitions=tuple(records), verdicts=())))
    checkpoint_now = opened(lake)
    lines = partition_lines(checkpoint_now.records(checkpoint_now.stages[0]), fold_above)
    assert [(line.first, line.last) for line in lines] == expected
    assert sum(line.rows for line in lines) == 4
    assert (lines[0].fingerprint is None) == (fold_above == 3)


def test_what_the_gate_said_is_in_the_line(tmp_path):
    lake = sample_lake(tmp_path)
    checkpoint_now = opened(lake)
    blocked = partition_lines(checkpoint_now.records(checkpoint_now.stage("orders")))[2]
    assert (blocked.state, blocked.passed, blocked.reason) == (PartitionState.BLOCKED, 1, "3 nulls")
    assert [one.observed for one in blocked.failed] == ["3"]


def test_a_stage_is_found_by_name(tmp_path):
    lake = str(tmp_path / "lake")
    write(lake, checkpoint(1, names(lake)))
    assert opened(lake).stage("names").manifest.parallelism == 1
