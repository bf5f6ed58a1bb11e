from __future__ import annotations

from tests.ledger.samples import CELL, record

from stagehold.model.records import Cell, DataFile, StatePart
from stagehold.model.standing import PartitionState

FILES = (DataFile("a.parquet", 70, 1), DataFile("b.parquet", 30, 1))
STATE = (
    StatePart("totals", FILES, 2, "f", 1, 1, ""),
    StatePart("counts", (DataFile("c.parquet", 5, 1),), 1, "f", 1, 1, ""),
)
OTHER = Cell("costs", "joined", "day")


def test_the_ledger_has_a_size(ledger):
    assert ledger.sizes.ledger_bytes() > 10_000


def test_what_the_newest_records_name_is_summed_with_the_state_that_they_keep(ledger):
    lease = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    older = [record(0, files=(DataFile("old.parquet", 9999, 1),))]
    newer = [record(0, files=FILES), record(1, files=FILES, kept=STATE), record(2, files=())]
    for some in (older, newer, [record(0, cell=OTHER)]):
        ledger.partitions.record(some, lease)
    assert ledger.sizes.lake(["sales"]) == {"sales": (2, 305)}
    assert ledger.sizes.lake(["sales", "costs", "never"])["costs"] == (1, 1000)
    assert ledger.sizes.lake([]) == {}


def test_data_that_is_gone_or_cannot_be_trusted_does_not_count(ledger):
    lease = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    kept = (PartitionState.CONSUMABLE, PartitionState.HELD, PartitionState.BLOCKED)
    states = (*kept, PartitionState.RELEASED, PartitionState.DAMAGED)
    ledger.partitions.record([record(number, state=state) for number, state in enumerate(states)], lease)
    assert ledger.sizes.lake([CELL.pipeline]) == {"sales": (3, 3000)}
