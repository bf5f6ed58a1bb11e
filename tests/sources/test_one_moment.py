"""All plain sources of a run are seen at one moment, on a real folder, a real table and a real ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.ledger.samples import in_processes
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceChanged, SourceLost, SourceMissing
from stagehold.ledger import Ledger
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.spec.pipeline import Stage

ORDERS = source_stage("orders", path="${lake}/orders")
RATES = source_stage("rates", path="${lake}/rates", splits=1)
TABLE = source_stage("events", kind="delta", path="${lake}/table", splits=1)
STAGES = (ORDERS, RATES)


@pytest.fixture
def attempt(ledger, tmp_path):
    return lambda run_id="first": Sources("p", "day", run_id, str(tmp_path), ledger)


@pytest.fixture
def arrive(tmp_path):
    def arrive(*names: str, content: str = "x") -> None:
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)

    return arrive


def names(sources: Sources, stage: Stage) -> list[str]:
    return [Path(file.path).name for split in sources.of(stage).splits for file in split.files]


def looked(sources: Sources, *stages: Stage) -> Sources:
    sources.look(stages)
    for stage in stages:
        sources.settle(stage, Listing.OF_RUN)
    return sources


def test_a_region_that_comes_later_reads_what_the_first_one_saw(attempt, arrive):
    arrive("orders/a", "rates/a")
    assert {name: str(seen) for name, seen in attempt().look(STAGES).items()} == {
        "orders": "1 files",
        "rates": "1 files",
    }
    arrive("orders/b", "rates/b")
    later = attempt()
    assert later.look(STAGES) == {}
    assert later.settle(RATES, Listing.OF_RUN) is None
    assert names(later, RATES) == ["a"]
    assert later.since(RATES) == "of its files 1 came, which it does not read"
    assert names(attempt(), ORDERS) == ["a"]  # so does who only looks, as a plan of the run


def test_a_new_run_looks_anew_and_one_that_goes_on_follows_it(attempt, arrive):
    arrive("orders/a", "rates/a")
    looked(attempt(), *STAGES)
    arrive("orders/b")
    assert names(attempt("second"), ORDERS) == ["a", "b"]
    looked(attempt("second"), *STAGES)
    assert names(looked(attempt(), *STAGES), ORDERS) == ["a", "b"]  # what was made since is not made from less again


def test_what_changed_is_read_as_it_is_now_and_what_went_is_refused(attempt, arrive, tmp_path):
    arrive("orders/a", "orders/b", "orders/c", "rates/a")
    before = looked(attempt(), *STAGES).of(ORDERS).splits
    arrive("orders/a", content="longer")
    (tmp_path / "orders" / "c").unlink()
    after = looked(attempt(), *STAGES)
    assert after.since(ORDERS) == "of its files 1 changed, which it reads as they are now, 1 went"
    same = [old.fingerprint == new.fingerprint for old, new in zip(before, after.of(ORDERS).splits, strict=True)]
    assert same == [False, True]
    with pytest.raises(
        SourceChanged, match="is gone; all that a run reads it has seen at its beginning, and a new run"
    ):
        after.of(ORDERS).refuse_spoiled("orders", before[1].files)
    after.of(ORDERS).refuse_spoiled("orders", before[0].files)
    assert names(attempt("second"), ORDERS) == ["a", "b"]


def test_a_source_that_is_not_there_is_seen_when_it_is_needed(attempt, arrive):
    arrive("orders/a")
    assert [*attempt().look(STAGES)] == ["orders"]
    with pytest.raises(SourceMissing):
        attempt().settle(RATES, Listing.OF_RUN)
    arrive("orders/b", "rates/a")
    assert str(attempt().settle(RATES, Listing.OF_RUN)) == "1 files"
    assert names(looked(attempt(), *STAGES), ORDERS) == ["a"]


def test_a_table_is_read_at_its_version_and_what_of_that_is_gone_is_told(attempt, tmp_path):
    def write(*numbers: int) -> None:
        write_deltalake(tmp_path / "table", pa.table({"n": pa.array(numbers, pa.int64())}), mode="overwrite")

    write(1)
    (file,) = looked(attempt(), TABLE).of(TABLE).splits[0].files
    write(2)
    later = looked(attempt(), TABLE)
    assert later.of(TABLE).splits[0].files == (file,)
    assert (later.told(TABLE), later.since(TABLE)) == (
        "the table at version 0",
        "the table came to version 1, which it does not read",
    )
    later.of(TABLE).refuse_spoiled("events", (file,))
    DeltaTable(tmp_path / "table").vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(SourceLost, match="of the table at version 0 is gone; all that a run reads"):
        looked(attempt(), TABLE).of(TABLE).refuse_spoiled("events", (file,))
    assert attempt("second").of(TABLE).splits[0].files != (file,)


def test_what_an_incremental_source_gives_is_settled_by_who_reads_it(attempt, arrive):
    taking = source_stage("orders", path="${lake}/orders", incremental=True)
    arrive("orders/a", "rates/a")
    assert [*attempt().look((taking, RATES))] == ["rates"]
    arrive("orders/b")
    assert str(attempt().settle(taking, Listing.OF_RUN)) == "2 files"


def test_attempts_that_begin_at_once_see_one_moment(tmp_path, arrive):
    ledger_url = f"sqlite:///{tmp_path}/together.db"

    def look(number: int) -> dict[str, list[str]]:
        for stage in ("orders", "rates"):
            arrive(f"{stage}/{number}")  # each of them sees another state of the folders
        with Ledger.open(ledger_url) as own:
            sources = Sources("p", "day", "first", str(tmp_path), own)
            sources.look(STAGES)
            return {stage.name: names(sources, stage) for stage in STAGES}

    with Ledger.open(ledger_url):
        pass
    first, *others = in_processes(4, look)
    assert first["orders"]
    assert others == [first] * 3
