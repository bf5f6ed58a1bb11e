"""What a chronicle says to who does not open the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.ledger.samples import record
from tests.made_records import acceptance

from stagehold.chronicle import chronicle
from stagehold.chronicle.chronicle import LakeChronicle, facts_told, records_told
from stagehold.model.choices import Acceptance
from stagehold.model.records import Cell, PartitionRecord, TakenPosition
from stagehold.model.source_position import VersionsRead


def word(reason: str) -> Acceptance:
    return acceptance(reason=reason)


def position(version: int) -> TakenPosition:
    return TakenPosition(Cell("p", "s", "i"), "r", VersionsRead(None, version), datetime.now(UTC))


@pytest.fixture
def lake(tmp_path):
    return str(tmp_path)


def test_facts_of_one_kind_come_in_the_order_in_which_they_were_told(lake):
    first, second, other = word("first"), word("second"), position(1)
    LakeChronicle(lake)([first, other])
    LakeChronicle(lake)([second])
    assert facts_told(lake, Acceptance) == [first, second]
    assert facts_told(lake, TakenPosition) == [other]


def test_records_of_partitions_are_told_whether_or_not_they_keep_state(lake):
    records = [record(0), record(1), record(0, epoch=2)]
    LakeChronicle(lake)([records[0], word("first")])
    LakeChronicle(lake)(records[1:])
    assert records_told(lake) == records
    assert facts_told(lake, PartitionRecord) == []


def test_a_file_is_read_once(lake):
    LakeChronicle(lake)([position(1)])
    facts_told(lake, TakenPosition)
    (file,) = Path(lake).rglob("*.jsonl")
    file.write_text("torn since")
    assert len(facts_told(lake, TakenPosition)) == 1


def test_a_file_that_is_compacted_meanwhile_is_looked_for_again(lake, monkeypatch):
    LakeChronicle(lake)([position(1)])
    listed = [{"ledger/2026-11-20/gone.jsonl": 1}, chronicle.chronicle_sizes(chronicle.files_at(lake))]
    monkeypatch.setattr(chronicle, "chronicle_sizes", lambda files: listed.pop(0))
    assert len(facts_told(lake, TakenPosition)) == 1


def test_torn_files_are_passed_over(lake):
    LakeChronicle(lake)([position(1)])
    (file,) = Path(lake).rglob("*.jsonl")
    file.write_text("torn")
    assert facts_told(lake, TakenPosition) == []
