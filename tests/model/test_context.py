from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from stagehold import StageContext, stage
from stagehold.model.context import is_stage


def test_a_stage_stays_a_function_that_can_be_called() -> None:
    @stage
    def doubled(ctx: StageContext, source: list[int]) -> list[int]:
        return [number * 2 for number in source if ctx.partitions]

    context = StageContext(pipeline="p", stage="doubled", interval="once", logical_date=None, partitions=(0,), seed=1)
    assert doubled(context, source=[1, 2]) == [2, 4]
    assert doubled.__name__ == "doubled"
    assert is_stage(doubled)
    assert not is_stage(len)


def test_a_context_cannot_be_changed_by_a_stage() -> None:
    context = StageContext(pipeline="p", stage="s", interval="once", logical_date=None, partitions=(0,), seed=1)
    with pytest.raises(FrozenInstanceError):
        context.seed = 2  # type: ignore[misc]
    assert context.logger.name == "stagehold.stage"
