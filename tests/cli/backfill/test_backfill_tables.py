"""What a grid says of intervals that cannot be planned."""

from __future__ import annotations

import pytest

from stagehold.cli.backfill.backfill_command import show_plan
from stagehold.model.backfill import BackfillChoice, WorkOrder
from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan
from stagehold.spec.pipeline import Pipeline

GONE, BAD = "there are no files", "the file is bad"


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        ((GONE, None), ["11-01 is left out: there are no files"]),
        ((GONE, GONE, GONE), ["11-01 to 11-03 (3) are left out: there are no files"]),
        ((GONE, BAD, GONE), [f"11-0{day} is left out: {why}" for day, why in ((1, GONE), (2, BAD), (3, GONE))]),
        ((None, None), []),
    ],
)
def test_intervals_that_follow_each_other_share_a_line(problems, told, capsys):
    intervals = tuple(
        IntervalPlan(f"11-0{day}", WorkOrder(()), problem=problem) for day, problem in enumerate(problems, start=1)
    )
    declared = Pipeline(name="nightly", file="nightly.yaml", stages=())
    plan = BackfillPlan(declared.name, BackfillChoice("11-01", "11-03"), intervals)
    show_plan(plan, declared, as_json=False)
    assert [line for line in capsys.readouterr().out.splitlines() if "left out" in line] == told
