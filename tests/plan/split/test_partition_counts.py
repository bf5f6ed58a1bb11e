from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.resume.situations import forward, fresh, source, with_facts

from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.split.partition_counts import (
    InputBytes,
    ParallelismSettings,
    decide_parallelism,
    divided_inputs,
    partitions_for,
    splits_for,
    with_counts,
)
from stagehold.spec.pipeline import Exchange, Input, Pipeline, Stage

MEGABYTE = 1024 * 1024


def keyed(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.KEYED, key=("k",))


def stage(name: str, *inputs: Input, partitions: int = 1, most: int = 128, auto: bool = False) -> Stage:
    facts = {"partitions": partitions, "max_parallelism": most, "auto_partitions": auto}
    return Stage(name=name, job=f"jobs.x:{name}", inputs=inputs, **facts)


def pipeline(most: int = 128) -> Pipeline:
    """Sources of 4 and 2 partitions, a stage that joins both by key, one that reads that forward,
    and one that gathers all.
    """
    beside = Input(stage="codes", exchange=Exchange.BROADCAST)
    return Pipeline(
        name="p",
        file="p.yaml",
        stages=(
            source("raw", 4),
            source("codes", 2),
            stage("joined", keyed("raw"), beside, most=most, auto=True),
            stage("checked", forward("joined")),
            stage("total", Input(stage="checked", exchange=Exchange.GATHER)),
        ),
    )


def test_a_decided_number_goes_to_its_stage_and_to_those_that_read_it_forward() -> None:
    counted = with_counts(pipeline(), {"joined": 7})
    assert [stage.partitions for stage in counted.pipeline.stages] == [4, 2, 7, 7, 1]
    assert counted.undecided == frozenset()


def test_what_is_not_decided_is_named_with_those_that_inherit_it() -> None:
    counted = with_counts(pipeline(), {})
    assert counted.undecided == {"joined", "checked"}
    assert counted.pipeline == pipeline()


def test_an_undecided_stage_is_one_decision_that_says_why() -> None:
    counted = with_counts(pipeline(), {})
    plan = resume_plan(with_facts(fresh(counted.pipeline), undecided=counted.undecided))
    assert [(decision.partition, decision.action, str(decision.reason)) for decision in plan.of("checked")] == [
        (0, Action.RUN, "its number of partitions is decided when its inputs are there")
    ]
    assert str(plan.of("total")[0].reason) == "reads checked[0], which runs again"
    assert not plan.consumable("raw")


@pytest.mark.parametrize(
    ("megabytes", "most", "partitions"),
    [
        (0, 128, 1),
        (1, 128, 1),
        (16, 128, 1),
        (17, 128, 2),
        (160, 128, 11),  # 12 of 128 groups are 15 megabytes
        (100_000, 128, 128),
        (160, 4, 4),
    ],
)
def test_a_partition_takes_about_sixteen_megabytes_and_there_are_never_more_than_groups(
    megabytes: int, most: int, partitions: int
) -> None:
    declared = pipeline(most)
    joined = declared.stage("joined")
    assert divided_inputs(joined) == ("raw",)
    assert partitions_for(joined, declared, {"raw": megabytes * MEGABYTE}) == partitions


@pytest.mark.parametrize(
    ("total", "files", "most", "splits"),
    [(0, 0, 128, 1), (1, 1, 128, 1), (100, 10, 128, 10), (101, 20, 128, 11), (1000, 3, 128, 3), (1000, 100, 8, 8)],
    ids=[
        "nothing",
        "less than a split",
        "exactly",
        "a little more",
        "files are not cut",
        "no more than the stage allows",
    ],
)
def test_a_source_has_as_many_splits_as_its_bytes_take(total: int, files: int, most: int, splits: int) -> None:
    assert splits_for(stage("raw", most=most), 10, total, files) == splits


def read(exchange, *sizes, producers=1):
    return InputBytes(Exchange(exchange), sizes, producers)


