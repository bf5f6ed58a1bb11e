from __future__ import annotations

import pytest
from tests.plan.test_failover import restarted, situation

from stagehold.errors import UnknownName
from stagehold.plan.determinism import Rerun, after_rerun
from stagehold.plan.failover import Failure, RestartCause, region_failover

# reads, states, lost, failed -> restarted now, held
HELD = [
    ("a finished consumer is held", "a-b", "af bf", "", "a", "a", "b"),
    ("nothing below a held consumer is touched", "a-b b-c", "af bf cf", "", "a", "a", "b"),
    ("a running consumer restarts: it may have read half of the old data", "a-bc", "af bf cr", "", "a", "ac", "b"),
    ("a region of which a part still runs restarts", "a-b b>c", "af bf cr", "", "a", "abc", ""),
    ("a held consumer whose own output is needed and gone restarts", "a-b b-c a-c", "af bf cr", "a-b b-c", "c", "abc", ""),
    ("siblings are held each for itself", "a-bcd", "af bf cf dr", "a-bcd", "d", "ad", "bc"),
]


@pytest.mark.parametrize(("reads", "states", "lost", "failed", "expected", "held"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_finished_consumers_are_held_on_request(reads, states, lost, failed, expected, held):
    plan = region_failover(situation(reads, states, lost.split(), hold_finished=True), Failure(tuple(failed)))
    assert restarted(plan) == expected
    assert "".join(plan.held) == held


def test_nothing_is_held_by_default():
    assert restarted(region_failover(situation("a-b b-c", "af bf cf"), Failure(("a",)))) == "abc"


# fingerprint before and after -> restarted, held, when a ran again in a-b b-c, all finished
JUDGED = [
    ("equal content spares the consumer", "x", "x", "", ""),
    ("other content restarts it and holds the next", "x", "y", "b", "c"),
    ("an unknown old content counts as changed", None, "x", "b", "c"),
    ("an unknown new content counts as changed", "x", None, "b", "c"),
    ("two unknown contents count as changed", None, None, "b", "c"),
]


@pytest.mark.parametrize(("before", "after", "expected", "held"), [row[1:] for row in JUDGED], ids=[row[0] for row in JUDGED])
def test_a_held_consumer_is_judged_by_the_new_content(before, after, expected, held):
    plan = after_rerun(situation("a-b b-c", "af bf cf", hold_finished=True), [Rerun("a-b", before, after)])
    assert restarted(plan) == expected
    assert "".join(plan.held) == held
    assert all(restart.cause is RestartCause.INPUT_CHANGED for restart in plan.restarts)


@pytest.mark.parametrize("state", ["br", "b."])
def test_only_finished_consumers_are_judged(state):
    assert restarted(after_rerun(situation("a-b", f"af {state}", hold_finished=True), [Rerun("a-b", "x", "y")])) == ""


def test_a_restarted_consumer_climbs_to_inputs_that_are_gone():
    assert restarted(after_rerun(situation("ax-b", "af xf bf", ["x-b"], hold_finished=True), [Rerun("a-b", "x", "y")])) == "bx"


def test_an_unknown_partition_is_refused():
    with pytest.raises(UnknownName, match="'z'"):
        after_rerun(situation("a-b"), [Rerun("z", "x", "x")])
