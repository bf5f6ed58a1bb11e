"""What intervals of production have read, for a sandbox that opens no ledger but its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.lake.chronicle import LakeChronicle
from stagehold.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.model.source_position import FilesRead, SourceFile
from stagehold.sources.told_positions import told_positions

PIPELINE, STAGE = "orders", "events"


@pytest.fixture
def lake(tmp_path):
    return str(tmp_path / "lake")


@pytest.fixture
def ledger(ledger_file, lake):
    with Ledger.open(f"sqlite:///{ledger_file}", chronicle=LakeChronicle(lake)) as opened:
        yield opened


def files(*names: str) -> FilesRead:
    return FilesRead(tuple(SourceFile(name, 1, "v") for name in names))


def told(lake: str) -> dict[str, tuple[str, object]]:
    return {interval: (one.run_id, one.position) for interval, one in told_positions(lake, PIPELINE, STAGE).items()}


def test_each_interval_has_what_it_took_last(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r1", lambda _: files("a"))
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r2", lambda _: files("b"))
    ledger.positions.take_again(Cell(PIPELINE, STAGE, "monday"), "r3", lambda _: files("a", "c"))
    assert told(lake) == {"monday": ("r3", files("a", "c")), "tuesday": ("r2", files("b"))}


def test_other_stages_and_pipelines_do_not_count(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, "other", "monday"), "r", lambda _: files("a"))
    ledger.positions.take(Cell("other", STAGE, "monday"), "r", lambda _: files("a"))
    assert told(lake) == {}


def test_what_is_told_later_is_known_as_well(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: files("a"))
    assert told(lake).keys() == {"monday"}
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r", lambda _: files("b"))
    assert told(lake).keys() == {"monday", "tuesday"}


def test_a_torn_file_is_passed_over(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: files("a"))
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r", lambda _: files("b"))
    first = min(Path(lake).rglob("*.jsonl"))
    first.write_bytes(first.read_bytes()[:-3])
    assert told(lake).keys() == {"tuesday"}


def test_a_lake_without_a_chronicle_tells_nothing(lake):
    assert told(lake) == {}
