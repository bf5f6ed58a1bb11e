"""What a gate holds is needed as long as its interval may go on with it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.run.clearing.nights import PARTITIONS, Nights
from tests.run.restoring.test_snapshots import DAY, OTHER, save

from stagehold.errors import GateBlocked
from stagehold.model.standing import PartitionState

pytestmark = pytest.mark.slow

SUITE = """suite: sound
expectations:
  - {type: expect_column_values_to_be_unique, column: amount, scope: stage}
  - {type: expect_column_values_to_be_between, column: amount, min_value: 0}
"""


@pytest.fixture
def nights(tmp_path):
    """One amount is in two partitions of the first stage."""
    nights = Nights(tmp_path)
    Path(nights.settings.suites, "sound.yaml").write_text(SUITE)
    nights.write_source(2, 1)
    with pytest.raises(GateBlocked):
        nights.run(DAY)
    return nights


def files(nights: Nights, interval: str = DAY) -> list[Path]:
    records = nights.ledger.partitions.newest_of("paper", interval)["drafts"]
    assert len(records) == PARTITIONS
    return [Path(record.table, file.path) for record in records for file in record.files]


def test_held_files_stay_until_they_are_superseded(nights):
    held = files(nights)
    nights.collect()
    assert all(file.exists() for file in held)
    nights.write_source(2, 3)
    nights.run(DAY)
    nights.collect(timedelta(0))
    assert [file.exists() for file in held] == [True, True, False]


@pytest.mark.parametrize("interval", [DAY, OTHER])
def test_a_run_that_begins_with_held_data_holds_it_and_goes_on(nights, interval):
    begun = save(nights)
    with pytest.raises(GateBlocked):
        nights.run(interval, "back", snapshot=begun)
    states = [partition.state for partition in nights.ledger.partitions.newest_of("paper", interval)["drafts"]]
    assert states == [PartitionState.HELD] * PARTITIONS
    nights.write_source(2, 3)
    nights.run(interval, "back", snapshot=begun)
    assert nights.published(interval) == nights.expected
