from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.topology.graphs import GRAPHS, edges, graph

from stagehold.checkpoints.recovery import DataNeed, data_needs, failover_after_recovery, recover_run
from stagehold.checkpoints.run_log import StageInitialised, VertexFinished
from stagehold.errors import PartitionDataMissing
from stagehold.model.records import AttemptState
from stagehold.spec.outputs import properties_of
from stagehold.spec.pipeline import OutputType
from stagehold.topology.build import DeclaredPartition, topology_of
from stagehold.topology.failover import FailureSituation, VertexFailure
from stagehold.topology.partition_regions import partition_regions
from stagehold.topology.topology import Vertex


def log_of(topology, finished):
    stage = {vertex.id: vertex.stage for vertex in topology.vertices}
    return [StageInitialised(name, 9) for name in dict.fromkeys(stage.values())] + [
        VertexFinished(vertex, stage[vertex], "attempt") for vertex in finished
    ]


def recovered(topology, finished, lost=(), **options):
    return recover_run(
        partition_regions(topology), log_of(topology, finished), lambda name: name not in lost, **options
    )


# graph, finished, data that is gone -> runs again
TABLE = [
    ("all data is there", "a-b b-c", "ab", "", ""),
    ("what an unfinished reader needs is gone", "a-b b-c", "ab", "b-c", "ab"),
    ("what only finished readers needed is gone", "a-b b-c", "ab", "a-b", ""),
    ("a lost late partition leads back to the source, though the middle is there", "s-a a-b b-c", "sab", "b-c", "sab"),
    ("the way back ends where data was reserved for somebody else", "s-ax a-b", "sa", "a-b", "a"),
    ("a finished reader runs after its producer, like any other", "s-a s-b a-x", "sab", "s-b a-x", "sab"),
    ("another finished reader of what is produced again", "a-bc b-d", "ab", "a-bc", "ab"),
    ("nothing had finished", "a-b", "", "a-b", ""),
    ("a result that is gone is made again", "a-b b=", "ab", "b=", "ab"),
    ("a published output that is gone is made again, though its readers have finished", "a=b", "ab", "a=b", "ab"),
    ("an output that flows cannot be read again", "a>b b-c", "a", "", "a"),
    ("but nobody misses it when all of its region has finished", "a>b b-c", "ab", "", ""),
]


