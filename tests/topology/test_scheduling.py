"""What Flink's four calls deploy, in graphs of letters: "a-b" is a blocking exchange, "a>b" a pipelined one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.topology.graphs import GRAPHS, graph

from stagehold.model.records import AttemptState
from stagehold.plan.split.task_slots import slots_needed
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.partition_regions import partition_regions
from stagehold.topology.scheduling import scheduling_strategy

EAGER, LAZY, BY_SLOT = (
    ScheduleMode.EAGER,
    ScheduleMode.LAZY_FROM_SOURCES,
    ScheduleMode.LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST,
)
MANY = 100
FINISHED, FAILED, CANCELED = AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED


def played(mode: ScheduleMode, topology, slots: int, *steps: str) -> list[str]:
    """What is deployed at the start and after each step, regions in order: "a" finished, "!a" failed, "a?" restarts,
    "+p" says that the partition p is consumable.
    """
    regions = partition_regions(topology)
    taken = [slots_needed(topology, region) for region in regions.regions]
    strategy = scheduling_strategy(mode, regions, slots=slots, taken=taken)

    def take(step: str):
        if step.startswith("+"):
            return strategy.on_partition_consumable(step[1:])
        if step.startswith("!"):
            return strategy.on_execution_state_change(step[1:], FAILED)
        if step.endswith("?"):
            return strategy.restart_tasks([step[:-1]])
        return strategy.on_execution_state_change(step, FINISHED)

    return [
        " ".join("".join(region) for region in deployed)
        for deployed in (strategy.start_scheduling(), *map(take, steps))
    ]


# mode, graph, slots -> steps -> what the start and each of them deploy
TABLE = [
    (
        "sources first, readers when all that they read is there",
        LAZY,
        "ab-c c-d",
        MANY,
        "a b c d",
        ["a b", "", "c", "d", ""],
    ),
    ("a pointwise reader waits for its own producer alone", LAZY, "a-c b-d", MANY, "b a", ["a b", "d", "c"]),
    ("an all-to-all reader waits for every producer", LAZY, "ab-cd", MANY, "b a", ["a b", "", "c d"]),
    ("what is pipelined starts together", LAZY, "a>b b-c", MANY, "a b", ["ab", "", "c"]),
    ("a reader starts before its producer's region has ended", LAZY, "a>b a-c", MANY, "a", ["ab", "c"]),
    ("of a region's own partitions none holds it back", LAZY, "ab-b a>c b>c", MANY, "a", ["abc", ""]),
    ("a partition that is there already need not be made", LAZY, "a-b c-b", MANY, "+a-b c", ["a c", "", "b"]),
    ("it is told twice and starts its reader once", LAZY, "a-b", MANY, "+a-b a a", ["a", "b", "", ""]),
    ("a failure starts nothing that reads", LAZY, "a-b", MANY, "!a", ["a", ""]),
    ("a restart starts it again, and its reader after that", LAZY, "a-b", MANY, "!a a? a", ["a", "", "a", "b"]),
    ("a restart that reaches a reader starts that from CREATED", LAZY, "a-b", MANY, "a b? b", ["a", "b", "b", ""]),
    (
        "what is produced again holds its readers back once more",
        LAZY,
        "a-b c-b",
        MANY,
        "a !c a? c? c a",
        ["a c", "", "", "a", "c", "", "b"],
    ),
    ("regions that have to wait start in order as slots come back", LAZY, "a b c d", 2, "b a d", ["a b", "c", "d", ""]),
    ("a failure gives its slot back", LAZY, "a b c", 1, "!a a? b a", ["a", "b", "", "a", "c"]),
    ("what is wider than all slots runs alone", LAZY, "a>b c", 1, "a b", ["ab", "", "c"]),
    ("slot by slot, any number is enough", BY_SLOT, "a-b c-d", 1, "a b c d", ["a", "b", "c", "d", ""]),
    ("eager starts all at once", EAGER, "a-b b-c", 1, "a b", ["a b c", "", ""]),
    ("eager starts again what restarts", EAGER, "a-b c", 1, "!b b? +a-b", ["a b c", "", "b", ""]),
]


@pytest.mark.parametrize(
    ("mode", "text", "slots", "steps", "deployed"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_it_deploys(mode, text, slots, steps, deployed):
    assert played(mode, graph(text), slots, *steps.split()) == deployed


@pytest.mark.parametrize("mode", [LAZY, BY_SLOT])
@given(topology=GRAPHS)
@settings(max_examples=60)
def test_whatever_the_graph_every_region_is_deployed_once_after_all_that_it_reads_and_never_above_the_slots(
    mode, topology
):
    regions = partition_regions(topology)
    strategy = scheduling_strategy(mode, regions, slots=2)
    running, finished = list(strategy.start_scheduling()), set()
    seen = list(running)
    while running:
        assert len(running) <= 2
        region = running.pop()
        for vertex in region:
            finished.add(vertex)
            started = strategy.on_execution_state_change(vertex, FINISHED)
            for other in started:
                inputs = {
                    partition.producer
                    for partition in topology.partitions
                    for group in topology.groups
                    if partition.id in group.partitions and set(group.consumers) & set(other)
                }
                assert inputs - set(other) <= finished
            running += started
            seen += started
    assert sorted(seen) == sorted(regions.regions)


def test_a_region_takes_its_slots_until_the_last_of_it_has_ended():
    topology = graph("a>b c")
    strategy = scheduling_strategy(LAZY, partition_regions(topology), slots=1)
    assert strategy.start_scheduling() == (("a", "b"),)
    assert strategy.on_execution_state_change("a", CANCELED) == ()
    assert strategy.on_execution_state_change("b", CANCELED) == (("c",),)
