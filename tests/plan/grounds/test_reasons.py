"""Every decision says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    FUSED,
    HEALED_DIFFERENT,
    accepted,
    altered,
    blocked,
    changed,
    finished,
    fresh,
    with_stage,
    without,
)

from stagehold.model.partition_set import PartitionSet
from stagehold.plan.grounds.reasons import Places
from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.settings.output_settings import OnCodeChange

REASONS = [
    (fresh(CHAIN), "raw", 0, "never computed for this interval"),
    (DONE, "raw", 0, "consumable, and nothing it follows from changed"),
    (changed(DONE, "clean", code="new"), "clean", 0, "the code of jobs.x:clean changed"),
    (changed(DONE, "raw", splits=("other", "split 1")), "raw", 0, "its source changed"),
    (
        replace(DONE, params="p", environment="e"),
        "raw",
        0,
        "the Spark or Python environment changed; parameters changed",
    ),
    (altered(DONE, "raw", 0, fingerprint="other"), "clean", 0, "an input was computed anew"),
    (
        changed(finished(FUSED), "mapped", code="new"),
        "kept",
        0,
        "an input was computed anew, or the code or inputs of mapped changed",
    ),
    (
        altered(DONE, "raw", 1, fingerprint="other", unexplained=True, reason=HEALED_DIFFERENT),
        "clean",
        1,
        "raw[1] was healed and came out different (fingerprint other, before data raw 1): not deterministic",
    ),
    (
        altered(DONE, "clean", 1, fingerprint="other", unexplained=True, reason="was healed and came out different"),
        "total",
        0,
        "clean[1] was healed and came out different",
    ),
    (
        changed(with_stage(DONE, "clean", on_code_change=OnCodeChange.KEEP), "clean", code="new"),
        "clean",
        0,
        "consumable; made by other code, and kept since the stage says on_code_change: keep",
    ),
    (
        accepted(changed(DONE, "clean", code="new"), "clean", "code clean", "new"),
        "clean",
        0,
        "consumable; made by other code, which ann accepted: code clean is as good",
    ),
    (
        changed(altered(DONE, "raw", 0, fingerprint="other"), "clean", code="new"),
        "clean",
        0,
        "the code of jobs.x:clean changed; an input was computed anew",
    ),
    (altered(DONE, "clean", 1, compute_key="?"), "clean", 1, "it was recorded in a format this version cannot read"),
    (without(DONE, "clean", 1), "total", 0, "reads clean[1], which runs again"),
    (blocked(DONE, "clean", 1, reason="revenue < 0"), "clean", 1, "revenue < 0"),
    (blocked(DONE, "clean", 1), "total", 0, "waits for clean[1], which its gate blocked"),
    (changed(DONE, "clean", code_problem="exec at line 3"), "clean", 0, "its code cannot be compared: exec at line 3"),
]


@pytest.mark.parametrize(("situation", "name", "partition", "reason"), REASONS)
def test_every_decision_says_why(situation, name, partition, reason):
    assert str(resume_plan(situation).of(name)[partition].reason) == reason


def test_places_have_a_hash_for_each_set_or_thousands_of_reasons_are_compared_with_each_other():
    assert len({hash(Places("orders", PartitionSet([partition]))) for partition in range(1000)}) > 990