@pytest.mark.parametrize(
    ("reads", "finished", "lost", "again"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_runs_again(reads, finished, lost, again):
    plan = recovered(graph(reads), finished, lost.split())
    assert plan.start_over is None
    assert {each.vertex for each in plan.again} == set(again)
    assert set(plan.finished) == set(finished) - set(again)


def test_each_vertex_that_runs_again_says_why():
    plan = recovered(graph("s-a a-b b-c"), "sab", ["b-c"])
    assert [(each.vertex, each.reason) for each in plan.again] == [
        ("s", "s-a is needed and is not available"),
        ("a", "a-b is needed and is not available"),
        ("b", "b-c is needed and is not available"),
    ]


NEEDS = [
    ("a reader has not finished", "a-bc", "ab", DataNeed.RESERVED),
    ("all readers have finished", "a-bc", "abc", DataNeed.OPTIONAL),
    ("the producer has not finished", "a-bc", "b", DataNeed.RELEASED),
    ("nobody reads it, so it is a result", "a-", "a", DataNeed.RESERVED),
    ("it is published", "a=b", "ab", DataNeed.RESERVED),
]


@pytest.mark.parametrize(("reads", "finished", "need"), [row[1:] for row in NEEDS], ids=[row[0] for row in NEEDS])
def test_what_is_wanted_of_data(reads, finished, need):
    topology = graph(reads)
    assert set(data_needs(topology, frozenset(finished)).values()) == {need}


def test_only_reserved_data_is_asked_for():
    asked = []
    recover_run(
        partition_regions(graph("a-b b-c c-d")),
        log_of(graph("a-b b-c c-d"), "ab"),
        lambda name: asked.append(name) or True,
    )
    assert asked == ["b-c"]


CORRUPT = [
    ("a vertex the pipeline does not have", log_of(graph("a z"), "z"), "the pipeline has no such vertex"),
    ("a log that contradicts itself", [StageInitialised("a", 1), StageInitialised("a", 2)], "and then 2"),
]


@pytest.mark.parametrize(("log", "reason"), [row[1:] for row in CORRUPT], ids=[row[0] for row in CORRUPT])
def test_a_log_that_cannot_be_used_means_to_start_over(log, reason):
    plan = recover_run(partition_regions(graph("a")), log, lambda name: True)
    assert plan.finished == plan.again == ()
    assert plan.start_over is not None
    assert reason in plan.start_over


def test_storage_that_cannot_be_asked_means_to_start_over():
    def fails(name):
        raise PartitionDataMissing("a", [0])

    assert recover_run(partition_regions(graph("a-b")), log_of(graph("a-b"), "a"), fails).start_over == str(
        PartitionDataMissing("a", [0])
    )


def staged():
    """Two partitions each of a source stage s and of t, which reads it by index."""
    vertices = [Vertex(f"{stage}{index}", stage, index) for stage in "st" for index in (0, 1)]
    partitions = [DeclaredPartition(f"p{index}", f"s{index}", OutputType.BLOCKING, (f"t{index}",)) for index in (0, 1)]
    return topology_of(vertices, partitions)


SOURCES = [
    # finished, lost, with snapshots: runs again, without: runs again, unrecovered
    ("not all of the stage had finished", "s0 t0", "", "", "s0 t0", ""),
    ("all of it had finished", "s0 s1", "", "", "", "s"),
    ("all had finished, and part of it runs again", "s0 s1 t0", "p1", "s1", "s0 s1 t0", ""),
]


@pytest.mark.parametrize(
    ("finished", "lost", "remembered", "forgotten", "unrecovered"),
    [row[1:] for row in SOURCES],
    ids=[row[0] for row in SOURCES],
)
def test_a_source_that_cannot_say_which_splits_it_gave_out(finished, lost, remembered, forgotten, unrecovered):
    with_snapshots = recovered(staged(), finished.split(), lost.split())
    without = recovered(staged(), finished.split(), lost.split(), without_snapshots=frozenset("s"))
    assert [each.vertex for each in with_snapshots.again] == remembered.split()
    assert [each.vertex for each in without.again] == forgotten.split()
    assert without.unrecovered == frozenset(unrecovered)
    assert with_snapshots.unrecovered == frozenset()


def test_a_later_restart_that_touches_an_unrecovered_stage_restarts_all_of_it_once():
    states = dict.fromkeys(("s0", "s1", "t0"), AttemptState.FINISHED) | {"t1": AttemptState.RUNNING}
    situation = FailureSituation(partition_regions(staged()), states, lambda name: name != "p1")
    plan, left = failover_after_recovery(situation, VertexFailure(("t1",)), frozenset({"s"}))
    assert [restart.vertex for restart in plan.restarts] == ["s0", "s1", "t0", "t1"]
    plan, left = failover_after_recovery(situation, VertexFailure(("t1",)), left)
    assert [restart.vertex for restart in plan.restarts] == ["s1", "t1"]
    assert left == frozenset()


def test_a_restart_that_touches_none_leaves_the_stage_unrecovered():
    states = dict.fromkeys(("s0", "s1", "t0", "t1"), AttemptState.RUNNING)
    situation = FailureSituation(partition_regions(staged()), states, lambda name: True)
    plan, left = failover_after_recovery(situation, VertexFailure(("t1",)), frozenset({"s"}))
    assert ([restart.vertex for restart in plan.restarts], left) == (["t1"], frozenset({"s"}))


@settings(max_examples=50, deadline=None)
@given(topology=GRAPHS, data=st.data())
def test_whatever_is_lost_every_reader_that_has_to_run_finds_its_data(topology, data):
    names = list(topology.position)
    # Only what could have finished: everything it read had finished before it.
    wanted = data.draw(st.sets(st.sampled_from(names)))
    finished = set()
    for name in names:
        producers = {producer for producer, consumer, _ in edges(topology) if consumer == name}
        if name in wanted and producers <= finished:
            finished.add(name)
    kinds = {partition.id: partition for partition in topology.partitions}
    lost = data.draw(st.sets(st.sampled_from(sorted(kinds)))) if kinds else set()
    plan = recovered(topology, sorted(finished), lost)
    assert set(plan.finished) | {each.vertex for each in plan.again} == finished
    for number, group in enumerate(topology.groups):
        if any(consumer not in plan.finished for consumer in group.consumers):
            for partition, producer in ((name, kinds[name].producer) for name in group.partitions):
                readable = properties_of(group.type).reconsumable and partition not in lost
                assert readable or producer not in plan.finished, (number, partition)
        for partition in group.partitions:
            if kinds[partition].producer not in plan.finished:
                assert not set(group.consumers) & set(plan.finished)
