from __future__ import annotations

import pytest

from stagehold.plan.explanation import explain, partition_ranges
from stagehold.plan.resume import Action, Decision, ResumePlan


@pytest.mark.parametrize(
    ("partitions", "expected"), [((), ""), ((3,), "3"), ((0, 1, 2), "0-2"), ((0, 2), "0, 2"), ((0, 1, 4, 6, 7, 8), "0-1, 4, 6-8")]
)
def test_neighbouring_partitions_are_joined(partitions, expected):
    assert partition_ranges(partitions) == expected


def test_decisions_of_one_kind_become_one_line():
    run, reuse = "never computed", "consumable"
    decisions = (Decision("a", 0, Action.REUSE, reuse), Decision("a", 1, Action.RUN, run), Decision("a", 2, Action.RUN, run))
    other = (Decision("b", 0, Action.RUN, run),)
    plan = ResumePlan(decisions + other, {"a": decisions, "b": other})
    assert [str(line) for line in explain(plan)] == [
        "a: reuse 1 of 3 partitions (0): consumable",
        "a: run 2 of 3 partitions (1-2): never computed",
        "b: run 1 of 1 partitions: never computed",
    ]
    assert [line.stage for line in explain(plan, ["b"])] == ["b"]
