"""Fingerprints of staged waves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lake.stagehand import Stagehand

from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.store.location import TableLocation

pytestmark = pytest.mark.spark


def measured(hand: Stagehand, rows: dict[int, Sequence[tuple[Any, ...]]]) -> tuple[PartitionMetrics, ...]:
    return hand.measure(hand.stage(rows), sorted(rows))


def fingerprints(hand: Stagehand, *variants: Sequence[tuple[Any, ...]]) -> list[str]:
    """Each variant is measured as a partition, all in one Spark job."""
    return [record.fingerprint for record in measured(hand, dict(enumerate(variants)))]


COLUMNS = "name string, amount int, some array<int>, pairs map<string, int>, both struct<x: int, y: string>"
TEXTS, NUMBERS = st.none() | st.sampled_from(["", "a", "b"]), st.none() | st.integers(-1, 1)
MAPS = st.dictionaries(st.sampled_from("ab"), NUMBERS, max_size=2)
ROWS = st.tuples(
    TEXTS, NUMBERS, st.none() | st.lists(NUMBERS, max_size=2), st.none() | MAPS, st.none() | st.tuples(NUMBERS, TEXTS)
)


def content(rows: Sequence[tuple[Any, ...]]) -> frozenset[Any]:
    """Rows with how often each is there; texts, since lists and maps cannot be counted."""
    return frozenset(
        Counter(repr((*row[:3], sorted(row[3].items()) if row[3] else row[3], row[4])) for row in rows).items()
    )


@settings(max_examples=2, deadline=None)
@given(frames=st.lists(st.lists(ROWS, max_size=4), min_size=50, max_size=50), seed=st.integers(0, 1000))
def test_fingerprints_are_equal_when_and_only_when_the_rows_are_in_whatever_order_and_files(
    spark, tmp_path_factory, frames, seed
):
    """Nulls count, at any depth; so does how often a row is there;
    neither rows' nor map entries' order does, nor how files are cut.
    """
    hand = Stagehand(spark, TableLocation("s", str(tmp_path_factory.mktemp("lake")), "cell", None), COLUMNS)
    shuffled = [
        [
            (*row[:3], row[3] and dict(reversed(row[3].items())), row[4])
            for row in random.Random(seed).sample(rows, len(rows))
        ]
        for rows in frames
    ]
    whole = fingerprints(hand, *frames)
    scattered = hand.frame(dict(enumerate(shuffled))).repartition(3)
    staged = stage_frame(
        scattered,
        WaveFiles(hand.location, "scattered", 1, tuple(range(len(frames))), arranged=True, rows_per_file=1),
    )
    assert [record.fingerprint for record in hand.measure(staged, range(len(frames)))] == whole
    contents = {fingerprint: content(rows) for fingerprint, rows in zip(whole, frames, strict=True)}
    assert all(contents[fingerprint] == content(rows) for fingerprint, rows in zip(whole, frames, strict=True))
    assert len(set(contents.values())) == len(contents)


@pytest.mark.parametrize(
    ("columns", "left", "right"),
    [
        ("a int, b int", [(None, 1)], [(1, None)]),
        ("a int, b int", [(1, 2)], [(2, 1)]),
        ("a int", [(1,)], [(1,), (1,), (1,)]),
        ("a int", [(1,), (1,)], []),
        ("a int", [(1,), (1,), (2,), (2,)], [(3,), (3,), (4,), (4,)]),
        ("a string", [("",)], [(None,)]),
        ("a array<int>", [([None, 1],)], [([1, None],)]),
        ("a struct<x: int, y: int>", [((None, 1),)], [((1, None),)]),
        ("a map<string, int>", [({"k": 1},)], [({"k": 2},)]),
        (
            "a array<timestamp>",
            [([datetime(2026, 1, 1, 0, 0, 0, 1, UTC)],)],
            [([datetime(2026, 1, 1, 0, 0, 0, 2, UTC)],)],
        ),
        ("a map<string, int>", [(None,)], [({},)]),
        ("a struct<m: map<string, array<int>>>", [(({"k": [1, 2]},),)], [(({"k": [2, 1]},),)]),
    ],
)
def test_different_rows_have_different_fingerprints(hand, columns, left, right):
    first, second = fingerprints(hand.at(columns=columns), left, right)
    assert first != second


def test_the_order_of_a_maps_keys_does_not_count(hand):
    table = hand.at(columns="a map<string, int>, b array<map<int, string>>")
    first, second = fingerprints(
        table, [({"k": 1, "l": 2}, [{1: "x", 2: "y"}])], [({"l": 2, "k": 1}, [{2: "y", 1: "x"}])]
    )
    assert first == second


def test_names_and_types_of_columns_are_part_of_the_fingerprint(hand):
    kinds = ["a int, b int", "a int, c int", "a bigint, b int"]
    found = [fingerprints(hand.at(columns=columns, epoch=epoch), [(1, 2)])[0] for epoch, columns in enumerate(kinds)]
    assert len(set(found)) == len(kinds)


def test_our_own_columns_are_not_part_of_it(hand):
    plain = hand.at(columns="a int")
    grouped = hand.at(columns="a int, _group_8_k int", epoch=2)
    (bare,) = measured(plain, {0: [(1,)]})
    (record, other) = grouped.measure(grouped.stage({0: [(1, 3)], 1: [(1, 4)]}), [0, 1])
    assert bare == PartitionMetrics(0, 1, record.fingerprint)
    assert record.fingerprint == other.fingerprint


def test_how_rows_are_cut_into_files_does_not_count(hand):
    rows = [(f"n{number}", number) for number in range(100)]
    (whole,) = measured(hand, {0: rows})
    frame = hand.frame({0: rows}).repartition(7)
    frame.write.partitionBy("_partition").parquet(f"{hand.location.uri}/_data/other/1")
    from stagehold.lake.commit.staging import StagedWave
    from stagehold.lake.store.files import files_at
    from stagehold.model.records import DataFile

    paths = [path for path in files_at(hand.location.uri).sizes("_data/other/1") if path.endswith(".parquet")]
    assert len(paths) == 7
    scattered = StagedWave(hand.location.uri, "_data/other/1", {0: tuple(DataFile(path, 1, 1) for path in paths)})
    assert hand.measure(scattered, [0]) == (whole,)
