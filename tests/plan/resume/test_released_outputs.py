"""What a plan computes only since it was released, and how that is said."""

from __future__ import annotations

from functools import reduce

import pytest
from tests.plan.resume.situations import CHAIN, altered, blocked, changed, finished, with_facts, without

from stagehold.model.partition_set import PartitionSet
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.released_outputs import ReleasedOutput, released_outputs, released_text
from stagehold.plan.resume.situation import Situation

DONE = finished(CHAIN)


def released(situation: Situation, **partitions: set[int]) -> Situation:
    places = [(stage, one) for stage, some in partitions.items() for one in some]
    return reduce(lambda now, place: altered(now, *place, state=PartitionState.RELEASED), places, situation)


INNER = released(DONE, raw={0, 1}, clean={0, 1})
RESTORED = {"forced": frozenset({"total"}), "accepted": frozenset({"raw", "clean"})}


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        pytest.param(DONE, {}, id="all is there"),
        pytest.param(INNER, {}, id="released, and nobody reads it"),
        pytest.param(with_facts(INNER, **RESTORED), {"raw": {0, 1}, "clean": {0, 1}}, id="a restore of what reads it"),
        pytest.param(
            with_facts(released(DONE, raw={0, 1}, clean={1}), **RESTORED),
            {"raw": {1}, "clean": {1}},
            id="a part, and what that is made from",
        ),
        pytest.param(with_facts(released(DONE, raw={0, 1}), **RESTORED), {}, id="what is before it is there"),
        pytest.param(changed(INNER, "total", code="new"), {"raw": {0, 1}, "clean": {0, 1}}, id="code that changed"),
        pytest.param(changed(INNER, "clean", code="new"), {"raw": {0, 1}}, id="what would run anyway is not told"),
        pytest.param(without(INNER, "total", 0), {"raw": {0, 1}, "clean": {0, 1}}, id="a result that is missing"),
        pytest.param(with_facts(DONE, gone={"clean": {1}}, **RESTORED), {}, id="what is lost was not released"),
        pytest.param(blocked(released(DONE, clean={1}), "clean", 0), {}, id="what waits for a gate reads nothing"),
    ],
)
def test_what_is_computed_only_since_it_was_released(situation, expected):
    plan = resume_plan(situation)
    found = {output.stage: output.partitions for output in released_outputs(plan)}
    assert found == {stage: PartitionSet(some) for stage, some in expected.items()}
    computed = {decision.place for decision in plan.decisions if decision.action.computes}
    assert {(stage, one) for stage, some in found.items() for one in some} <= computed


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [(2.0, 3.0, 5.0), (2.0, None, 4.0), (None, None, None)],
    ids=["timed", "one for an average one", "never timed"],
)
def test_its_seconds_are_those_of_the_last_time(first, second, seconds):
    timed = altered(altered(with_facts(INNER, **RESTORED), "clean", 0, seconds=first), "clean", 1, seconds=second)
    (found,) = [output for output in released_outputs(resume_plan(timed)) if output.stage == "clean"]
    assert found.seconds == seconds


def output(stage: str = "orders_by_customer", count: int = 16, seconds: float | None = 40.2) -> ReleasedOutput:
    return ReleasedOutput(stage, PartitionSet(range(count)), seconds)


@pytest.mark.parametrize(
    ("needed", "restored_from", "text"),
    [
        ({}, "shipping_priority", None),
        ({"2026-11-10": []}, None, None),
        (
            {"2026-11-10": [output()]},
            "shipping_priority",
            "restores from shipping_priority; orders_by_customer of 2026-11-10 was released: 16 partitions, about 40 s",
        ),
        (
            {"2026-11-10": [output("orders", 1, 0.44), output()]},
            None,
            "orders of 2026-11-10 was released: 1 partition, about 0.4 s; "
            "orders_by_customer of 2026-11-10 was released: 16 partitions, about 40 s",
        ),
        (
            {"2026-11-10": [output()], "2026-11-11": [], "2026-11-12": [output(count=1_000, seconds=None)]},
            None,
            "orders_by_customer of 2026-11-10 to 2026-11-12 (2 intervals) was released: 1,016 partitions, about 40 s",
        ),
        (
            {"2026-11-10": [output(seconds=None)]},
            None,
            "orders_by_customer of 2026-11-10 was released: 16 partitions, which were never timed",
        ),
    ],
)
def test_it_is_one_sentence(needed, restored_from, text):
    assert released_text(needed, restored_from) == text
