"""What intervals take of a source, on a real folder, a real table and a real ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.run.planning.planning import IntervalView, RunRequest, counted
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.source import Source


def stage(**fields) -> Stage:
    return source_stage(**{"incremental": True, **fields})


@pytest.fixture
def interval(ledger, tmp_path):
    def of(name: str, run_id: str | None = None) -> Sources:
        return Sources("p", name, run_id or f"run of {name}", str(tmp_path), ledger)

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
    assert str(first.settle(stage(), Listing.OF_RUN)) == "2 files"
    assert read(first, stage()) == [["a"], ["b"]]
    arrive("c")
    assert read(interval("1"), stage()) == [["a"], ["b"]]
    assert interval("1").settle(stage(), Listing.OF_RUN) is None
    second = interval("2")
    second.settle(stage(), Listing.OF_RUN)
    assert read(second, stage()) == [[], ["c"]]
    before = [split.fingerprint for split in interval("1").of(stage()).splits]
    assert before == [split.fingerprint for split in first.of(stage()).splits]


def test_nothing_new_is_an_interval_of_empty_splits(interval, arrive):
    arrive("a")
    interval("1").settle(stage(), Listing.OF_RUN)
    interval("2").settle(stage(), Listing.OF_RUN)
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
        interval("1").settle(stage(), Listing.OF_RUN)
    arrive("a")
    interval("1").settle(stage(), Listing.OF_RUN)
    assert read(interval("1"), stage()) == [[], ["a"]]


def test_files_that_were_cleared_away_after_they_were_read_are_no_problem(interval, arrive, tmp_path):
    arrive("a")
    interval("1").settle(stage(), Listing.OF_RUN)
    (tmp_path / "raw" / "a").unlink()
    interval("2").settle(stage(), Listing.OF_RUN)
    assert read(interval("2"), stage()) == [[], []]
    assert interval("2").of(stage()).sample is None


def test_a_file_changed_after_it_was_read_stops_the_next_interval_and_spoils_its_own(interval, arrive):
    arrive("a", "b")
    interval("1").settle(stage(), Listing.OF_RUN)
    arrive("a", content="changed")
    with pytest.raises(SourceChanged, match=r"raw/a was read before: 1 bytes, now 7"):
        interval("2").settle(stage(), Listing.OF_RUN)
    own = interval("1").of(stage())
    assert [name.rpartition("/")[2] for name in own.spoiled] == ["a"]
    arrive("c")
    ignoring = stage(on_change="ignore")
    interval("2").settle(ignoring, Listing.OF_RUN)
    assert read(interval("2"), ignoring) == [[], ["c"]]
    assert interval("1").of(ignoring).spoiled == {}


def test_a_file_that_went_before_it_was_read_spoils_its_split(interval, arrive, tmp_path):
    arrive("a", "b")
    interval("1").settle(stage(), Listing.OF_RUN)
    (tmp_path / "raw" / "b").unlink()
    (why,) = interval("1").of(stage()).spoiled.values()
    assert "raw/b was taken to be read, and is gone" in why
    assert "`stagehold source retake orders --pipeline p --interval '1'`" in why


TABLE = stage(kind="delta", path="${lake}/table")


@pytest.fixture
def add(tmp_path):
    def add(number: int) -> DeltaTable:
        write_deltalake(str(tmp_path / "table"), pa.table({"n": [number]}), mode="append")
        return DeltaTable(str(tmp_path / "table"))

    return add


def numbers(sources: Sources, of: Stage = TABLE) -> list[int]:
    return sorted(
        number
        for split in sources.of(of).splits
        for file in split.files
        for number in pq.read_table(file.path)["n"].to_pylist()
    )


def test_a_table_is_read_whole_at_first_and_then_by_what_was_added(interval, add):
    add(1)
    assert str(interval("1").settle(TABLE, Listing.OF_RUN)) == "the table at version 0"
    add(2)
    add(3).optimize.compact()
    assert str(interval("2").settle(TABLE, Listing.OF_RUN)) == "what versions 1 to 3 added"
    add(4)
    assert [numbers(interval(name)) for name in "123"] == [[1], [2, 3], [4]]
    assert str(interval("3").settle(TABLE, Listing.OF_RUN)) == "what versions 4 to 4 added"
    assert str(interval("4").settle(TABLE, Listing.OF_RUN)) == "nothing, as no version is new"
    assert numbers(interval("4")) == []


def test_removed_rows_stop_the_next_interval_before_it_takes_anything(interval, add, ledger):
    add(1)
    interval("1").settle(TABLE, Listing.OF_RUN)
    add(2).delete("n = 1")
    with pytest.raises(SourceChanged, match=r"version 2 of .* removed"):
        interval("2").settle(TABLE, Listing.OF_RUN)
    assert list(ledger.positions.taken("p", "orders")) == ["1"]
    ignoring = stage(kind="delta", path="${lake}/table", on_change="ignore")
    interval("2").settle(ignoring, Listing.OF_RUN)
    assert numbers(interval("2"), ignoring) == [2]


def test_a_table_made_anew_is_refused(interval, add, tmp_path):
    add(1)
    add(2)
    interval("1").settle(TABLE, Listing.OF_RUN)
    (tmp_path / "table").rename(tmp_path / "old")
    add(3)
    with pytest.raises(SourceChanged, match="read up to version 1, and now has 0"):
        interval("2").settle(TABLE, Listing.OF_RUN)


def test_a_source_that_was_files_and_is_a_table_now_needs_another_uid(interval, arrive, add):
    arrive("a")
    add(1)
    interval("1").settle(stage(), Listing.OF_RUN)
    with pytest.raises(SourceUnusable, match="uid"):
        interval("1").of(TABLE)
    with pytest.raises(SourceUnusable, match="uid"):
        interval("2").settle(TABLE, Listing.OF_RUN)
    interval("1").settle(replace_uid(TABLE), Listing.OF_RUN)
    assert numbers(interval("1"), replace_uid(TABLE)) == [1]


def replace_uid(of: Stage) -> Stage:
    return of.model_copy(update={"uid": "orders_table"})


WHOLE = stage(incremental=False)


def test_what_is_not_incremental_is_read_whole_by_every_interval(interval, arrive):
    arrive("a")
    for name in "12":
        interval(name).settle(WHOLE, Listing.OF_RUN)
    arrive("b")
    assert read(interval("1", "new"), WHOLE) == read(interval("2", "new"), WHOLE) == [["a"], ["b"]]


def settled(sources: Sources, listing: Listing) -> list[list[str]]:
    sources.settle(WHOLE, listing)
    return read(sources, WHOLE)


def test_shares_of_a_region_cut_the_same_files_though_more_arrive_between_them(interval, arrive):
    arrive("a", "b")
    assert settled(interval("1"), Listing.OF_RUN) == [["a"], ["b"]]
    arrive("0")
    assert settled(interval("1"), Listing.OF_RUN) == [["a"], ["b"]]


def test_lost_partitions_are_healed_from_the_files_they_were_made_of(interval, arrive, ledger, tmp_path):
    arrive("a", "b")
    assert settled(interval("1"), Listing.OF_RUN) == [["a"], ["b"]]
    arrive("0")
    another_run = Sources("p", "1", "run-2", str(tmp_path), ledger)
    assert settled(another_run, Listing.OF_INTERVAL) == [["a"], ["b"]]
    arrive("b", content="changed")
    changed = interval("1")
    assert settled(changed, Listing.OF_INTERVAL) == [["a"], ["b"]]
    assert [one == other for one, other in zip(fingerprints(another_run), fingerprints(changed), strict=True)] == [
        True,
        False,
    ]
    assert settled(interval("1"), Listing.OF_RUN) == [["a"], ["b"]]
    assert settled(interval("1", "new"), Listing.OF_RUN) == [["0", "a"], ["b"]]


def fingerprints(sources: Sources) -> list[str]:
    return [split.fingerprint for split in sources.of(WHOLE).splits]


def test_a_table_is_healed_from_the_version_that_was_read(interval, add):
    whole = stage(kind="delta", path="${lake}/table", incremental=False)
    add(1)
    interval("1").settle(whole, Listing.OF_RUN)
    add(2)
    healing = interval("1")
    healing.settle(whole, Listing.OF_INTERVAL)
    assert numbers(healing, whole) == [1]
    assert numbers(interval("1"), whole) == [1]
    assert numbers(interval("1", "new"), whole) == [1, 2]


def test_the_bytes_of_an_increment_decide_how_many_splits_it_has_and_they_stay(interval, arrive, ledger, tmp_path):
    declared = {"kind": "parquet", "path": "${lake}/raw", "splits": {"bytes": "10b"}, "incremental": True}
    by_size = stage().model_copy(update={"source": Source(**declared), "partitions": 1, "auto_partitions": True})
    pipeline = Pipeline(name="p", file="p.yaml", stages=(by_size,))
    settings = Settings(home=str(tmp_path), lake=str(tmp_path))

    def decided(name: str) -> list[list[str]]:
        request = RunRequest(pipeline, f"run of {name}", name, {})
        sources = IntervalView(request, ledger, settings).sources
        sources.settle(by_size, Listing.OF_RUN)
        IntervalView(request, ledger, settings, sources).decide_counts(("orders",))
        return read(sources, counted(request, ledger).pipeline.stage("orders"))

    arrive("a", "b", "c", content="12345678")
    assert decided("1") == [["a"], ["b"], ["c"]]
    assert decided("2") == [[]]
    arrive("d", "e", content="1234")
    assert decided("3") == [["d", "e"]]
    assert decided("1") == [["a"], ["b"], ["c"]]
