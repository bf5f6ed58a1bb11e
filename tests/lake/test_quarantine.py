"""The side table of rows that were set aside follows what is published."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable
from tests.lake.paper_table import INTERVAL, write_file
from tests.made_records import partition_record

from stagehold.lake.quarantine import bring_up_to_date
from stagehold.model.records import QUARANTINE, Cell, PartitionRecord, StatePart


@pytest.fixture
def records(tmp_path):
    """Two partitions, of each of which one row was set aside."""
    return [record(str(tmp_path / "t"), partition) for partition in range(2)]


def record(uri: str, partition: int) -> PartitionRecord:
    aside = write_file(uri, "attempt", 1, partition, [("bad", partition)])
    part = StatePart(QUARANTINE, aside, 1, "aside", 2, 128, "")
    return partition_record(partition, Cell("p", "t", INTERVAL), table=uri, kept=(part,))


def shown(uri: str) -> list[int]:
    return sorted(DeltaTable(uri).to_pyarrow_table()["_partition"].to_pylist())


def test_what_is_published_whole_since_is_not_aside_any_more(tmp_path, records):
    uri = str(tmp_path / "t__quarantine")
    assert bring_up_to_date(uri, INTERVAL, records, 2)
    assert shown(uri) == [0, 1]
    computed_without_a_gate = [replace(records[0], kept=(), attempt_id="later"), records[1]]
    assert bring_up_to_date(uri, INTERVAL, computed_without_a_gate, 2)
    assert shown(uri) == [1]
    assert not bring_up_to_date(uri, INTERVAL, computed_without_a_gate, 2)


def test_of_partitions_that_there_are_no_more_nothing_is_shown(tmp_path, records):
    uri = str(tmp_path / "t__quarantine")
    bring_up_to_date(uri, INTERVAL, records, 2)
    assert bring_up_to_date(uri, INTERVAL, records, 1)
    assert shown(uri) == [0]
    assert not bring_up_to_date(uri, INTERVAL, records, 1)


def test_without_anything_aside_there_is_no_table(tmp_path, records):
    uri = tmp_path / "t__quarantine"
    assert not bring_up_to_date(str(uri), INTERVAL, [replace(record, kept=()) for record in records], 2)
    assert not uri.exists()
