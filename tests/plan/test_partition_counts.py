from __future__ import annotations

import pytest
from tests.plan.test_resume import facts_of, forward, source

from stagehold.model.spec import Exchange, Input, Pipeline, Stage
from stagehold.plan.partition_counts import divided_inputs, partitions_for, splits_for, with_counts
from stagehold.plan.resume import Action, Situation, resume_plan

MEGABYTE = 1024 * 1024


def keyed(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.KEYED, key=("k",))


def stage(name: str, *inputs: Input, partitions: int = 1, most: int = 128, auto: bool = False) -> Stage:
    facts = {"partitions": partitions, "max_parallelism": most, "auto_partitions": auto}
    return Stage(name=name, job=f"jobs.x:{name}", inputs=inputs, **facts)


def pipeline(most: int = 128) -> Pipeline:
    """Sources of 4 and 2 partitions, a stage that joins both by key, one that reads that forward, and one that gathers all."""
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
    assert [one.partitions for one in counted.pipeline.stages] == [4, 2, 7, 7, 1]
    assert counted.undecided == frozenset()


def test_what_is_not_decided_is_named_with_those_that_inherit_it() -> None:
    counted = with_counts(pipeline(), {})
    assert counted.undecided == {"joined", "checked"}
    assert counted.pipeline == pipeline()


def test_an_undecided_stage_is_one_decision_that_says_why() -> None:
    counted = with_counts(pipeline(), {})
    situation = Situation(counted.pipeline, facts_of(counted.pipeline), {}, {}, "env", "params", "run-1", undecided=counted.undecided)
    plan = resume_plan(situation)
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
def test_a_partition_takes_about_sixteen_megabytes_and_there_are_never_more_than_groups(megabytes: int, most: int, partitions: int) -> None:
    declared = pipeline(most)
    joined = declared.stage("joined")
    assert divided_inputs(joined) == ("raw",)
    assert partitions_for(joined, declared, {"raw": megabytes * MEGABYTE}) == partitions


@pytest.mark.parametrize(
    ("total", "files", "most", "splits"),
    [(0, 0, 128, 1), (1, 1, 128, 1), (100, 10, 128, 10), (101, 20, 128, 11), (1000, 3, 128, 3), (1000, 100, 8, 8)],
    ids=["nothing", "less than a split", "exactly", "a little more", "files are not cut", "no more than the stage allows"],
)
def test_a_source_has_as_many_splits_as_its_bytes_take(total: int, files: int, most: int, splits: int) -> None:
    assert splits_for(stage("raw", most=most), 10, total, files) == splits
