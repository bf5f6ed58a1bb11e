"""Refused data that a run takes over is its own interval's from then on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.run.clearing.nights import PARTITIONS, Nights
from tests.run.restoring.test_snapshots import DAY, OTHER, save

from stagehold.errors import GateBlocked

pytestmark = pytest.mark.slow

BETWEEN = "type: expect_column_values_to_be_between, column: amount, min_value: 0"


def write_suite(nights: Nights, most: int) -> None:
    text = f"suite: sound\nexpectations:\n  - {{{BETWEEN}, max_value: {most}}}\n"
    Path(nights.settings.suites, "sound.yaml").write_text(text)


def amounts(nights: Nights) -> dict[str, list[int]]:
    (uri,) = {partition.table for partition in nights.ledger.partitions.newest_of("paper", DAY)["prints"]}
    rows: list[dict[str, Any]] = DeltaTable(uri).to_pyarrow_table().to_pylist()
    return {day: sorted(row["amount"] for row in rows if row["_interval"] == day) for day in (DAY, OTHER)}


def test_two_intervals_of_a_table_that_publish_the_same_refused_data_both_have_it(tmp_path):
    nights = Nights(tmp_path)
    prints = nights.pipeline.stage("prints").model_copy(update={"gate": "sound"})
    others = tuple(
        stage.model_copy(update={"gate": None}) for stage in nights.pipeline.stages if stage.name != "prints"
    )
    nights.pipeline = nights.pipeline.model_copy(update={"stages": (*others, prints)})
    write_suite(nights, 0)
    with pytest.raises(GateBlocked):
        nights.run(DAY)
    begun = save(nights)
    with pytest.raises(GateBlocked):
        nights.run(OTHER, "back", snapshot=begun)
    write_suite(nights, 999)
    nights.run(OTHER, "back", snapshot=begun)
    nights.run(DAY)
    found = amounts(nights)
    assert found[DAY] == found[OTHER] != []
    assert len(found[DAY]) == PARTITIONS
