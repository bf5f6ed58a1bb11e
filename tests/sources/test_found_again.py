"""Rows that an interval took of a Delta table and has not published, after others compacted and vacuumed the table."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.ledger.samples import record
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceLost
from stagehold.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.model.source_position import VersionsRead
from stagehold.model.standing import PartitionState
from stagehold.sources.attempt_sources import Listing, Sources

SPLITS = 2
ORDERS = source_stage(kind="delta", path="${lake}/table", splits=SPLITS, incremental=True)


class Table:
    """A table of numbers by day, and the intervals of a pipeline that read it."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.uri, self.ledger, self.lake = str(folder / "table"), ledger, str(folder)

    def add(self, *numbers: int, day: str = "mon") -> None:
        rows = pa.table({"n": pa.array(numbers, pa.int64()), "day": [day] * len(numbers)})
        write_deltalake(self.uri, rows, mode="append", partition_by=["day"])

    def compact(self, day: str = "mon") -> None:
        """As OPTIMIZE and VACUUM do it."""
        DeltaTable(self.uri).optimize.compact(partition_filters=[("day", "=", day)])
        DeltaTable(self.uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def interval(self, name: str) -> Sources:
        made = {"orders": (ORDERS,)}
        return Sources("p", name, f"run of {name}", self.lake, self.ledger, stored_with=made, made_from=made)

    def take(self, name: str) -> list[list[int]]:
        self.interval(name).settle(ORDERS, Listing.OF_RUN)
        return self.read(name)

    def read(self, name: str) -> list[list[int]]:
        """The rows of each split, as a run reads them."""
        reading = self.interval(name).of(ORDERS)
        for split in reading.splits:
            reading.refuse_spoiled("orders", split.files)
        files = [[pq.ParquetFile(file.path).read(["n"])["n"].to_pylist() for file in s.read] for s in reading.splits]
        return [sorted(chain.from_iterable(some)) for some in files]

    def keys(self, name: str) -> list[str]:
        return [split.fingerprint for split in self.interval(name).of(ORDERS).splits]

    def publish(self, name: str, *partitions: int, state: PartitionState = PartitionState.CONSUMABLE) -> None:
        lease = self.ledger.leases.acquire(f"lease {name} {state}", "me", 60)
        cell = Cell("p", "orders", name)
        self.ledger.partitions.record([record(partition, cell=cell, state=state) for partition in partitions], lease)

    def taken(self, name: str) -> VersionsRead:
        position = self.ledger.positions.taken_by(Cell("p", "orders", name))
        assert isinstance(position, VersionsRead)
        return position


@pytest.fixture
def table(tmp_path, ledger) -> Table:
    return Table(tmp_path, ledger)


def test_rows_that_were_compacted_by_themselves_are_found_again_and_dealt_anew(table):
    table.add(1)
    table.add(2)
    assert sorted(table.take("1")) == [[1], [2]]
    before = table.keys("1")
    table.add(3, day="tue")
    table.compact()
    assert sorted(chain.from_iterable(table.read("1"))) == [1, 2]
    assert table.taken("1").found is None, "a plan records nothing"
    told = table.interval("1").settle(ORDERS, Listing.OF_RUN)
    assert str(told) == "the table at version 1, from 1 files that the table has at version 5"
    assert sorted(chain.from_iterable(table.read("1"))) == [1, 2]
    assert not set(table.keys("1")) & set(before), "other rows are in each partition, so none made before counts"
    assert table.take("2") == [[], [3]]
    table.add(4)
    table.compact()
    with pytest.raises(SourceLost, match="them into one file with rows"):
        table.read("1")


def test_what_is_published_of_them_keeps_its_key_and_is_read_from_where_its_rows_are(table):
    table.add(1)
    table.add(2)
    table.add(3, day="tue")
    table.add(4, day="tue")
    assert table.take("1") == [[1, 2], [3, 4]]
    before = table.keys("1")
    table.publish("1", 0)
    table.compact()
    table.compact("tue")
    assert table.interval("1").settle(ORDERS, Listing.OF_RUN) is None
    assert (table.read("1"), table.keys("1")) == ([[1, 2], [3, 4]], before)


def test_rows_that_cannot_be_told_from_others_are_lost_and_no_later_interval_passes_over_them(table):
    table.add(0)
    table.take("0")
    table.publish("0", 0, 1)
    table.add(1)
    table.take("1")
    table.compact()  # of what both have taken
    with pytest.raises(SourceLost, match="interval 1 took what versions 1 to 1 added") as lost:
        table.read("1")
    assert "into one file with rows that are not its own" in str(lost.value)
    assert "`stagehold source retake orders --pipeline p --interval '1' --from-version 1`" in str(lost.value)
    table.add(2)
    for ask in (lambda: table.interval("2").settle(ORDERS, Listing.OF_RUN), lambda: table.read("2")):
        with pytest.raises(SourceLost, match="Until then 2 takes nothing: it would pass over these rows"):
            ask()
    assert list(table.ledger.positions.taken("p", "orders")) == ["0", "1"]
    table.publish("1", 0, 1)  # it was alive after all
    assert table.take("2") == [[], [2]]


def test_published_in_part_they_are_found_again_once_that_is_deleted(table):
    table.add(1)
    table.add(2)
    table.take("1")
    table.publish("1", 0)
    table.compact()
    with pytest.raises(SourceLost, match=r"`stagehold intervals delete p '1'` comes first"):
        table.read("1")
    table.publish("1", 0, state=PartitionState.RELEASED)
    assert sorted(chain.from_iterable(table.take("1"))) == [1, 2]


def test_rows_that_were_deleted_since_are_not_found(table):
    table.add(1, 2)
    table.take("1")
    DeltaTable(table.uri).delete("n = 1")
    table.compact()
    with pytest.raises(SourceLost, match="a later version removed or replaced some of their rows"):
        table.read("1")


def test_what_others_have_not_finished_is_said(table):
    table.add(1)
    table.take("1")
    table.add(2)
    said = table.interval("2").left_to_others(ORDERS)
    assert said == ("orders: 1 took the table at version 0, and has not made all of that yet; its own run reads it",)
    assert table.take("2") == [[], [2]]
    table.publish("1", 0, 1)
    assert table.interval("2").left_to_others(ORDERS) == ()


def test_of_two_that_find_rows_again_at_once_the_first_word_counts(ledger):
    cell = Cell("p", "orders", "1")
    first, second, third = VersionsRead(None, 1), VersionsRead(None, 2), VersionsRead(None, 3)
    ledger.positions.take(cell, "run", lambda _: first)
    assert ledger.positions.exchange(cell, "run", first, second) == second
    assert ledger.positions.exchange(cell, "run", first, third) == second
