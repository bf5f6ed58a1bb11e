from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.model.spec import Exchange
from stagehold.plan.parallelism import InputBytes, ParallelismSettings, decide_parallelism, source_partitions


def read(exchange, *sizes, producers=1):
    return InputBytes(Exchange(exchange), sizes, producers)


def wanted(bytes_per_partition=10, least=1, most=100, fixed=None):
    return ParallelismSettings(bytes_per_partition, least, most, fixed)


TABLE = [
    ("keyed groups are packed up to the limit", [read("keyed", 5, 5, 5, 5, 5)], wanted(), "0-1 2-3 4"),
    ("a group larger than the limit is alone", [read("keyed", 1, 30, 1)], wanted(), "0 1 2"),
    ("keyed inputs count together, group by group", [read("keyed", 4, 4, 4), read("keyed", 1, 6, 1)], wanted(), "0 1 2"),
    ("broadcast input does not count", [read("keyed", 5, 5), read("broadcast", 1000)], wanted(), "0-1"),
    ("gathered input does not count", [read("keyed", 5, 5), read("gather", 1000)], wanted(), "0-1"),
    ("too few: as few as are enough, as even as they can be", [read("keyed", 1, 1, 1, 1, 1, 1)], wanted(least=2), "0-2 3-5"),
    ("too few: jumps over a number that no limit gives", [read("keyed", 2, 2, 2, 2)], wanted(least=3), "0 1 2 3"),
    ("too many: the smallest limit that is few enough", [read("keyed", 9, 9, 9, 9)], wanted(most=2), "0-1 2-3"),
    ("no limit gives an allowed number: split by count", [read("keyed", 9, 9, 9, 9)], wanted(least=3, most=3), "0-1 2 3"),
    ("more than there are groups: split by count", [read("keyed", 9, 9)], wanted(least=3), "0 1 -"),
    ("many producers make ranges narrow", [read("keyed", 0, 0, 0, 0, 0, producers=16384)], wanted(), "0-1 2-3 4"),
    ("more producers than pieces still move on", [read("keyed", 0, 0, producers=40000)], wanted(), "0 1"),
    ("too many only because ranges are narrow: split by count", [read("keyed", 0, 0, 0, producers=32768)], wanted(most=2), "0-2"),
    ("next to a forward input groups are split by count", [read("keyed", 5, 5, 5, 5), read("forward", 0)], wanted(), "0-1 2-3"),
    ("a fixed number splits by count", [read("keyed", 50, 1, 1, 1)], wanted(fixed=2), "0-1 2-3"),
]


def groups(text):
    return tuple(range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1) for part in text.split() if part != "-")


@pytest.mark.parametrize(("inputs", "bounds", "ranges"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_key_groups_of_every_partition(inputs, bounds, ranges):
    decided = decide_parallelism(inputs, bounds)
    assert decided.partitions == len(ranges.split())
    assert tuple(owned for owned in decided.groups if owned) == groups(ranges)


COUNTS = [
    ("the bytes decide", [read("forward", 25)], wanted(), 3),
    ("never under the least", [read("forward", 25)], wanted(least=7), 7),
    ("never over the most", [read("forward", 2500)], wanted(most=7), 7),
    ("more pieces than one partition may open", [read("forward", *([0] * 70000))], wanted(), 3),
    ("only broadcast inputs give the least", [read("broadcast", 2500)], wanted(least=2), 2),
    ("no input at all gives the least", [], wanted(), 1),
    ("a fixed number stays", [read("forward", 2500)], wanted(fixed=4), 4),
]


@pytest.mark.parametrize(("inputs", "bounds", "partitions"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS])
def test_partitions_without_key_groups(inputs, bounds, partitions):
    decided = decide_parallelism(inputs, bounds)
    assert (decided.partitions, decided.groups) == (partitions, ())


def test_a_source_takes_the_configured_number_as_far_as_it_may():
    assert source_partitions(configured=16, most=128) == 16
    assert source_partitions(configured=256, most=128) == 128


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=40),
    limit=st.integers(1, 200),
    bounds=st.tuples(st.integers(1, 50), st.integers(1, 50)),
)
def test_every_group_is_taken_once_and_the_bounds_hold(sizes, limit, bounds):
    least, most = sorted(bounds)
    decided = decide_parallelism([read("keyed", *sizes)], wanted(limit, least, most))
    assert [group for owned in decided.groups for group in owned] == list(range(len(sizes)))
    assert least <= decided.partitions <= most
