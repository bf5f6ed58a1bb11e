"""What is on record of several intervals is what is on record of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.samples import CELL, record, stage_verdict, waiver
from tests.made_records import acceptance

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.run.planning.shared_facts import read_records

FIRST, SECOND, NEVER = "2024-01-01", "2024-01-02", "2024-01-03"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Two intervals with records, of which people and gates have said something; some of it is of another pipeline."""
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        lease = opened.leases.acquire("lease", "me", 60)
        there = Cell("sales", CELL.stage, SECOND)
        opened.partitions.record([record(0), record(1), record(0, cell=there), record(0, epoch=2)], lease)
        opened.partitions.record([record(0, cell=replace(CELL, pipeline="costs"))], lease)
        opened.acceptances.record([acceptance(), acceptance(interval=SECOND), acceptance(pipeline="costs")])
        opened.waivers.record([waiver(), replace(waiver(4), interval=SECOND), replace(waiver(), pipeline="costs")])
        for verdict in (stage_verdict("a"), replace(stage_verdict("b"), cell=there)):
            opened.stage_verdicts.record(verdict)
        yield opened


def test_each_interval_has_what_is_on_record_of_it_alone(ledger: Ledger) -> None:
    together = read_records("sales", [FIRST, SECOND, NEVER], ledger)
    assert together == {
        interval: read_records("sales", [interval], ledger)[interval] for interval in (FIRST, SECOND, NEVER)
    }
    first, second, never = together.values()
    assert first.partitions == ledger.partitions.newest_of("sales", FIRST) != {}
    assert first.waivers == ledger.waivers.of("sales", FIRST) != ()
    assert second.verdicts == ledger.stage_verdicts.of("sales", SECOND) != ()
    assert [len(records.acceptances) for records in (first, second, never)] == [1, 2, 1]
    assert (never.partitions, never.waivers, never.verdicts) == ({}, (), ())
