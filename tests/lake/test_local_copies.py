"""What a worker keeps of its own files, what it puts back of them, and what it passes over."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.made_records import partition_record

from stagehold.lake.local_copies import LocalCopies
from stagehold.model.records import Cell, DataFile, PartitionRecord

CELL = Cell("p", "totals", "monday")


@pytest.fixture
def copies(tmp_path) -> LocalCopies:
    return LocalCopies(tmp_path / "copies", 1000)


def written(lake: Path, partition: int, content: bytes = b"rows" * 25) -> PartitionRecord:
    path = f"_data/a/{partition}/part.parquet"
    (lake / path).parent.mkdir(parents=True)
    (lake / path).write_bytes(content)
    file = DataFile(path, len(content), 1)
    return replace(partition_record(partition, CELL), table=str(lake), files=(file,))


def place(record: PartitionRecord) -> Path:
    return Path(record.table) / record.files[0].path


def kept(copies: LocalCopies) -> list[Path]:
    return sorted(copies.folder.glob("*/*"))


def test_what_the_lake_lost_is_put_back_whole(copies, tmp_path):
    record, said = written(tmp_path / "lake", 3), list[str]()
    copies.keep([record], said.append)
    copies.put_back([record], said.append)
    assert said == [], "nothing is lost"
    place(record).unlink()
    copies.put_back([record], said.append)
    assert place(record).read_bytes() == b"rows" * 25
    assert said == ["totals[3]: the lake had lost it or had it otherwise; put back from this worker's copy"]


def test_another_size_is_seen_without_reading_and_other_content_where_it_was_found(copies, tmp_path):
    record, said = written(tmp_path / "lake", 0), list[str]()
    copies.keep([record], said.append)
    place(record).write_bytes(b"torn")
    copies.put_back([record], said.append)
    assert place(record).read_bytes() == b"rows" * 25
    place(record).write_bytes(b"ROWS" * 25)
    copies.put_back([record], said.append)
    assert place(record).read_bytes() == b"ROWS" * 25, "of the same size"
    assert copies.repair([record], said.append)
    assert place(record).read_bytes() == b"rows" * 25
    assert not copies.repair([record], said.append)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda copy: copy.write_bytes(b"other"), "the copy of it is not what it was"),
        (lambda copy: copy.write_bytes(b"ROWS" * 25), "the copy of it is not what it was"),
        (lambda copy: copy.unlink(), "there is no copy of it"),
    ],
)
def test_a_copy_that_is_not_whole_is_passed_over_with_the_reason(copies, tmp_path, spoil, why):
    record, said = written(tmp_path / "lake", 0), list[str]()
    copies.keep([record], said.append)
    spoil(*kept(copies))
    place(record).unlink()
    copies.put_back([record], said.append)
    assert not place(record).exists()
    (line,) = said
    assert line.startswith(f"totals[0]: {record.files[0].path} is gone, and {why}")
    assert kept(copies) == [], "what is not whole is of no use to anybody"


def test_a_partition_is_put_back_as_a_whole_or_not_at_all(copies, tmp_path):
    one, two = (written(tmp_path / "lake", number) for number in (0, 1))
    both = replace(one, files=(*one.files, *two.files))
    copies.keep([one], print)
    place(one).unlink()
    place(two).unlink()
    said = list[str]()
    copies.put_back([both], said.append)
    assert not place(one).exists()
    assert "there is no copy of it" in said[0]


def test_what_is_over_the_limit_goes_the_oldest_first(copies, tmp_path):
    records = [written(tmp_path / "lake", number, bytes([number]) * 300) for number in range(5)]
    for age, record in enumerate(records):
        copies.keep([record], print)
        for copy in kept(copies):
            os.utime(copy, (copy.stat().st_mtime - 60,) * 2)
        assert age >= 3 or len(kept(copies)) == age + 1
    for record in records:
        place(record).unlink()
    copies.put_back(records, print)
    assert [place(record).exists() for record in records] == [False, False, True, True, True]
    too_large = written(tmp_path / "lake", 9, b"x" * 1001)
    copies.keep([too_large], print)
    assert len(kept(copies)) == 3


def test_two_processes_may_keep_and_put_back_the_same(copies, tmp_path):
    records = [written(tmp_path / "lake", number, b"x" * 10) for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda record: copies.keep([record], print), records * 4))
        for record in records:
            place(record).unlink()
        list(pool.map(lambda record: copies.put_back([record], print), records * 4))
    assert len(kept(copies)) == 20
    assert all(place(record).read_bytes() == b"x" * 10 for record in records)


def test_a_disk_that_takes_nothing_costs_the_copy_alone(copies, tmp_path):
    record, said = written(tmp_path / "lake", 0), list[str]()
    copies.folder.write_text("a file stands there")
    copies.keep([record], said.append)
    assert said[0].startswith("no local copy of totals[0]: ")


def test_nothing_is_put_into_a_lake_that_is_only_read(copies, tmp_path):
    record = written(tmp_path / "lake", 0)
    copies.keep([record], print)
    place(record).unlink()
    replace(copies, reads_only=lambda _: True).put_back([record], print)
    assert not place(record).exists()
