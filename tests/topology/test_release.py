from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topology.graphs import GRAPHS, graph

from stagehold.model.records import AttemptState
from stagehold.spec.pipeline import OutputType
from stagehold.topology.partition_regions import partition_regions
from stagehold.topology.release import releasable_partitions

# graph, vertices that have finished -> partitions that may be deleted
TABLE = [
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


@pytest.mark.parametrize(("reads", "finished", "released"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
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
