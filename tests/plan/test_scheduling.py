from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.graphs import GRAPHS, edges, graph

from stagehold.errors import UnknownName
from stagehold.model.records import AttemptState
from stagehold.plan.partition_regions import partition_regions
from stagehold.plan.scheduling import Batch, EagerStrategy, LazyRegionStrategy

FINISHED = AttemptState.FINISHED


def told(strategy, event):
    """One event: "start", "a" finished, "a-b" consumable, "!ab" restarted."""
    if event == "start":
        return strategy.start()
    if event.startswith("!"):
        return strategy.restart(event[1:])
    return strategy.state_changed(event, FINISHED) if len(event) == 1 else strategy.partition_consumable(event)


def answer(batches):
    return " ".join("".join(sorted(batch.vertices)) for batch in batches)


# graph, then event -> batches
LAZY = [
    ("sources start", "a-c b-c", [("start", "a b")]),
    ("a consumer waits for all its partitions", "a-c b-c", [("start", "a b"), ("a", ""), ("b", "c")]),
    ("not for other partitions of the stage", "a-c b-d", [("start", "a b"), ("b", "d"), ("a", "c")]),
    ("all-to-all waits for every producer", "ab-cd", [("start", "a b"), ("b", ""), ("a", "c d")]),
    ("a pipelined region starts as one batch", "a>b b-c", [("start", "ab"), ("b", "c")]),
    ("the producer's region need not be finished", "a>b a-c", [("start", "ab"), ("a", "c")]),
    ("a blocking exchange inside a region is not waited for", "a>b a>c b-c", [("start", "abc")]),
    ("only the part of a group from outside is waited for", "a>c ab-cd", [("start", "b"), ("b", "ac"), ("a", "d")]),
    ("a merged cycle starts with its sources", "x>u x>w u-v v-w", [("start", "uvwx")]),
    ("regions made ready by one event start in topological order", "a-d a-c a-b", [("start", "a"), ("a", "d c b")]),
    ("being told twice starts nothing twice", "a-b", [("start", "a"), ("start", ""), ("a", "b"), ("a", ""), ("a-b", "")]),
    ("a partition of an earlier run is as good", "a-b b-c", [("b-c", "c"), ("start", "a"), ("a-b", "b")]),
    ("a consumer restarts at once while its input is there", "a-b", [("start", "a"), ("a", "b"), ("!b", "b")]),
    ("a producer restarts first, then its consumer", "a-b", [("start", "a"), ("a", "b"), ("!ab", "a"), ("a", "b")]),
    ("a restart of one vertex restarts its region", "a>b b-c", [("start", "ab"), ("b", "c"), ("!ac", "ab"), ("b", "c")]),
    ("an output that was not yet produced is not lost", "a-b", [("start", "a"), ("!a", "a"), ("a", "b")]),
    ("both lost inputs are waited for again", "ab-c", [("start", "a b"), ("a", ""), ("b", "c"), ("!abc", "a b"), ("a", ""), ("b", "c")]),
    ("one of two lost inputs is waited for again", "ab-c", [("start", "a b"), ("a", ""), ("b", "c"), ("!bc", "b"), ("b", "c")]),
]


@pytest.mark.parametrize(("reads", "story"), [row[1:] for row in LAZY], ids=[row[0] for row in LAZY])
def test_lazy_by_region(reads, story):
    strategy = LazyRegionStrategy(partition_regions(graph(reads)))
    assert [(event, answer(told(strategy, event))) for event, _ in story] == story


@pytest.mark.parametrize("state", [state for state in AttemptState if state is not FINISHED])
def test_only_a_finished_vertex_makes_others_ready(state):
    strategy = LazyRegionStrategy(partition_regions(graph("a-b")))
    assert strategy.state_changed("a", state) == ()


def test_a_lone_region_starts_before_its_producers_region_ends():
    strategy = LazyRegionStrategy(partition_regions(graph("a>b a-x")))
    strategy.start()
    assert strategy.state_changed("a", FINISHED) == (Batch(("x",)),)


def test_eager_starts_everything_and_restarts_what_it_is_told():
    strategy = EagerStrategy(graph("a-b b-c"))
    assert strategy.start() == (Batch(("a", "b", "c")),)
    assert strategy.restart("ca") == (Batch(("a", "c")),)
    assert strategy.restart("") == ()
    assert strategy.state_changed("a", FINISHED) == ()
    assert strategy.partition_consumable("a-b") == ()


@pytest.mark.parametrize("event", ["z", "z-z", "!z"])
def test_unknown_names_are_refused(event):
    with pytest.raises(UnknownName):
        told(LazyRegionStrategy(partition_regions(graph("a-b"))), event)
    if event == "!z":
        with pytest.raises(UnknownName):
            told(EagerStrategy(graph("a-b")), event)


@given(GRAPHS, st.data())
def test_every_region_starts_once_and_after_all_it_reads_in_any_order_of_events(topology, data):
    regions = partition_regions(topology)
    strategy = LazyRegionStrategy(regions)
    running, done = [], set()
    started = []

    def begin(batches):
        for batch in batches:
            started.append(batch.vertices)
            running.extend(batch.vertices)
            outside = {producer for producer, consumer, _ in edges(topology) if consumer in batch.vertices} - set(batch.vertices)
            assert outside <= done

    begin(strategy.start())
    while running:
        vertex = running.pop(data.draw(st.integers(0, len(running) - 1)))
        done.add(vertex)
        begin(strategy.state_changed(vertex, FINISHED))
    assert sorted(started) == sorted(regions.regions)


@given(GRAPHS, st.data())
def test_readiness_equals_the_definition_after_any_history(topology, data):
    """The oracle asks for every region whether all it reads from outside is consumable."""
    regions = partition_regions(topology)
    strategy = LazyRegionStrategy(regions)
    names = sorted(topology.partition_position)
    consumable = set()
    started = {batch.vertices for batch in strategy.start()}
    producer = {partition.id: partition.producer for partition in topology.partitions}
    for _ in range(data.draw(st.integers(0, 12)) if names else 0):
        name = data.draw(st.sampled_from(names))
        if data.draw(st.booleans()):
            consumable.add(name)
            started |= {batch.vertices for batch in strategy.partition_consumable(name)}
        else:
            region = regions.regions[regions.region_with(producer[name])]
            consumable -= {partition for partition in names if producer[partition] in region}
            started.discard(region)
            started |= {batch.vertices for batch in strategy.restart([producer[name]])}
        for region in regions.regions:
            read = {n for group in topology.groups if set(group.consumers) & set(region) for n in group.partitions}
            ready = all(n in consumable for n in read if producer[n] not in region)
            assert region in started or not ready
