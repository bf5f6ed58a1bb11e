"""What cannot be read is damaged only if its table can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from tests.made_records import partition_record

from stagehold.errors import SparkUnavailable
from stagehold.model.records import PartitionRecord
from stagehold.run.delivery.content_check import mismatches

RECORDS = [partition_record(partition, fingerprint=f"c-1-{partition}-1") for partition in range(4)]
DENIED = RuntimeError("java.nio.file.AccessDeniedException: the keys are too old (Service: S3, Status Code: 403)")
ENDING = SparkUnavailable("the server is ending.")


@dataclass
class Reader:
    """Stands for Spark; ``fails`` says with what a query of some partitions ends, by how many were asked before."""

    fails: Callable[[set[int], int], Exception | None]
    log_fails: Exception | None = None
    asked: list[list[int]] = field(default_factory=list)

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        partitions = [record.partition for record in records]
        self.asked.append(partitions)
        if error := self.fails({*partitions}, len(self.asked)):
            raise error
        return {record.partition: record.fingerprint for record in records}

    def read_log(self, table: str) -> None:
        if self.log_fails:
            raise self.log_fails


def test_one_that_cannot_be_read_though_its_table_can_is_damaged():
    reader = Reader(lambda partitions, _: RuntimeError("no Parquet") if 2 in partitions else None)
    assert mismatches(RECORDS, reader) == [(RECORDS[2], None)]


@pytest.mark.parametrize("error", [DENIED, RuntimeError("never heard of")])
def test_nothing_is_damaged_where_the_table_cannot_be_read_either(error):
    reader = Reader(lambda *_: error, log_fails=DENIED)
    with pytest.raises(RuntimeError, match="keys are too old"):
        mismatches(RECORDS, reader)
    assert reader.asked == [[0, 1, 2, 3], [0]], "it gives up at the first one"


@pytest.mark.parametrize("last", [1, 2])
def test_nothing_is_damaged_that_can_be_read_a_moment_later(last):
    reader = Reader(lambda _, number: DENIED if number <= last else None)
    assert mismatches(RECORDS[:2], reader) == []


def test_a_server_that_ends_says_nothing_of_the_data():
    with pytest.raises(SparkUnavailable):
        mismatches(RECORDS, Reader(lambda *_: ENDING))
    reader = Reader(lambda _, number: ENDING if number == 3 else DENIED)
    with pytest.raises(SparkUnavailable):
        mismatches(RECORDS, reader)
