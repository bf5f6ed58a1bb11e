from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.errors import InvalidTopology, UnknownName
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.topology.build import PATTERNS, DeclaredPartition, all_to_all, pipeline_topology, pointwise, topology_of
from stagehold.topology.topology import ExchangeGroup, ResultPartition, Vertex

B, P = OutputType.BLOCKING, OutputType.PIPELINED


def stage(name, partitions, inputs=(), kind=B):
    edges = tuple(Input(stage=producer, exchange=exchange) for producer, exchange in inputs)
    return Stage(
        name=name, job="jobs.x:y", inputs=edges, partitions=partitions, max_parallelism=128, output=Output(type=kind)
    )


def topology_of_stages(*stages):
    return pipeline_topology(Pipeline(name="sample", file="sample.yaml", stages=stages))


def declared(*partitions, vertices="abc"):
    return topology_of(
        [Vertex(name, name) for name in vertices], [DeclaredPartition(*partition) for partition in partitions]
    )


def test_a_stage_has_a_vertex_and_a_result_partition_for_each_of_its_partitions():
    topology = topology_of_stages(stage("a", 2, kind=OutputType.BLOCKING_PERSISTENT))
    assert topology.vertices == (Vertex("a:0", "a", 0), Vertex("a:1", "a", 1))
    assert topology.partitions == tuple(
        ResultPartition(name, name, OutputType.BLOCKING_PERSISTENT) for name in ("a:0", "a:1")
    )
    assert topology.groups == ()


@pytest.mark.parametrize("exchange", [Exchange.KEYED, Exchange.BROADCAST, Exchange.GATHER])
def test_an_exchange_that_everybody_reads_is_one_group(exchange):
    topology = topology_of_stages(stage("a", 3), stage("b", 2, [("a", exchange)]))
    assert topology.groups == (ExchangeGroup(("a:0", "a:1", "a:2"), ("b:0", "b:1"), B),)


def test_forward_meets_index_by_index():
    topology = topology_of_stages(stage("a", 2, kind=P), stage("b", 2, [("a", Exchange.FORWARD)]))
    assert topology.groups == (ExchangeGroup(("a:0",), ("b:0",), P), ExchangeGroup(("a:1",), ("b:1",), P))


def test_an_output_with_two_readers_is_in_a_group_of_each():
    topology = topology_of_stages(
        stage("a", 2), stage("b", 2, [("a", Exchange.FORWARD)]), stage("c", 1, [("a", Exchange.GATHER)])
    )
    assert topology.groups_reading[topology.partition_number("a:1")] == [1, 2]
    assert topology.group_consumers[2] == [topology.vertex_number("c:0")]
    assert topology.group_producers[2] == [0, 1]


def test_a_hundred_thousand_partitions_all_to_all_cost_no_edges():
    topology = topology_of_stages(
        stage("a", 32_768), stage("b", 32_768, [("a", Exchange.KEYED)]), stage("c", 1, [("b", Exchange.GATHER)])
    )
    assert len(topology.groups) == 2
    assert sum(map(len, [*topology.group_producers, *topology.group_consumers])) == 3 * 32_768 + 1


def test_given_partitions_with_the_same_consumers_share_a_group():
    topology = declared(("p", "a", B, ("c",)), ("q", "b", B, ("c", "c")), ("r", "b", P, ("c",)), ("s", "c", B))
    assert topology.groups == (ExchangeGroup(("p", "q"), ("c",), B), ExchangeGroup(("r",), ("c",), P))
    assert [topology.partitions[number].id for number in topology.outputs[1]] == ["q", "r"]


