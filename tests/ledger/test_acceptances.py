from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import CELL, record
from tests.made_records import acceptance

from stagehold.model.records import Cell

WORD = acceptance()


def test_words_hold_for_their_interval_or_for_all_in_order(ledger):
    elsewhere, later = replace(WORD, interval="2024-01-02"), replace(WORD, recorded_code="new", accepted_code="newer")
    here, other = replace(WORD, interval="2024-01-01", accepted_by="bob"), replace(WORD, stage="orders")
    ledger.acceptances.record([WORD, elsewhere])
    ledger.acceptances.record([later, here, other, replace(WORD, pipeline="costs")])
    assert ledger.acceptances.holding("sales", ["2024-01-01"]) == (WORD, later, here, other)
    assert ledger.acceptances.holding("sales", ["2024-01-02", "2024-01-03"]) == (WORD, elsewhere, later, other)
    assert ledger.acceptances.of("sales") == (WORD, elsewhere, later, here, other)
    assert ledger.acceptances.holding("refunds", ["2024-01-01"]) == ()


def test_the_newest_records_of_a_stage_are_found_in_every_interval(ledger):
    lease = ledger.leases.acquire("lease", "me", 60)
    other_day, other_stage = Cell("sales", "joined", "2024-01-02"), Cell("sales", "orders", "2024-01-01")
    kept = [record(0, epoch=2), record(1), record(0, cell=other_day)]
    ledger.partitions.record([record(0), *kept, record(0, cell=other_stage)], lease)
    assert ledger.partitions.newest_everywhere("sales", CELL.stage) == tuple(kept)
