"""A ledger, a chronicle and an archived run that were written at schema 0014 are read as they were meant, and what is
written today is the same, byte for byte.

`data/schema_0014` was written once and is never written again: ``ledger.sql`` is SQLite's dump of a ledger with a row
of every kind, ``lake`` what its lake kept of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.ledger.blank import lay_blank_ledger

from stagehold.chronicle.chronicle import read_chronicle
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_chronicle, missing_in_ledger
from stagehold.ledger import Ledger
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.ledger.kinds import KINDS
from stagehold.model.choices import Pin
from stagehold.run.upkeep.run_archive import RunArchive, RunReport, report_of

DATA = Path(__file__).with_name("data") / "schema_0014"
LAKE = str(DATA / "lake")
LATER = {Pin}  # kinds of facts that there were not yet
NOT_A_FACT = {"checkpoints": ["covers"]}  # the id of a row, which means nothing in another ledger


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "earlier.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((DATA / "ledger.sql").read_text())
    return path


@pytest.fixture
def earlier(file) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{file}") as ledger:
        yield ledger


@pytest.fixture
def rebuilt(tmp_path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{lay_blank_ledger(tmp_path / 'rebuilt.db')}") as ledger:
        yield ledger


def stored(path: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table as SQLite has them."""
    with closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        wanted = ", ".join(f'"{name}"' for name in columns if name not in NOT_A_FACT.get(table, ()))
        return sorted(database.execute(f"SELECT {wanted} FROM {table}"), key=repr)


def test_a_row_of_every_kind_is_read(earlier):
    assert {type(fact) for fact in earlier.facts.all()} == {kind.type for kind in KINDS} - LATER
    assert [checkpoint.number for checkpoint in earlier.checkpoints.of_run("run-1")] == [1, 2]
    assert len(earlier.transitions.of_run("run-1")) == 10


def test_rows_are_written_as_they_were(file, earlier, rebuilt, tmp_path):
    rebuilt.facts.mend(lambda _: earlier.facts.all())
    for kind in KINDS:
        assert stored(tmp_path / "rebuilt.db", kind.table.name) == stored(file, kind.table.name)


def test_the_chronicle_is_written_as_it_was():
    for path in Path(LAKE, "ledger").rglob("*.jsonl"):
        assert to_lines(from_lines(path.read_bytes())) == path.read_bytes()


def test_ledger_and_chronicle_agree(earlier):
    known, told = earlier.facts.all(), read_chronicle(LAKE)[0]
    assert missing_in_ledger(known, LakeKnowledge(told, {})) == ()
    assert missing_in_chronicle(known, told) == ()


def test_a_ledger_that_is_lost_comes_back_from_the_chronicle(earlier, rebuilt):
    told = LakeKnowledge(read_chronicle(LAKE)[0], {})
    rebuilt.facts.mend(lambda known: missing_in_ledger(known, told))
    assert rebuilt.facts.all() == earlier.facts.all()


def test_an_archived_run_is_read_and_written_as_it_was(earlier, rebuilt):
    (archived,) = RunArchive(LAKE).of_run("run-1")
    (path,) = Path(LAKE, "_runs").rglob("*.json")
    assert TypeAdapter(RunReport).dump_json(archived, indent=1) == path.read_bytes()
    assert report_of("run-1", rebuilt, LAKE) == archived == report_of("run-1", earlier, LAKE)
