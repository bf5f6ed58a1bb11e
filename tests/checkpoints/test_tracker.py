from __future__ import annotations

import pytest
from tests.topology.graphs import graph

from stagehold.checkpoints.tracker import Clearance, PartitionTracker, TrackedPartition
from stagehold.model.records import AttemptState, RunState
from stagehold.spec.pipeline import OutputType
from stagehold.topology.failover import FailureSituation, VertexFailure, region_failover
from stagehold.topology.partition_regions import partition_regions

LOCAL = TrackedPartition("local", OutputType.BLOCKING, "w1")
STORED = TrackedPartition("stored", OutputType.BLOCKING)
KEPT = TrackedPartition("kept", OutputType.BLOCKING_PERSISTENT, "w1")
ELSEWHERE = TrackedPartition("elsewhere", OutputType.BLOCKING_PERSISTENT, "w2")
ALL = (LOCAL, STORED, KEPT, ELSEWHERE)


@pytest.fixture
def tracker():
    tracker = PartitionTracker()
    for partition in ALL:
        tracker.track(partition)
    return tracker


@pytest.mark.parametrize("kind", list(OutputType))
def test_only_what_the_scheduler_releases_is_tracked(kind):
    tracker = PartitionTracker()
    tracker.track(TrackedPartition("p", kind))
    assert tracker.is_tracked("p") is kind.stored


def test_partitions_are_known_by_id_and_by_worker(tracker):
    assert tracker.tracked() == ALL
    assert tracker.tracked_on("w1") == (LOCAL, KEPT)
    assert tracker.tracked_on("w9") == ()


@pytest.mark.parametrize("names", [["local"], ["local", "local"], ["local", "unknown"]])
def test_stopping_forgets_and_ignores_what_it_does_not_know(tracker, names):
    assert tracker.stop_tracking(names) == (LOCAL,)
    assert not tracker.is_tracked("local")
    assert tracker.tracked_on("w1") == (KEPT,)
    assert tracker.stop_tracking(names) == ()


def test_releasing_says_what_to_delete_and_promoting_what_to_keep(tracker):
    assert tracker.release(["local", "stored", "unknown"]) == Clearance(release=(LOCAL, STORED))
    assert tracker.promote(["kept", "local"]) == Clearance(promote=(KEPT,))
    assert tracker.tracked() == (ELSEWHERE,)


def test_a_lost_worker_takes_only_what_it_held(tracker):
    assert tracker.lose_worker("w1") == (LOCAL, KEPT)
    assert tracker.tracked() == (STORED, ELSEWHERE)
    assert tracker.lose_worker("w1") == ()
    assert tracker.lose_worker("unknown") == ()


def test_a_partition_produced_again_elsewhere_is_no_longer_on_its_old_worker(tracker):
    again = TrackedPartition("local", OutputType.BLOCKING, "w2")
    tracker.track(again)
    assert tracker.lose_worker("w1") == (KEPT,)
    assert tracker.tracked_on("w2") == (ELSEWHERE, again)


@pytest.mark.parametrize("state", list(RunState))
def test_the_end_of_a_run_by_its_state(tracker, state):
    expected = {
        RunState.FINISHED: (Clearance(release=(LOCAL, STORED), promote=(KEPT, ELSEWHERE)), ()),
        RunState.FAILED: (Clearance(release=ALL), ()),
        RunState.CANCELED: (Clearance(release=ALL), ()),
    }
    assert (tracker.end_run(state), tracker.tracked()) == expected.get(state, (Clearance(), ALL))


def test_being_tracked_is_the_answer_to_whether_a_partition_is_available():
    tracker = PartitionTracker()
    tracker.track(TrackedPartition("a-b", OutputType.BLOCKING, "w1"))
    topology = graph("a-b")
    states = {"a": AttemptState.FINISHED, "b": AttemptState.RUNNING}
    now = FailureSituation(partition_regions(topology), states, tracker.is_tracked)
    assert [restart.vertex for restart in region_failover(now, VertexFailure(("b",))).restarts] == ["b"]
    tracker.lose_worker("w1")
    assert [restart.vertex for restart in region_failover(now, VertexFailure(("b",))).restarts] == ["a", "b"]
