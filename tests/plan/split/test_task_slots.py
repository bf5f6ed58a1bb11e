"""Slots that tasks take, and the pipelines that a number of slots is too small for."""

from __future__ import annotations

import pytest

from stagehold.errors import ScheduleRefused
from stagehold.plan.split.task_slots import NO_LIMIT, task_slots
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.run_settings import ScheduleMode

EAGER, LAZY, BY_SLOT = (
    ScheduleMode.EAGER,
    ScheduleMode.LAZY_FROM_SOURCES,
    ScheduleMode.LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST,
)
BLOCKING, PIPELINED = OutputType.BLOCKING, OutputType.PIPELINED
FORWARD, KEYED = Exchange.FORWARD, Exchange.KEYED


def pipeline(mode, kind, exchange, *, partitions=4, tasks=1):
    def stage(name, inputs):
        output = Output(type=kind if name == "a" else BLOCKING)
        split = {"max_parallel_tasks": tasks}
        return Stage(
            name=name, job="j.x:y", partitions=partitions, max_parallelism=128, output=output, inputs=inputs, **split
        )

    stages = (stage("a", ()), stage("b", (Input(stage="a", exchange=exchange),)))
    return Pipeline(name="p", file="p.yaml", schedule_mode=mode, stages=stages)


@pytest.mark.parametrize(
    ("mode", "kind", "exchange", "tasks", "expected", "fewest"),
    [
        pytest.param(LAZY, BLOCKING, KEYED, 1, {"a": 1, "b": 1}, 1, id="partitions one after the other"),
        pytest.param(LAZY, BLOCKING, KEYED, 4, {"a": 1, "b": 1}, 1, id="tasks wait for each other in the pool"),
        pytest.param(LAZY, PIPELINED, FORWARD, 2, {"a__b": 1}, 1, id="fused partitions one after the other"),
        pytest.param(LAZY, PIPELINED, KEYED, 1, {"a__b": 4}, 4, id="a shuffle inside a region runs at once"),
        pytest.param(BY_SLOT, BLOCKING, KEYED, 2, {"a": 1, "b": 1}, 1, id="slot by slot"),
        pytest.param(BY_SLOT, PIPELINED, KEYED, 1, None, None, id="a shuffle cannot run slot by slot"),
        pytest.param(EAGER, PIPELINED, FORWARD, 1, {"a__b": 1}, 4, id="eager as wide as the graph"),
        pytest.param(EAGER, BLOCKING, FORWARD, 1, {"a": 1, "b": 1}, 4, id="eager tasks fit where the graph does"),
        pytest.param(EAGER, BLOCKING, FORWARD, 4, {"a": 1, "b": 1}, 8, id="eager tasks that wait keep their slots"),
    ],
)
def test_a_pipeline_runs_from_so_many_slots_on(mode, kind, exchange, tasks, expected, fewest):
    made = pipeline(mode, kind, exchange, tasks=tasks)
    for slots in (1, 2, 3, 4, 5, 7, 8, NO_LIMIT):
        if fewest is None or slots < fewest:
            with pytest.raises(ScheduleRefused):
                task_slots(made, slots)
        else:
            assert task_slots(made, slots) == expected
