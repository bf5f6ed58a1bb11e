from __future__ import annotations

import pytest
from tests.plan.test_partition_counts import keyed
from tests.plan.test_resume import forward, gather, source, stage

from stagehold.model.spec import Exchange, Input, Output, OutputType, Pipeline
from stagehold.plan.fusion import is_divisible

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
