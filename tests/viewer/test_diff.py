"""What differs between two checkpoints: on record, and row by row."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.viewer.samples import NOW, checkpoint, kept, names, order, orders, partition, write

from stagehold.errors import InvalidArgument
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint
from stagehold.model.source_position import FilesRead, SourceFile, VersionsRead
from stagehold.viewer.diff import Change, checkpoint_diff, differing, stage_diff
from stagehold.viewer.row_diff import row_diff


@pytest.fixture
def lake(tmp_path):
    return str(tmp_path / "lake")


def opened(lake: str, number: int, *stages) -> OpenedCheckpoint:
    return write(lake, checkpoint(number, *stages)).open(number)


def with_partition(lake: str, stage, number: int, rows, **facts):
    """The stage with other rows in a partition that it has."""
    old = stage.partitions[number]
    new = partition(lake, "orders", number, rows, 1, kept=facts.pop("kept", old.kept), **facts)
    records = tuple(new if partition is old else partition for partition in stage.partitions)
    return replace(stage, partitions=records)


def test_a_checkpoint_does_not_differ_from_itself(lake):
    assert checkpoint_diff(*[opened(lake, number, orders(lake), names(lake)) for number in (1, 2)]).alike


def test_stages_partitions_and_state_that_differ_are_told(lake):
    before = orders(lake)
    after = with_partition(
        lake, before, 1, [order(2), order(9)], kept=(kept(lake, "seen", 1, [{"_group": 1, "id": 9}]),)
    )
    after = replace(after, partitions=after.partitions[:2], verdicts=(), max_parallelism=256)
    diff = checkpoint_diff(opened(lake, 1, before, names(lake)), opened(lake, 2, after))
    (stage,) = diff.stages
    assert (diff.only_in_a, diff.only_in_b, stage.max_parallelism) == (("names",), (), (128, 256))
    assert stage.partitions == {Change.ONLY_IN_A: (2,), Change.CONTENT: (1,)}
    assert differing(stage.partitions) == {1, 2}
    offsets = next(state for state in stage.states if state.name == "offsets")
    assert offsets.partitions == {Change.ONLY_IN_A: (1,)}


def test_a_partition_of_another_state_or_size_is_told_as_that(lake):
    before = orders(lake)
    after = with_partition(lake, before, 1, [order(2)])
    blocked = replace(after.partitions[0], state=before.partitions[2].state, kept=())
    after = replace(after, partitions=(blocked, *after.partitions[1:]))
    diff = stage_diff(opened(lake, 1, before).stages[0], opened(lake, 2, after).stages[0])
    assert diff.partitions == {Change.STATE: (0,), Change.ROWS: (1,)}


def test_source_positions_are_compared_by_file(lake):
    before = replace(orders(lake), position=FilesRead(tuple(SourceFile(path, 1, "1") for path in "abc")))
    after = replace(
        before, position=FilesRead((SourceFile("b", 1, "2"), SourceFile("c", 1, "1"), SourceFile("d", 1, "1")))
    )
    found = checkpoint_diff(opened(lake, 1, before), opened(lake, 2, after)).stages[0].position
    assert (found.only_in_a, found.only_in_b, found.changed) == (("a",), ("d",), ("b",))
    versions = replace(before, position=VersionsRead(None, 3))
    told = checkpoint_diff(opened(lake, 3, versions), opened(lake, 4, after)).stages[0].position
    assert (told.a, told.b) == ("the table at version 3", "3 files")


def rows_between(lake: str, after, key=()):
    a, b = opened(lake, 1, orders(lake)), opened(lake, 2, after)
    return row_diff(a, b, stage_diff(a.stages[0], b.stages[0]), key, pytest.fail)


def test_rows_are_compared_by_key(lake):
    found = rows_between(lake, with_partition(lake, orders(lake), 1, [order(2, "9.99"), order(8)]), ["id"])
    assert (found.removed[0], found.added[0], found.changed[0]) == (1, 1, 1)
    assert found.removed[1].rows[0][0] == 3
    assert found.added[1].rows[0][0] == 8
    assert found.changed[1].columns[:3] == ("id", "price in A", "price in B")


def test_without_a_key_equal_rows_are_counted(lake):
    found = rows_between(lake, with_partition(lake, orders(lake), 1, [order(2), order(2), order(3)]))
    assert (found.removed[0], found.added[0], found.changed) == (0, 1, None)


def test_partitions_that_are_equal_are_not_read(lake):
    after = with_partition(lake, orders(lake), 1, [order(2)])
    shutil.rmtree(Path(lake, "stages/sales/orders/2026-01-01/_data/attempt-1/0/_partition=0"))
    a, b = opened(lake, 1, replace(after, partitions=after.partitions)), opened(lake, 2, after)
    assert row_diff(a, b, stage_diff(a.stages[0], b.stages[0]), ["id"], pytest.fail) is None


def test_columns_of_one_side_are_named_and_left_out(lake):
    rows = [{name: value for name, value in order(2).items() if name != "tags"} | {"note": "x"}]
    found = rows_between(lake, with_partition(lake, orders(lake), 1, rows), ["id"])
    assert (found.only_in_a, found.only_in_b, found.changed[0]) == (("tags",), ("note",), 0)


@pytest.mark.parametrize(
    ("key", "words"), [("nothing", "columns that both have: id, price, at, tags"), ("at", "twice")]
)
def test_what_is_no_key_is_refused(lake, key, words):
    rows = [order(2), {**order(3), "at": order(2)["at"]}]
    with pytest.raises(InvalidArgument, match=words):
        rows_between(lake, with_partition(lake, orders(lake), 1, rows, recorded_at=NOW), [key])
