from __future__ import annotations

import pytest
from tests.plan.resume.situations import forward, gather, source, stage
from tests.plan.split.test_partition_counts import keyed

from stagehold.errors import RegionCycle
from stagehold.plan.split.regions import (
    Region,
    is_divisible,
    scattered_into,
    sources_within,
    stage_regions,
    stored_with,
)
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage


def pipeline(*stages):
    """Stages as "name: input input" with a trailing ``>`` on the name when the output is pipelined."""
    built = []
    for text in stages:
        name, _, inputs = text.partition(":")
        kind = OutputType.PIPELINED if name.endswith(">") else OutputType.BLOCKING
        edges = tuple(Input(stage=stage) for stage in inputs.split())
        built.append(
            Stage(
                name=name.rstrip(">"),
                job="jobs.x:y",
                inputs=edges,
                partitions=1,
                max_parallelism=128,
                output=Output(type=kind),
            )
        )
    return Pipeline(name="sample", file="sample.yaml", stages=tuple(built))


TABLE = [
    ("one stage", ["a"], [("a", "a", "")]),
    ("a blocking chain is a region each", ["a", "b: a", "c: b"], [("a", "a", ""), ("b", "b", "a"), ("c", "c", "b")]),
    ("a pipelined output fuses its reader", ["a>", "b: a", "c: b"], [("a__b", "a b", ""), ("c", "c", "a__b")]),
    ("all readers of a pipelined output are fused", ["a>", "b: a", "c: a"], [("a__b__c", "a b c", "")]),
    (
        "a blocking exchange inside a region changes nothing",
        ["a>", "b", "c: a b", "d: a"],
        [("b", "b", ""), ("a__c__d", "a c d", "b")],
    ),
    ("two inputs from one region are one upstream", ["a>", "b: a", "c: b a"], [("a__b__c", "a b c", "")]),
    (
        "a region follows all it reads",
        ["a", "x>", "b: a", "y: x b"],
        [("a", "a", ""), ("b", "b", "a"), ("x__y", "x y", "b")],
    ),
]


@pytest.mark.parametrize(("stages", "regions"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_regions_in_topological_order(stages, regions):
    expected = tuple(
        Region(name, tuple(members.split()), tuple(upstream.split())) for name, members, upstream in regions
    )
    assert stage_regions(pipeline(*stages)) == expected


def test_regions_that_wait_for_each_other_are_refused_by_name():
    with pytest.raises(RegionCycle) as refused:
        stage_regions(pipeline("a", "x>: a", "u: x", "v: u", "w: x v", "z: w"))
    assert refused.value.regions == ("x__u__w", "v", "z")
    assert "Make the output of one pipelined stage among them blocking" in str(refused.value)


FLOWS, BOUNDED = Output(type=OutputType.PIPELINED), Output(type=OutputType.PIPELINED_BOUNDED)
STORED = Output()


def last(middle: Output, *, exchange: Input, first: Output = STORED) -> bool:
    stages = (
        source("raw").model_copy(update={"output": first}),
        stage("middle", exchange, output=middle),
        stage("last", forward("middle")),
    )
    return is_divisible(stages[-1], Pipeline(name="p", file="p.yaml", stages=stages))


@pytest.mark.parametrize("exchange", [keyed("raw"), gather("raw"), Input(stage="raw", exchange=Exchange.BROADCAST)])
def test_a_fused_exchange_that_is_not_forward_needs_everything_for_any_part(exchange: Input) -> None:
    assert not last(FLOWS, exchange=exchange, first=FLOWS)
    assert not last(BOUNDED, exchange=exchange, first=BOUNDED)


@pytest.mark.parametrize("exchange", [keyed("raw"), gather("raw"), forward("raw")])
def test_stored_inputs_are_read_in_part_however_they_are_read(exchange: Input) -> None:
    assert last(FLOWS, exchange=exchange)
    assert last(STORED, exchange=exchange)


def test_forward_exchanges_may_all_be_fused() -> None:
    assert last(FLOWS, exchange=forward("raw"), first=BOUNDED)


def test_the_rows_of_a_source_are_stored_by_whoever_is_fused_with_it_first() -> None:
    stages = (
        source("raw").model_copy(update={"output": FLOWS}),
        source("codes"),
        stage("middle", forward("raw"), gather("codes"), output=FLOWS),
        stage("last", forward("middle")),
        stage("after", forward("last")),
    )
    built = Pipeline(name="p", file="p.yaml", stages=stages)
    assert [[source.name for source in sources_within(each, built)] for each in stages] == [
        ["raw"], ["codes"], ["raw"], ["raw"], [],
    ]  # fmt: skip
    assert [[source.name for source in stored_with(each, built)] for each in stages[:2]] == [["last"], ["codes"]]


def scattered(*edges: tuple[str, Exchange, str], partitions: int = 4, stored: str = "") -> set[str]:
    """What is scattered into the stage "z", of stages in the order in which the edges name them."""
    names = list(dict.fromkeys(name for producer, _, reader in edges for name in (producer, reader)))
    stages = tuple(
        Stage(
            name=name,
            job="j:f",
            partitions=partitions,
            max_parallelism=128,
            inputs=tuple(Input(stage=one, exchange=exchange) for one, exchange, reader in edges if reader == name),
            output=STORED if name in (*stored, "z") else FLOWS,
        )
        for name in names
    )
    return set(scattered_into(stages[-1], Pipeline(name="p", file="p.yaml", stages=stages)))


def test_rows_are_scattered_that_flow_to_several_partitions_through_a_shuffle_at_any_place() -> None:
    to, by = Exchange.FORWARD, Exchange.KEYED
    assert scattered(("a", to, "b"), ("b", by, "z")) == {"a", "b"}
    assert scattered(("a", by, "b"), ("b", to, "z")) == {"a"}
    assert scattered(("a", Exchange.GATHER, "b"), ("b", Exchange.BROADCAST, "z")) == {"a", "b"}
    assert scattered(("a", to, "b"), ("b", to, "z")) == set()
    assert scattered(("a", by, "b"), ("b", by, "z"), stored="a") == {"b"}
    assert scattered(("a", by, "z"), partitions=1) == set()