def wanted(bytes_per_partition=10, least=1, most=100, fixed=None):
    return ParallelismSettings(bytes_per_partition, least, most, fixed)


TABLE = [
    ("keyed groups are packed up to the limit", [read("keyed", 5, 5, 5, 5, 5)], wanted(), "0-1 2-3 4"),
    ("a group larger than the limit is alone", [read("keyed", 1, 30, 1)], wanted(), "0 1 2"),
    (
        "keyed inputs count together, group by group",
        [read("keyed", 4, 4, 4), read("keyed", 1, 6, 1)],
        wanted(),
        "0 1 2",
    ),
    ("broadcast input does not count", [read("keyed", 5, 5), read("broadcast", 1000)], wanted(), "0-1"),
    ("gathered input does not count", [read("keyed", 5, 5), read("gather", 1000)], wanted(), "0-1"),
    (
        "too few: as few as are enough, as even as they can be",
        [read("keyed", 1, 1, 1, 1, 1, 1)],
        wanted(least=2),
        "0-2 3-5",
    ),
    ("too few: jumps over a number that no limit gives", [read("keyed", 2, 2, 2, 2)], wanted(least=3), "0 1 2 3"),
    ("too many: the smallest limit that is few enough", [read("keyed", 9, 9, 9, 9)], wanted(most=2), "0-1 2-3"),
    (
        "no limit gives an allowed number: split by count",
        [read("keyed", 9, 9, 9, 9)],
        wanted(least=3, most=3),
        "0 1 2-3",
    ),
    ("more than there are groups: split by count", [read("keyed", 9, 9)], wanted(least=3), "- 0 1"),
    ("many producers make ranges narrow", [read("keyed", 0, 0, 0, 0, 0, producers=16384)], wanted(), "0-1 2-3 4"),
    ("more producers than pieces still move on", [read("keyed", 0, 0, producers=40000)], wanted(), "0 1"),
    (
        "too many only because ranges are narrow: split by count",
        [read("keyed", 0, 0, 0, producers=32768)],
        wanted(most=2),
        "0-2",
    ),
    (
        "next to a forward input groups are split by count",
        [read("keyed", 5, 5, 5, 5), read("forward", 0)],
        wanted(),
        "0-1 2-3",
    ),
    ("an even split rounds down, as Flink's does", [read("keyed", *[1] * 7)], wanted(fixed=3), "0-1 2-3 4-6"),
    ("a fixed number splits by count", [read("keyed", 50, 1, 1, 1)], wanted(fixed=2), "0-1 2-3"),
]


def groups(text):
    """``-`` is a partition without groups."""
    bounds = [(part.split("-")[0], part.split("-")[-1]) for part in text.split()]
    return [range(int(first), int(last) + 1) if first else range(0) for first, last in bounds]


@pytest.mark.parametrize(("inputs", "bounds", "ranges"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_key_groups_of_every_partition(inputs, bounds, ranges):
    decided = decide_parallelism(inputs, bounds)
    assert decided.partitions == len(decided.groups)
    assert list(map(list, decided.groups)) == list(map(list, groups(ranges)))


COUNTS = [
    ("the bytes decide", [read("forward", 25)], wanted(), 3),
    ("never under the least", [read("forward", 25)], wanted(least=7), 7),
    ("never over the most", [read("forward", 2500)], wanted(most=7), 7),
    ("more pieces than one partition may open", [read("forward", *([0] * 70000))], wanted(), 3),
    ("only broadcast inputs give the least", [read("broadcast", 2500)], wanted(least=2), 2),
    ("no input at all gives the least", [], wanted(), 1),
    ("a fixed number stays", [read("forward", 2500)], wanted(fixed=4), 4),
]


@pytest.mark.parametrize(
    ("inputs", "bounds", "partitions"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS]
)
def test_partitions_without_key_groups(inputs, bounds, partitions):
    decided = decide_parallelism(inputs, bounds)
    assert (decided.partitions, decided.groups) == (partitions, ())


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
