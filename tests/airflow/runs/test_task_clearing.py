"""The tasks a resume clears, as a table: what the planner decided, how the tasks stand, what is cleared."""

from __future__ import annotations

import pytest
from tests.plan.resume.situations import DECISIONS

from stagehold.airflow.runs.task_clearing import UNMAPPED, DagTask, tasks_to_clear
from stagehold.errors.request_errors import NothingToResume, RunStillActive
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.split.regions import Region
from stagehold.plan.split.shares import shares

KEY = ComputeKey("code", "settings", "environment", "params", "inputs")
LETTERS = {"=": Action.REUSE, "?": Action.REUSE, "r": Action.RUN, "h": Action.HEAL, "b": Action.BLOCKED}
WORDS = {"s": "success", "f": "failed", "u": "upstream_failed", "-": None}


def plan(**stages: str) -> ResumePlan:
    """One letter per partition.

    ``B`` is a partition that waits for a blocked one and was never judged itself, ``?`` one that hinges on a healed
    one.
    """
    by_stage = {
        stage: tuple(
            DECISIONS[LETTERS[letter.lower()]](
                stage,
                index,
                because(f"because {letter}"),
                None if letter.isupper() else KEY,
                hinges_on=("a", 0) if letter == "?" else None,
            )
            for index, letter in enumerate(letters)
        )
        for stage, letters in stages.items()
    }
    return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage)


def cleared(states: str, decided: ResumePlan, others: str = "", run_state: str = "failed") -> list[str]:
    regions = [Region(stage, (stage,), ()) for stage in decided.by_stage]
    tasks = [DagTask(region.name, region.name, WORDS[letter]) for region, letter in zip(regions, states, strict=True)]
    tasks += [DagTask(f"other{index}", None, WORDS[letter]) for index, letter in enumerate(others)]
    return [task.task_id for task in tasks_to_clear("dag run", run_state, regions=regions, tasks=tasks, plan=decided)]


@pytest.mark.parametrize(
    ("states", "decided", "others", "expected"),
    [
        pytest.param("sfu", plan(a="==", b="=r", c="rr"), "", ["b", "c"], id="a stage failed half-way"),
        pytest.param(
            "sff", plan(a="==", b="==", c="=="), "", ["b", "c"], id="died after its last partition was recorded"
        ),
        pytest.param("sfu", plan(a="=h", b="rr", c="rr"), "", ["a", "b", "c"], id="upstream data is gone"),
        pytest.param("ssf", plan(a="h=", b="==", c="=r"), "", ["a", "c"], id="a finished task between stays"),
        pytest.param(
            "ssf",
            plan(a="h=", b="?=", c="=r"),
            "",
            ["a", "b", "c"],
            id="a finished task that hinges on healed data is asked again",
        ),
        pytest.param("sss", plan(a="rr", b="rr", c="rr"), "", ["a", "b", "c"], id="code changed since"),
        pytest.param("sf-", plan(a="==", b="r=", c="rr"), "", ["b", "c"], id="never scheduled"),
        pytest.param(
            "sfu", plan(a="==", b="rb", c="BB"), "", ["b"], id="one partition can run, what waits for the gate stays"
        ),
        pytest.param("fsf", plan(a="=b", b="==", c="rr"), "", ["c"], id="a blocked branch stays, the other goes on"),
        pytest.param(
            "sfu", plan(a="==", b="=r", c="rr"), "su", ["b", "c", "other1"], id="other people's tasks of the DAG"
        ),
        pytest.param("sss", plan(a="==", b="==", c="=="), "f", ["other0"], id="only somebody else's task failed"),
    ],
)
def test_a_resume_clears_the_least_that_ends_the_run(states, decided, others, expected):
    assert cleared(states, decided, others) == expected


def test_a_region_of_several_stages_is_one_task():
    decided = plan(a="==", b="=r")
    region = Region("a__b", ("a", "b"), ())
    (task,) = tasks_to_clear(
        "dag run", "failed", regions=[region], tasks=[DagTask("a__b", "a__b", "failed")], plan=decided
    )
    assert task.reason == "runs 1 of 4 partitions: because r"


