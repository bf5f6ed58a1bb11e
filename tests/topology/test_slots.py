from __future__ import annotations

import pytest
from tests.topology.graphs import graph

from stagehold.errors import ScheduleRefused
from stagehold.plan.split.task_slots import refuse_unless_it_fits, slots_needed
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.build import pipeline_topology
from stagehold.topology.partition_regions import partition_regions

EAGER, LAZY, BY_SLOT = (
    ScheduleMode.EAGER,
    ScheduleMode.LAZY_FROM_SOURCES,
    ScheduleMode.LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST,
)


def two_stages(kind, exchange, producers=3, consumers=3):
    def stage(name, partitions, inputs):
        return Stage(
            name=name, job="j.x:y", partitions=partitions, max_parallelism=128, output=Output(type=kind), inputs=inputs
        )

    stages = (stage("a", producers, ()), stage("b", consumers, (Input(stage="a", exchange=exchange),)))
    return partition_regions(pipeline_topology(Pipeline(name="p", file="p.yaml", stages=stages)))


BLOCKING, PIPELINED = OutputType.BLOCKING, OutputType.PIPELINED
FORWARD, KEYED, GATHER = Exchange.FORWARD, Exchange.KEYED, Exchange.GATHER

# mode, output, exchange, producers, consumers -> fewest slots it runs with, None if with no number
TABLE = [
    (EAGER, BLOCKING, FORWARD, 3, 3, 3),
    (EAGER, PIPELINED, KEYED, 3, 5, 5),
    (EAGER, PIPELINED, GATHER, 4, 1, 4),
    (LAZY, BLOCKING, KEYED, 3, 3, 1),
    (LAZY, PIPELINED, FORWARD, 3, 3, 1),
    (LAZY, PIPELINED, KEYED, 3, 2, 3),
    (LAZY, PIPELINED, FORWARD, 2, 4, 2),
    (BY_SLOT, BLOCKING, KEYED, 3, 3, 1),
    (BY_SLOT, PIPELINED, FORWARD, 3, 3, 1),
    (BY_SLOT, PIPELINED, KEYED, 3, 3, None),
    (BY_SLOT, PIPELINED, FORWARD, 2, 4, None),
    (BY_SLOT, PIPELINED, GATHER, 2, 1, None),
]


@pytest.mark.parametrize(("mode", "kind", "exchange", "producers", "consumers", "fewest"), TABLE)
def test_a_mode_runs_from_so_many_slots_on(mode, kind, exchange, producers, consumers, fewest):
    regions = two_stages(kind, exchange, producers, consumers)
    for slots in (-1, 0, 1, 2, 3, 4, 5, 100):
        if fewest is None or slots < fewest:
            with pytest.raises(ScheduleRefused):
                refuse_unless_it_fits(mode, regions, slots=slots)
        else:
            refuse_unless_it_fits(mode, regions, slots=slots)


@pytest.mark.parametrize(
    ("mode", "slots", "reason", "remedy"),
    [
        (EAGER, 0, "there are 0 slots", "Give it at least 1 slot."),
        (EAGER, 2, "needs 3 slots, but there are 2", "Give it 3 slots, or set schedule_mode: lazy_from_sources."),
        (LAZY, 2, "the region of a:0 starts at once and needs 3 slots", "make an output inside the region blocking"),
        (BY_SLOT, 9, "the pipelined output a:0 is shuffled to b:0", "Make that output blocking"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(mode, slots, reason, remedy):
    with pytest.raises(ScheduleRefused) as refused:
        refuse_unless_it_fits(mode, two_stages(PIPELINED, KEYED), slots=slots)
    assert reason in refused.value.reason
    assert remedy in str(refused.value)


def test_a_region_that_is_held_together_otherwise_is_refused_slot_by_slot_too():
    stages = [
        Stage(name="x", job="j.x:y", partitions=2, max_parallelism=128, output=Output(type=PIPELINED)),
        Stage(name="u", job="j.x:y", partitions=2, max_parallelism=128, inputs=(Input(stage="x"),)),
        Stage(name="v", job="j.x:y", partitions=2, max_parallelism=128, inputs=(Input(stage="u", exchange=KEYED),)),
        Stage(name="w", job="j.x:y", partitions=2, max_parallelism=128, inputs=(Input(stage="x"), Input(stage="v"))),
    ]
    regions = partition_regions(pipeline_topology(Pipeline(name="p", file="p.yaml", stages=tuple(stages))))
    assert len(regions.regions) == 1
    with pytest.raises(ScheduleRefused, match="located together or wait for each other"):
        refuse_unless_it_fits(BY_SLOT, regions, slots=9)


def test_a_slot_holds_one_partition_of_every_stage():
    topology = two_stages(PIPELINED, FORWARD).topology
    assert slots_needed(topology, ["a:0", "b:0"]) == 1
    assert slots_needed(topology, ["a:0", "b:0", "b:1"]) == 2
    assert slots_needed(topology, []) == 0


def test_given_vertices_are_a_stage_each():
    assert slots_needed(graph("ab>c"), "abc") == 1
