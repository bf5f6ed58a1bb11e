from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topology.graphs import GRAPHS, edges, graph

from stagehold.model.records import AttemptState
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.topology.build import pipeline_topology
from stagehold.topology.partition_regions import partition_regions, releasable_partitions

# Reads as "a>b" pipelined, "a-b" blocking, "ab-cd" all-to-all; regions in topological order.
TABLE = [
    ("lone vertices are regions", "a b", "a b"),
    ("blocking exchanges split", "a-b b-c", "a b c"),
    ("pipelined exchanges fuse", "a>b b>c", "abc"),
    ("pointwise pipelined gives small regions", "a>c b>d", "ac bd"),
    ("all-to-all pipelined gives one", "ab>cd", "abcd"),
    ("all-to-all blocking splits all", "ab-cd", "a b c d"),
    ("two producers of one pipelined reader", "a>c b>c", "abc"),
    ("a blocking exchange inside a region changes nothing", "a>b a>c b-c", "abc"),
    ("regions that wait for each other are merged", "x>u x>w u-v v-w", "uvwx"),
    ("so are those that wait through an all-to-all group", "a>d ab-ce b>e c-d", "abcde"),
    ("a cycle of blocking exchanges is one region", "a-b b-a", "ab"),
    ("a long way round is merged", "a>b b-c c-d d-e e-f a>f", "abcdef"),
    ("what is before and after a cycle stays apart", "s-x x>u x>w u-v v-w w-t", "s uvwx t"),
    ("a region may read a group it produces a part of", "a>c ab-cd", "b ac d"),
    ("a region follows those it reads", "b-a c-b", "c b a"),
]


@pytest.mark.parametrize(("reads", "regions"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_regions_of_vertices(reads, regions):
    found = partition_regions(graph(reads))
    assert ["".join(sorted(region)) for region in found.regions] == regions.split()


def test_vertices_located_together_are_one_region():
    found = partition_regions(graph("a-b c-d e", together={"x": "bd", "y": "e"}))
    assert ["".join(region) for region in found.regions] == ["a", "c", "bd", "e"]


def test_regions_of_a_pipeline_follow_the_indices():
    stages = (
        Stage(name="a", job="j.x:y", partitions=2, max_parallelism=128, output=Output(type=OutputType.PIPELINED)),
        Stage(name="b", job="j.x:y", partitions=2, max_parallelism=128, inputs=(Input(stage="a"),)),
        Stage(
            name="c",
            job="j.x:y",
            partitions=1,
            max_parallelism=128,
            inputs=(Input(stage="b", exchange=Exchange.GATHER),),
        ),
    )
    found = partition_regions(pipeline_topology(Pipeline(name="p", file="p.yaml", stages=stages)))
    assert found.regions == (("a:0", "b:0"), ("a:1", "b:1"), ("c:0",))
    assert found.region_with("b:1") == 1
    assert list(found.groups_read) == [[0], [1], [2]]
    assert list(found.groups_produced) == [[0, 2], [1, 2], []]


def reachable(start, successors):
    seen, rest = set(), [start]
    while rest:
        for target in successors[rest.pop()]:
            if target not in seen:
                seen.add(target)
                rest.append(target)
    return seen


@given(GRAPHS)
def test_regions_are_what_must_run_together_and_what_waits_for_each_other(topology):
    """The oracle: fuse over pipelined edges, then over cycles, until nothing changes."""
    regions = [{vertex.id} for vertex in topology.vertices]

    def merge(a, b):
        if a is not b:
            regions.remove(b)
            a |= b

    def of(vertex):
        return next(region for region in regions if vertex in region)

    for producer, consumer, kind in edges(topology):
        if kind.consumed_while_produced:
            merge(of(producer), of(consumer))
    names = {vertex: min(of(vertex)) for vertex in topology.position}
    successors = {
        name: {names[c] for p, c, _ in edges(topology) if names[p] == name} - {name} for name in names.values()
    }
    for name in successors:
        for other in reachable(name, successors):
            if name in reachable(other, successors):
                merge(of(name), of(other))
    assert {frozenset(region) for region in partition_regions(topology).regions} == {
        frozenset(region) for region in regions
    }


@given(GRAPHS)
def test_regions_partition_the_vertices_and_follow_what_they_read(topology):
    found = partition_regions(topology)
    assert sorted(vertex for region in found.regions for vertex in region) == sorted(topology.position)
    assert all(found.region_with(producer) <= found.region_with(consumer) for producer, consumer, _ in edges(topology))


# graph, vertices that have finished -> partitions that may be deleted
RELEASABLE = [
    ("the reader's end releases", "a-b", "b", "a-b"),
    ("the producer's end does not", "a-b", "a", ""),
    ("all readers count", "a-bc", "ab", ""),
    ("the last reader's end releases", "a-bc", "bc", "a-bc"),
    ("every group of an output counts", "a-b a-c", "bc", "a-b a-c"),
    ("an all-to-all exchange waits for all", "ab-cd", "c", ""),
    ("an all-to-all exchange is released as a whole", "ab-cd", "cd", "a-cd b-cd"),
    ("a region counts as a whole", "a-b b>c", "b", ""),
    ("a region that has ended has read", "a-b b>c", "bc", "a-b"),
    ("persistent outputs stay", "a=b", "ab", ""),
    ("pipelined outputs are their producer's", "a>b", "ab", ""),
    ("an output without readers stays", "a-b b-", "b", "a-b"),
    ("a blocking output inside a region goes with the region", "a>b a-b", "ab", "a-b"),
]


def deletable(topology, finished):
    states = {name: AttemptState.FINISHED if name in finished else AttemptState.RUNNING for name in topology.position}
    return releasable_partitions(partition_regions(topology), states)


@pytest.mark.parametrize(
    ("reads", "finished", "released"), [row[1:] for row in RELEASABLE], ids=[row[0] for row in RELEASABLE]
)
def test_what_all_readers_have_read_may_be_deleted(reads, finished, released):
    assert " ".join(deletable(graph(reads), finished)) == released


def test_a_partition_read_in_two_groups_waits_for_both():
    topology = graph("a-b")
    both = type(topology)(
        topology.vertices,
        topology.partitions,
        (*topology.groups, type(topology.groups[0])(("a-b",), ("a",), OutputType.BLOCKING)),
    )
    assert deletable(both, "b") == ()
    assert deletable(both, "ab") == ("a-b",)


@given(GRAPHS, st.data())
def test_what_may_be_deleted_equals_the_definition(topology, data):
    regions = partition_regions(topology)
    finished = data.draw(st.sets(st.sampled_from(sorted(topology.position))))
    done = {vertex for region in regions.regions if set(region) <= finished for vertex in region}
    readers = {}
    for group in topology.groups:
        for name in group.partitions:
            readers.setdefault(name, set()).update(group.consumers)
    expected = tuple(
        partition.id
        for partition in topology.partitions
        if partition.type is OutputType.BLOCKING and partition.id in readers and readers[partition.id] <= done
    )
    assert deletable(topology, finished) == expected
