"""What an event of a table's asset counts."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.airflow

from tests.ledger.samples import record  # noqa: E402

from stagehold.airflow.telling.task_work import StageWork, asset_facts  # noqa: E402
from stagehold.model.standing import (  # noqa: E402
    DeclaredStage,
    PartitionState,
    Standing,
)
from stagehold.spec.pipeline import Stage  # noqa: E402


@pytest.mark.parametrize(("recorded", "whole"), [(12, False), (16, True)])
def test_an_asset_event_counts_the_declared_partitions(recorded, whole):
    records = tuple(map(record, range(recorded)))
    stage = Stage(name="joined", job="m:f", partitions=16, max_parallelism=128)
    standing = Standing.of(DeclaredStage("joined", 16, result=True), {PartitionState.CONSUMABLE: recorded})
    facts = asset_facts(StageWork(stage, records, (), (), records, ()), standing, "run-1", ())
    assert (facts["partitions"], facts["consumable"], facts["whole"]) == (16, recorded, whole)
