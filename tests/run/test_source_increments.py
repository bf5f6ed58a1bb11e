"""What intervals take of an incremental source, on a real folder, a real table and a real ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.ledger import Ledger
from stagehold.model.spec import Stage
from stagehold.model.spec_source import Source
from stagehold.run.sources import Sources


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as opened:
        yield opened


def stage(**fields) -> Stage:
    source = Source(**{"kind": "parquet", "path": "${lake}/raw", "splits": 2, "incremental": True, **fields})
    return Stage(name="orders", job="jobs:orders", source=source, partitions=source.count, max_parallelism=128)


@pytest.fixture
def interval(ledger, tmp_path):
    def of(name: str) -> Sources:
        return Sources("p", name, f"run of {name}", str(tmp_path), ledger)

    return of


@pytest.fixture
def arrive(tmp_path):
    def arrive(*names: str, content: str = "x") -> None:
        (tmp_path / "raw").mkdir(exist_ok=True)
        for name in names:
            (tmp_path / "raw" / name).write_text(content)

    return arrive


def read(sources: Sources, stage: Stage) -> list[list[str]]:
    return [[Path(file.path).name for file in split.files] for split in sources.of(stage).splits]


def test_an_interval_reads_what_is_new_and_reads_the_same_ever_after(interval, arrive):
    arrive("a", "b")
    first = interval("1")
    assert str(first.take(stage())) == "2 new files"
    assert read(first, stage()) == [["a"], ["b"]]
    arrive("c")
    assert read(interval("1"), stage()) == [["a"], ["b"]]
    assert interval("1").take(stage()) is None
    second = interval("2")
    second.take(stage())
    assert read(second, stage()) == [[], ["c"]]
    before = [split.fingerprint for split in interval("1").of(stage()).splits]
    assert before == [split.fingerprint for split in first.of(stage()).splits]


def test_nothing_new_is_an_interval_of_empty_splits(interval, arrive):
    arrive("a")
    interval("1").take(stage())
    interval("2").take(stage())
    arrive("b")
    assert read(interval("2"), stage()) == [[], []]
    assert interval("2").of(stage()).sample.endswith("/a")  # it has the columns
    assert read(interval("0"), stage()) == [[], ["b"]]  # an older interval that comes later takes what nobody has


def test_looking_takes_nothing(interval, arrive):
    arrive("a")
    assert read(interval("1"), stage()) == read(interval("2"), stage()) == [[], ["a"]]
    arrive("b")
    assert read(interval("2"), stage()) == [["a"], ["b"]]


def test_a_source_that_never_had_a_file_is_missing_and_nothing_is_taken(interval, arrive):
    with pytest.raises(SourceMissing):
        interval("1").take(stage())
    arrive("a")
    interval("1").take(stage())
    assert read(interval("1"), stage()) == [[], ["a"]]


def test_files_that_were_cleared_away_after_they_were_read_are_no_problem(interval, arrive, tmp_path):
    arrive("a")
    interval("1").take(stage())
    (tmp_path / "raw" / "a").unlink()
    interval("2").take(stage())
    assert read(interval("2"), stage()) == [[], []]
    assert interval("2").of(stage()).sample is None


def test_a_file_changed_after_it_was_read_stops_the_next_interval_and_spoils_its_own(interval, arrive):
    arrive("a", "b")
    interval("1").take(stage())
    arrive("a", content="changed")
    with pytest.raises(SourceChanged, match=r"raw/a was read before: 1 bytes, now 7"):
        interval("2").take(stage())
    own = interval("1").of(stage())
    assert [name.rpartition("/")[2] for name in own.spoiled] == ["a"]
    arrive("c")
    ignoring = stage(on_change="ignore")
    interval("2").take(ignoring)
    assert read(interval("2"), ignoring) == [[], ["c"]]
    assert interval("1").of(ignoring).spoiled == {}


def test_a_file_that_went_before_it_was_read_spoils_its_split(interval, arrive, tmp_path):
    arrive("a", "b")
    interval("1").take(stage())
    (tmp_path / "raw" / "b").unlink()
    (why,) = interval("1").of(stage()).spoiled.values()
    assert why.endswith("raw/b was taken to be read, and is gone")


TABLE = stage(kind="delta", path="${lake}/table")


@pytest.fixture
def add(tmp_path):
    def add(number: int) -> DeltaTable:
        write_deltalake(str(tmp_path / "table"), pa.table({"n": [number]}), mode="append")
        return DeltaTable(str(tmp_path / "table"))

    return add


def numbers(sources: Sources, of: Stage = TABLE) -> list[int]:
    return sorted(number for split in sources.of(of).splits for file in split.files for number in pq.read_table(file.path)["n"].to_pylist())


def test_a_table_is_read_whole_at_first_and_then_by_what_was_added(interval, add):
    add(1)
    assert str(interval("1").take(TABLE)) == "the table at version 0"
    add(2)
    add(3).optimize.compact()
    assert str(interval("2").take(TABLE)) == "what versions 1 to 3 added"
    add(4)
    assert [numbers(interval(name)) for name in "123"] == [[1], [2, 3], [4]]
    assert str(interval("3").take(TABLE)) == "what versions 4 to 4 added"
    assert str(interval("4").take(TABLE)) == "nothing, as no version is new"
    assert numbers(interval("4")) == []


def test_removed_rows_stop_the_next_interval_before_it_takes_anything(interval, add, ledger):
    add(1)
    interval("1").take(TABLE)
    add(2).delete("n = 1")
    with pytest.raises(SourceChanged, match=r"version 2 of .* removed"):
        interval("2").take(TABLE)
    assert list(ledger.positions.taken("p", "orders")) == ["1"]
    ignoring = stage(kind="delta", path="${lake}/table", on_change="ignore")
    interval("2").take(ignoring)
    assert numbers(interval("2"), ignoring) == [2]


def test_a_table_made_anew_is_refused(interval, add, tmp_path):
    add(1)
    add(2)
    interval("1").take(TABLE)
    (tmp_path / "table").rename(tmp_path / "old")
    add(3)
    with pytest.raises(SourceChanged, match="read up to version 1, and now has 0"):
        interval("2").take(TABLE)


def test_a_source_that_was_files_and_is_a_table_now_needs_another_uid(interval, arrive, add):
    arrive("a")
    add(1)
    interval("1").take(stage())
    with pytest.raises(SourceUnusable, match="uid"):
        interval("1").of(TABLE)
    with pytest.raises(SourceUnusable, match="uid"):
        interval("2").take(TABLE)
    interval("1").take(replace_uid(TABLE))
    assert numbers(interval("1"), replace_uid(TABLE)) == [1]


def replace_uid(of: Stage) -> Stage:
    return of.model_copy(update={"uid": "orders_table"})
