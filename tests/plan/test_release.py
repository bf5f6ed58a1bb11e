from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.graphs import GRAPHS, graph

from stagehold.errors import UnknownName
from stagehold.model.records import AttemptState
from stagehold.model.spec import OutputType
from stagehold.plan.partition_regions import partition_regions
from stagehold.plan.release import KeepUntilEnd, ReleaseByRegion, releasable_partitions

# graph, then vertex that finishes ("!a" is reset) -> partitions that may be deleted
TABLE = [
    ("the reader's end releases", "a-b", [("a", ""), ("b", "a-b")]),
    ("the last reader's end releases", "a-bc", [("a", ""), ("b", ""), ("c", "a-bc")]),
    ("every group of an output counts", "a-b a-c", [("b", "a-b"), ("c", "a-c")]),
    ("an all-to-all exchange is released as a whole", "ab-cd", [("c", ""), ("d", "a-cd b-cd")]),
    ("a region counts as a whole", "a-b b>c", [("b", ""), ("c", "a-b")]),
    ("persistent outputs stay", "a=b", [("a", ""), ("b", "")]),
    ("pipelined outputs are their producer's", "a>b", [("a", ""), ("b", "")]),
    ("an output without readers stays", "a-b b-", [("b", "a-b")]),
    ("a blocking output inside a region goes with the region", "a>b a-b", [("a", ""), ("b", "a-b")]),
    ("being told twice changes nothing", "a-bc", [("b", ""), ("b", ""), ("c", "a-bc"), ("c", "")]),
    ("a reset reader is waited for again", "a-bc", [("b", ""), ("!b", None), ("c", ""), ("b", "a-bc")]),
    ("a reset vertex makes its region unfinished", "a-b b>c", [("b", ""), ("!b", None), ("c", ""), ("b", "a-b")]),
    ("a reset of what has not finished changes nothing", "a-bc", [("!b", None), ("b", ""), ("c", "a-bc")]),
    ("what was released is offered again after a second run", "a-b", [("b", "a-b"), ("!b", None), ("b", "a-b")]),
    ("two resets in one region are one", "a-b b>c", [("b", ""), ("c", "a-b"), ("!b", None), ("!c", None), ("b", ""), ("c", "a-b")]),
]


@pytest.mark.parametrize(("reads", "story"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_release_by_region(reads, story):
    strategy = ReleaseByRegion(partition_regions(graph(reads)))
    answers = []
    for event, _ in story:
        answers.append((event, strategy.unfinished(event[1:]) if event.startswith("!") else " ".join(strategy.finished(event))))
    assert answers == story


def test_a_partition_read_in_two_groups_waits_for_both():
    topology = graph("a-b")
    both = type(topology)(
        topology.vertices, topology.partitions, (*topology.groups, type(topology.groups[0])(("a-b",), ("a",), OutputType.BLOCKING))
    )
    strategy = ReleaseByRegion(partition_regions(both))
    assert strategy.finished("b") == ()
    assert strategy.finished("a") == ("a-b",)


def test_everything_can_be_kept_until_the_end():
    strategy = KeepUntilEnd()
    assert strategy.finished("b") == ()
    assert strategy.unfinished("b") is None


def test_unknown_vertices_are_refused():
    with pytest.raises(UnknownName):
        ReleaseByRegion(partition_regions(graph("a-b"))).finished("z")


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
    states = {vertex: AttemptState.FINISHED if vertex in finished else AttemptState.RUNNING for vertex in topology.position}
    assert releasable_partitions(regions, states) == expected
