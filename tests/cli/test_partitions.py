from __future__ import annotations

import json

import pytest
from tests.ledger.samples import CELL, record, run
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState

DECLARED = "shipping_priority"


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.fixture
def recorded(ledger):
    """Two intervals of `sales`, a pipeline whose file is gone; the newest run is for the first."""
    ledger.runs.start(run("run-0", interval="2024-01-02"))
    ledger.runs.start(run("run-1", minutes=1))
    lease = ledger.leases.acquire("lease", "me", 60)
    blocked = record(1, state=PartitionState.BLOCKED, version=None, files=(), rows=0, reason="[3 nulls] in price")
    orders = record(0, cell=Cell("sales", "orders", CELL.interval))
    other = record(0, cell=Cell("sales", "joined", "2024-01-02"), epoch=7)
    ledger.partitions.record([record(0), blocked, orders, other], lease)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["partitions", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def found(*arguments: str) -> list[tuple[str, int, str]]:
    return [
        (partition["stage"], partition["partition"], partition["state"])
        for partition in json.loads(invoke(*arguments, "--json"))["partitions"]
    ]


def test_the_newest_runs_interval_is_shown_by_stage_and_partition(recorded):
    assert found("sales") == [("joined", 0, "consumable"), ("joined", 1, "blocked"), ("orders", 0, "consumable")]
    text = invoke("sales")
    assert "sales for 2024-01-01" in text
    assert "[3 nulls] in price" in text


def test_another_interval_can_be_asked_for(recorded):
    document = json.loads(invoke("sales", "--interval", "2024-01-02", "--json"))
    (one,) = document["partitions"]
    assert (document["pipeline"], document["interval"], one["epoch"], one["bytes"]) == ("sales", "2024-01-02", 7, 1000)
    assert one["files"] == [{"path": "_data/7/0/_partition=0/part-0.parquet", "bytes": 1000, "rows": 10}]


def test_one_stage_can_be_asked_for(recorded):
    assert found("sales", "--stage", "orders") == [("orders", 0, "consumable")]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((DECLARED,), f"{DECLARED} has not run yet. `stagehold run {DECLARED}` runs it."),
        (
            (DECLARED, "--interval", "x"),
            f"nothing recorded of it for x. `stagehold run {DECLARED} --interval x` makes it.",
        ),
        ((DECLARED, "--interval", "x", "--stage", "orders"), "nothing recorded of stage orders for x."),
    ],
)
def test_where_nothing_is_recorded_it_says_what_to_do(ledger, arguments, hint):
    assert hint in invoke(*arguments)
    assert found(*arguments) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shiping_priority",), "There is no pipeline 'shiping_priority'"),
        ((DECLARED, "--stage", "odrers"), "There is no stage of shipping_priority 'odrers'. Known: "),
    ],
)
def test_misspelt_names_are_refused_with_the_known_ones(ledger, arguments, message):
    result = CliRunner().invoke(app, ["partitions", *arguments])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert DECLARED in result.stderr


def test_a_skewed_partition_is_marked_with_figures(ledger):
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.runs.start(run("run-1"))
    ledger.partitions.record([record(0), record(1), record(2, rows=80)], lease)
    assert [partition["skew"] for partition in json.loads(invoke("sales", "--json"))["partitions"]] == [
        None,
        None,
        "80 rows, 8.0 times the median of 10",
    ]
    assert "skewed: 80 rows, 8.0 times the median of 10" in " ".join(invoke("sales").split())
