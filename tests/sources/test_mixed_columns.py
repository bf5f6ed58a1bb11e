"""Parquet files of one source whose columns differ: what is planned of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceUnusable
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.spec.pipeline import Stage


@pytest.fixture
def interval(ledger, tmp_path):
    return lambda name="1": Sources("p", name, f"run of {name}", str(tmp_path), ledger)


@pytest.fixture
def arrive(tmp_path):
    def arrive(name: str, **columns: pa.Array) -> None:
        path = Path(tmp_path, "raw", name)
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)

    return arrive


INT, LONG = pa.array([1], pa.int32()), pa.array([1], pa.int64())
WORD = pa.array(["x"])


def keys(sources: Sources, of: Stage) -> list[str]:
    return [split.fingerprint for split in sources.of(of).splits]


def test_a_column_that_only_a_later_file_has_is_planned_and_changes_all_splits(interval, arrive):
    arrive("a", n=INT)
    arrive("b", n=INT)
    before = keys(interval(), source_stage())
    assert interval().of(source_stage()).mixed is None
    arrive("b", n=INT, s=WORD)
    mixed = interval().of(source_stage()).mixed
    assert mixed is not None
    assert mixed.fields == (("n", "int"), ("s", "string"))
    assert not set(keys(interval(), source_stage())) & set(before), "rows of all splits have the column now"
    named = source_stage(path=None, splits=["${lake}/raw/a", "${lake}/raw/b"])
    assert interval().of(named).mixed == mixed


def test_the_order_of_columns_changes_nothing(interval, arrive):
    arrive("a", n=INT, s=WORD)
    arrive("b", s=WORD, n=INT)
    assert interval().of(source_stage()).mixed is None


def test_what_an_interval_of_an_incremental_source_took_keeps_its_columns(interval, arrive, tmp_path):
    incremental = source_stage(incremental=True)
    arrive("a", n=INT)
    arrive("b", n=LONG)
    interval("1").settle(incremental, Listing.OF_RUN)
    before = keys(interval("1"), incremental)
    arrive("c", n=INT, s=WORD)
    interval("2").settle(incremental, Listing.OF_RUN)
    assert interval("2").of(incremental).mixed is None, "its files are alike"
    (tmp_path / "raw/a").unlink()  # as somebody clears away what was read
    assert keys(interval("1"), incremental) == before
    mixed = interval("1").of(incremental).mixed
    assert mixed is not None
    assert (mixed.fields, mixed.wider) == ((("n", "bigint"),), ("n",))


def test_types_that_do_not_go_together_are_refused_before_anything_is_taken(interval, arrive, ledger):
    incremental = source_stage(incremental=True)
    arrive("a", n=INT)
    arrive("b", n=WORD)
    for look in (lambda: interval().of(source_stage()), lambda: interval().settle(incremental, Listing.OF_RUN)):
        with pytest.raises(SourceUnusable, match=r"column n is int in .*/raw/a and string in .*/raw/b"):
            look()
    assert ledger.positions.taken("p", "orders") == {}


def test_a_footer_that_is_longer_than_most_is_read(interval, arrive):
    arrive("a", **{f"a_long_name_of_a_column_{number}": INT for number in range(2000)})
    arrive("b", n=INT)
    mixed = interval().of(source_stage()).mixed
    assert mixed is not None
    assert len(mixed.fields) == 2001
