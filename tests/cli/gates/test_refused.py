"""`stagehold refused` over data that a gate refused, and rows that it had set aside."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ledger.samples import gate_result, record, run
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.records import QUARANTINE, WHOLE, Cell, DataFile, PartitionRecord, StatePart
from stagehold.model.standing import PartitionState
from stagehold.settings import load_settings

PIPELINE = "shipping_priority"
CELL = Cell(PIPELINE, "orders", "2024-01-01")
SMALL = "expect_column_values_to_be_between(price, max_value=9)"
NAMED = "expect_column_values_to_not_be_null(name)"
SUITE = "joined"  # that refused it, as the records of tests say
EXPECTATIONS = """
suite: joined
expectations:
  - {type: expect_column_values_to_not_be_null, column: name}
"""


def written(table: Path, path: str, rows: list[dict[str, Any]]) -> DataFile:
    target = table / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), target)
    return DataFile(path, target.stat().st_size, len(rows))


def partition(table: Path, number: int, rows: list[dict[str, Any]], **facts: Any) -> PartitionRecord:
    file = written(table, f"_data/a/1/_partition={number}/part-0.parquet", rows)
    return record(number, cell=CELL, table=str(table), files=(file,), rows=len(rows), **facts)


@pytest.fixture(autouse=True)
def ledger(tmp_path, ledger_file, monkeypatch):
    """Partition 0 is fine, 1 is blocked for two reasons, of 2 a row was set aside."""
    shutil.copytree(load_settings().suites, tmp_path / "suites")
    (tmp_path / "suites" / f"{SUITE}.yaml").write_text(EXPECTATIONS)
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    monkeypatch.setenv("STAGEHOLD_SUITES", str(tmp_path / "suites"))
    table = tmp_path / "lake" / "orders"
    fine = [{"price": 1, "name": "a"}]
    refused = [{"price": price, "name": name} for price, name in ((1, "a"), (10, "b"), (2, None), (11, None))]
    aside = written(table, "_data/a/1/_split/aside/_partition=2/part-0.parquet", [{"price": 99, "_expectation": SMALL}])
    part = StatePart(QUARANTINE, (aside,), 1, "f", 3, 128, "")
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        opened.runs.start(replace(run(), pipeline=PIPELINE))
        records = [
            partition(table, 0, fine),
            partition(table, 1, refused, state=PartitionState.BLOCKED, refused=(SMALL, NAMED), reason="too dear"),
            partition(table, 2, fine, kept=(part,)),
        ]
        opened.partitions.record(records, opened.leases.acquire("lease", "me", 60))
        opened.gates.record(
            [said(SMALL, "price", [10, 11]), said(NAMED, "name", [None]), said("x", "name", ["a"], "info")]
        )
        yield opened


def said(expectation: str, column: str, samples: list[Any], severity: str = "critical") -> Any:
    return replace(
        gate_result(1, passed=False, expectation=expectation, cell=CELL),
        severity=Severity(severity),
        configuration=json.dumps({"type": "t", "kwargs": {"column": column}}),
        result=json.dumps({"partial_unexpected_list": samples}),
    )


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["refused", PIPELINE, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(*arguments: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in json.loads(invoke(*arguments, "--json"))["rows"]]


def test_what_is_refused_is_listed():
    told = json.loads(invoke("--json"))["refused"]
    assert [(one["partition"], one["rows"], one["set_aside"], one["state"]) for one in told] == [
        (1, 4, 0, "blocked"),
        (2, 1, 1, "consumable"),
    ]
    assert "too dear" in invoke()
    assert "gates refuse nothing" in invoke("--partition", "0")


def test_rows_that_fail_come_first_with_what_they_fail():
    found = rows("--stage", "orders")
    assert [(row[0], row[2], row[3]) for row in found] == [
        (SMALL, 10, "b"),
        (f"{SMALL}; {NAMED}", 11, None),
        (NAMED, 2, None),
        ("", 1, "a"),
    ]


def test_rows_that_were_set_aside_say_why():
    assert rows("--stage", "orders", "--set-aside") == [(2, 99, SMALL)]


def test_of_columns_that_the_suite_masks_nobody_sees_a_value_unless_he_asks_to(tmp_path):
    (tmp_path / "suites" / f"{SUITE}.yaml").write_text(f"{EXPECTATIONS}samples: {{mask: [Price, gone]}}\n")
    masked = "(masked)"
    assert {(row[2], row[3]) for row in rows("--stage", "orders")} == {(masked, name) for name in ("a", "b", None)}
    assert rows("--stage", "orders", "--set-aside") == [(2, masked, SMALL)]
    assert rows("--sql", "SELECT count(*) FROM orders WHERE price > '1'") == [(0,)]
    assert rows("--sql", "SELECT price FROM orders.set_aside") == [(masked,)]
    result = CliRunner().invoke(app, ["refused", PIPELINE, "--stage", "orders"])
    assert "orders: Price, gone masked by its suite; --unmask shows all" in result.stderr
    assert rows("--sql", "SELECT sum(price) FROM orders", "--unmask") == [(24,)]
    assert rows("--stage", "orders", "--set-aside", "--unmask") == [(2, 99, SMALL)]


def test_a_suite_that_is_gone_masks_what_nobody_knows_so_nothing_is_shown(tmp_path):
    (tmp_path / "suites" / f"{SUITE}.yaml").unlink()
    result = CliRunner().invoke(app, ["refused", PIPELINE, "--stage", "orders"])
    assert result.exit_code == 1
    assert f"{SUITE}.yaml" in result.stderr
    assert len(rows("--stage", "orders", "--unmask")) == 4


def test_both_can_be_asked_in_sql():
    assert rows("--sql", "SELECT sum(price) FROM orders") == [(24,)]
    assert rows("--sql", "SELECT price FROM orders.set_aside") == [(99,)]
    assert rows("--partition", "2", "--sql", "SELECT price FROM orders.set_aside") == [(99,)]
    result = CliRunner().invoke(app, ["refused", PIPELINE, "--sql", "COPY orders TO 'x'"])
    assert result.exit_code == 1
    assert "The statement was refused" in result.stderr


def test_a_stage_of_which_nothing_is_refused_is_an_error_that_names_the_others():
    result = CliRunner().invoke(app, ["refused", PIPELINE, "--stage", "joined"])
    assert result.exit_code == 1
    assert "Known: orders" in result.stderr


def test_held_data_is_read_and_says_what_all_of_it_does_not_meet(ledger, tmp_path):
    table = tmp_path / "lake" / "orders"
    rows = [[{"price": 10, "name": "a"}], [{"price": 1, "name": "b"}]]
    records = [replace(partition(table, number, some), state=PartitionState.HELD) for number, some in enumerate(rows)]
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record([*records, replace(records[0], partition=2, files=(), rows=0)], lease)
    ledger.gates.record([replace(said("unique", "price", [10]), partition=WHOLE)])
    (first, *_) = json.loads(invoke("--json"))["refused"]
    assert (first["partition"], first["state"], first["why"]) == (
        0,
        "held",
        "held with all others: unique: got 3 nulls",
    )
    shown = json.loads(invoke("--stage", "orders", "--json"))["rows"]
    assert [(row["price"], row["_expectation"]) for row in shown] == [(10, "unique"), (1, "")]
