from __future__ import annotations

import pytest

from stagehold.errors import RegionCycle
from stagehold.model.spec import Input, Output, OutputType, Pipeline, Stage
from stagehold.plan.regions import Region, stage_regions


def pipeline(*stages):
    """Stages as "name: input input" with a trailing ``>`` on the name when the output is pipelined."""
    built = []
    for text in stages:
        name, _, inputs = text.partition(":")
        kind = OutputType.PIPELINED if name.endswith(">") else OutputType.BLOCKING
        edges = tuple(Input(stage=stage) for stage in inputs.split())
        built.append(
            Stage(name=name.rstrip(">"), job="jobs.x:y", inputs=edges, partitions=1, max_parallelism=128, output=Output(type=kind))
        )
    return Pipeline(name="sample", file="sample.yaml", stages=tuple(built))


TABLE = [
    ("one stage", ["a"], [("a", "a", "")]),
    ("a blocking chain is a region each", ["a", "b: a", "c: b"], [("a", "a", ""), ("b", "b", "a"), ("c", "c", "b")]),
    ("a pipelined output fuses its reader", ["a>", "b: a", "c: b"], [("a__b", "a b", ""), ("c", "c", "a__b")]),
    ("all readers of a pipelined output are fused", ["a>", "b: a", "c: a"], [("a__b__c", "a b c", "")]),
    ("a blocking exchange inside a region changes nothing", ["a>", "b", "c: a b", "d: a"], [("b", "b", ""), ("a__c__d", "a c d", "b")]),
    ("two inputs from one region are one upstream", ["a>", "b: a", "c: b a"], [("a__b__c", "a b c", "")]),
    ("a region follows all it reads", ["a", "x>", "b: a", "y: x b"], [("a", "a", ""), ("b", "b", "a"), ("x__y", "x y", "b")]),
]


@pytest.mark.parametrize(("stages", "regions"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_regions_in_topological_order(stages, regions):
    expected = tuple(Region(name, tuple(members.split()), tuple(upstream.split())) for name, members, upstream in regions)
    assert stage_regions(pipeline(*stages)) == expected


def test_regions_that_wait_for_each_other_are_refused_by_name():
    with pytest.raises(RegionCycle) as refused:
        stage_regions(pipeline("a", "x>: a", "u: x", "v: u", "w: x v", "z: w"))
    assert refused.value.regions == ("x__u__w", "v", "z")
    assert "Make the output of one pipelined stage among them blocking" in str(refused.value)