REFUSED = [
    ("one vertex twice", "aab", [], ["vertices"]),
    ("two producers of one partition", "ab", [("p", "a", B), ("p", "b", B)], ["partitions"]),
    ("an unknown producer", "a", [("p", "z", B)], ["partitions[0].producer"]),
    ("an unknown consumer", "a", [("p", "a", B, ("a", "z"))], ["partitions[0].consumers[1]"]),
    (
        "all problems at once",
        "aa",
        [("p", "y", B, ("z",))],
        ["vertices", "partitions[0].producer", "partitions[0].consumers[0]"],
    ),
    ("a vertex that pipes into itself", "a", [("p", "a", P, ("a",))], ["partitions"]),
    (
        "a cycle of pipelined exchanges",
        "abcd",
        [("p", "a", P, ("b",)), ("q", "b", P, ("a", "c")), ("r", "c", P, ("d",))],
        ["partitions"],
    ),
]


@pytest.mark.parametrize(
    ("vertices", "partitions", "fields"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_impossible_graphs_are_refused_with_every_problem(vertices, partitions, fields):
    with pytest.raises(InvalidTopology) as refused:
        declared(*partitions, vertices=vertices)
    assert [problem.field for problem in refused.value.problems] == fields


def test_a_pipelined_cycle_is_named():
    names = [f"v{index}" for index in range(6)]
    ring = [DeclaredPartition(f"p{index}", name, P, (names[index - 5],)) for index, name in enumerate(names)]
    with pytest.raises(
        InvalidTopology, match=r"through v0, v1, v2, v3, v4, \.\.\.; allowed: a blocking exchange in " r"every cycle"
    ):
        topology_of([Vertex(name, name) for name in names], ring)


def test_a_cycle_with_a_blocking_exchange_is_left_to_the_regions():
    assert len(declared(("p", "a", P, ("b",)), ("q", "b", B, ("a",))).groups) == 2


def test_unknown_names_are_told_with_the_known_ones():
    topology = declared(("p", "a", B))
    assert topology.vertex("a") == Vertex("a", "a")
    assert topology.partition("p") == ResultPartition("p", "a", B)
    with pytest.raises(UnknownName, match=r"There is no vertex 'z'\. Known: a, b, c"):
        topology.vertex("z")
    with pytest.raises(UnknownName, match=r"There is no partition 'z'\. Known: p"):
        topology.partition_number("z")


def test_only_the_first_names_of_a_large_graph_are_told():
    topology = topology_of_stages(stage("a", 100))
    with pytest.raises(UnknownName, match="a:19, and 80 more"):
        topology.vertex("z")


# producers, consumers -> partitions that each consumer reads
POINTWISE = [
    (3, 3, "0 1 2"),
    (4, 2, "01 23"),
    (5, 2, "01 234"),
    (7, 3, "01 23 456"),
    (2, 4, "0 0 1 1"),
    (2, 5, "0 0 0 1 1"),
    (3, 7, "0 0 0 1 1 2 2"),
    (1, 3, "0 0 0"),
    (3, 1, "012"),
]


@pytest.mark.parametrize(("producers", "consumers", "expected"), POINTWISE)
def test_pointwise_reads(producers, consumers, expected):
    read = {consumer: produced for produced, consumed in pointwise(producers, consumers) for consumer in consumed}
    assert [tuple(read[consumer]) for consumer in range(consumers)] == [
        tuple(map(int, text)) for text in expected.split()
    ]


def test_all_to_all_is_one_block_however_wide():
    assert list(all_to_all(100_000, 100_000)) == [(range(100_000), range(100_000))]


def test_only_forward_is_pointwise():
    assert {exchange for exchange in Exchange if PATTERNS[exchange] is pointwise} == {Exchange.FORWARD}


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([pointwise, all_to_all]))
def test_blocks_cover_every_producer_and_every_consumer_once(producers, consumers, pattern):
    blocks = list(pattern(producers, consumers))
    assert [index for produced, _ in blocks for index in produced] == list(range(producers))
    assert [index for _, consumed in blocks for index in consumed] == list(range(consumers))


@given(st.integers(1, 60), st.integers(1, 60))
def test_pointwise_shares_differ_by_at_most_one(producers, consumers):
    sizes = {max(len(produced), len(consumed)) for produced, consumed in pointwise(producers, consumers)}
    assert max(sizes) - min(sizes) <= 1
