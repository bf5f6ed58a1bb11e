"""Which tasks wait for which: a table of pipelines, with each task and those that read from it."""

from __future__ import annotations

import pytest

from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.task_graph import share_chains, task_topology
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage

SIGNS = {"-": Exchange.FORWARD, "*": Exchange.KEYED, "+": Exchange.BROADCAST, "!": Exchange.GATHER}


def pipeline(text: str) -> Pipeline:
    """Stages as "name/partitions/tasks:inputs", of which each has the sign of its exchange before it; a name with ``>``
    is computed along with its readers.
    """
    stages = []
    for declared in text.split():
        head, _, inputs = declared.partition(":")
        name, partitions, tasks = head.split("/")
        edges = tuple(Input(stage=one[1:], exchange=SIGNS[one[0]], key=("k",)) for one in inputs.split(",") if one)
        kind = OutputType.PIPELINED if name.endswith(">") else OutputType.BLOCKING
        stages.append(
            Stage(
                name=name.rstrip(">"),
                job="j:f",
                inputs=edges,
                partitions=int(partitions),
                max_parallelism=128,
                max_parallel_tasks=int(tasks),
                output=Output(type=kind),
            )
        )
    return Pipeline(name="p", file="p.yaml", stages=tuple(stages))


TABLE = [
    ("stages without shares follow each other", "a/4/1 b/4/1:-a", {"a": "b", "b": ""}),
    (
        "share i of a forward reader reads share i",
        "a/4/2 b/4/2:-a",
        {"a[0-1]": "b[0-1]", "a[2-3]": "b[2-3]", "b[0-1]": "", "b[2-3]": ""},
    ),
    (
        "shares of another cut read those that they overlap",
        "a/4/2 b/4/4:-a",
        {"a[0-1]": "b[0-0] b[1-1]", "a[2-3]": "b[2-2] b[3-3]"} | dict.fromkeys((f"b[{n}-{n}]" for n in range(4)), ""),
    ),
    (
        "a keyed reader reads all",
        "a/4/2 b/2/2:*a",
        {"a[0-1]": "b[0-0] b[1-1]", "a[2-3]": "b[0-0] b[1-1]", "b[0-0]": "", "b[1-1]": ""},
    ),
    (
        "so does one that gathers, and one that is broadcast to",
        "a/2/2 b/1/1:!a",
        {"a[0-0]": "b", "a[1-1]": "b", "b": ""},
    ),
    (
        "of two exchanges between two regions the wider one counts",
        "a>/2/2 b/2/2:-a c/2/2:-b,+b",
        {"a__b[0-0]": "c[0-0] c[1-1]", "a__b[1-1]": "c[0-0] c[1-1]", "c[0-0]": "", "c[1-1]": ""},
    ),
    ("what is fused is one task", "a>/4/1 b/4/1:-a", {"a__b": ""}),
]


@pytest.mark.parametrize(("text", "readers"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_task_is_read_by(text, readers):
    topology = task_topology(pipeline(text))
    found = {vertex.id: "" for vertex in topology.vertices}
    for group in topology.groups:
        for partition in group.partitions:
            found[partition] = " ".join(group.consumers)
    assert found == readers


CHAINS = [
    ("no shares, no chain", "a/4/1 b/4/1:-a", "a b"),
    ("share i of a forward reader follows share i", "a/4/2 b/4/2:-a c/4/2:-b", "a-b-c"),
    ("shares of another cut do not", "a/4/2 b/4/4:-a", "a b"),
    ("a keyed reader waits for all, and begins another chain", "a/4/2 b/4/2:-a c/4/2:*b d/4/2:-c", "a-b c-d"),
    ("of two exchanges between two regions the wider one counts", "a>/2/2 b/2/2:-a c/2/2:-b,+b", "a__b c"),
    ("two readers of one share, and what reads both", "a/4/2 b/4/2:-a c/4/2:-a d/4/2:-b,-c", "a-b-c-d"),
    ("what all of it reads stands outside", "x/1/1 a/4/2 b/4/2:-a,+x", "x a-b"),
    ("a chain that would wait for itself ends before", "a/4/2 x/1/1:!a b/4/2:-a,+x", "a x b"),
    ("so does one by way of another chain", "a/4/2 x/4/2:*a y/4/2:-x b/4/2:-a,*y c/4/2:-b", "a x-y b-c"),
]


@pytest.mark.parametrize(("text", "chains"), [row[1:] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_regions_are_chained(text, chains):
    declared = pipeline(text)
    found = share_chains(declared, [region.name for region in stage_regions(declared)])
    assert " ".join("-".join(region.name for region in chain) for chain in found) == chains


def test_regions_that_are_left_out_are_in_no_chain():
    found = share_chains(pipeline("a/4/2 b/4/2:-a c/4/2:-b"), ["b", "c"])
    assert [[region.name for region in chain] for chain in found] == [["b", "c"]]