def test_a_task_that_hinges_on_healed_data_says_so():
    decided = plan(a="h=", b="?=")
    regions = [Region("a", ("a",), ()), Region("b", ("b",), ())]
    tasks = [DagTask("a", "a", "failed"), DagTask("b", "b", "success")]
    found = tasks_to_clear("dag run", "failed", regions=regions, tasks=tasks, plan=decided)
    assert [task.reason for task in found] == [
        "runs 1 of 2 partitions: because h",
        "may have to run 1 of 2 partitions: because ?",
    ]


SHARES = shares(8, 4)


def mapped(states: str, *, missing: int = 0) -> list[DagTask]:
    """Instances of one mapped task over 8 partitions; the last ``missing`` shares have no instance in the run."""
    known = len(SHARES) - missing
    return [
        DagTask("b", "b", WORDS[letter], index if index < known else UNMAPPED, share)
        for index, (share, letter) in enumerate(zip(SHARES, states, strict=True))
    ]


@pytest.mark.parametrize(
    ("states", "decided", "missing", "expected"),
    [
        pytest.param("sfss", "==r=====", 0, [("b", 1)], id="one share failed half-way"),
        pytest.param("sfsf", "========", 0, [("b", 1), ("b", 3)], id="died after their last partition was recorded"),
        pytest.param("ssss", "h=====h=", 0, [("b", 0), ("b", 3)], id="data of two shares is gone"),
        pytest.param("ssss", "rrrrrrrr", 0, [("b", 0), ("b", 1), ("b", 2), ("b", 3)], id="code changed since"),
        pytest.param("sffs", "==rb=b==", 0, [("b", 1)], id="a share that its gate holds stays"),
        pytest.param("uuuu", "rrrrrrrr", 4, ["b"], id="never expanded"),
        pytest.param("ss--", "====rrrr", 2, ["b"], id="cut into more shares since"),
    ],
)
def test_of_a_mapped_task_only_the_shares_with_something_to_run_are_cleared(states, decided, missing, expected):
    tasks = mapped(states, missing=missing)
    chosen = tasks_to_clear("dag run", "failed", regions=[Region("b", ("b",), ())], tasks=tasks, plan=plan(b=decided))
    assert list(dict.fromkeys(task.address for task in chosen)) == expected


def test_a_share_is_named_with_its_partitions():
    chosen = tasks_to_clear(
        "dag run", "failed", regions=[Region("b", ("b",), ())], tasks=mapped("sfss"), plan=plan(b="==r=====")
    )
    assert [(task.name, task.reason) for task in chosen] == [("b[2-3]", "runs 1 of 2 partitions: because r")]


def test_tasks_that_are_not_ours_are_left_alone():
    decided = plan(a="r")
    regions = [Region("a", ("a",), ())]
    tasks = [DagTask("old", "a stage that was removed", "failed"), DagTask("a", "a", "failed")]
    assert [
        task.task_id for task in tasks_to_clear("dag run", "failed", regions=regions, tasks=tasks, plan=decided)
    ] == ["a"]


@pytest.mark.parametrize("state", ["running", "queued"])
def test_a_run_that_goes_on_is_not_resumed(state):
    with pytest.raises(RunStillActive, match=f"still {state}"):
        cleared("s", plan(a="r"), run_state=state)


def test_a_resume_with_nothing_to_do_is_refused_with_the_reason():
    with pytest.raises(NothingToResume, match="all 2 partitions are consumable"):
        cleared("s", plan(a="=="), run_state="success")


def test_a_resume_names_the_partitions_that_are_blocked_and_not_those_that_wait_for_them():
    with pytest.raises(NothingToResume, match=r"a gate blocked a\[1\], and nothing"):
        cleared("fu", plan(a="=b", b="BB"), others="u")
