from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.ledger.samples import record
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import Cell

PIPELINE = "shipping_priority"


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    """Two intervals of one stage, made by code that is not the present one."""
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        lease = opened.leases.acquire("lease", "me", 60)
        for interval, code in (("2024-01-01", "old"), ("2024-01-02", "older")):
            made = replace(
                record(0, cell=Cell(PIPELINE, "orders", interval)),
                compute_key=str(ComputeKey(code, "s", "e", "p", "i")),
            )
            opened.partitions.record([made], lease)
        yield opened


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["accept", "--pipeline", PIPELINE, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["accept", "--pipeline", PIPELINE, *arguments])
    assert result.exit_code == 1
    return result.stderr


def test_accepting_for_one_interval_records_who_why_and_from_which_code_to_which(ledger):
    invoke("orders", "--interval", "2024-01-01", "--reason", "only a log line", "--by", "ann")
    (word,) = ledger.acceptances.of(PIPELINE)
    assert (word.stage, word.interval, word.recorded_code, word.accepted_by) == ("orders", "2024-01-01", "old", "ann")
    assert word.reason == "only a log line"
    assert ledger.acceptances.holding(PIPELINE, ["2024-01-02"]) == ()


def test_without_an_interval_all_recorded_code_is_accepted_by_the_user_of_the_machine(ledger, monkeypatch):
    monkeypatch.setenv("LOGNAME", "bob")
    shown = json.loads(invoke("orders", "--reason", "renamed a variable", "--json"))["acceptances"]
    assert [(one["recorded_code"], one["interval"], one["accepted_by"]) for one in shown] == [
        ("old", None, "bob"),
        ("older", None, "bob"),
    ]
    assert len({one["accepted_code"] for one in shown}) == 1
    assert "no consumable data is of code that does not count already" in refused("orders", "--reason", "again")


def test_what_was_accepted_can_be_listed(ledger):
    assert "nothing was accepted" in invoke("--list")
    invoke("orders", "--reason", "[only] a log line", "--by", "ann")
    text = invoke("--list")
    assert text.count("[only] a log line") == 2
    assert "ann" in text


REFUSED = [
    (["nosuch", "--reason", "x"], "There is no stage of shipping_priority 'nosuch'"),
    (["--reason", "x"], "There is no stage of shipping_priority ''"),
    (["orders"], "--reason is ''; allowed: a sentence"),
    (["customer", "--reason", "x"], "There is nothing to accept for customer"),
    (["orders", "--interval", "2023-01-01", "--reason", "x"], "for 2023-01-01, no consumable data"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_what_cannot_be_accepted_is_refused_with_the_reason(ledger, arguments, text):
    assert text in refused(*arguments)
    assert ledger.acceptances.of(PIPELINE) == ()


def test_code_that_cannot_be_compared_cannot_be_accepted(ledger, tmp_path, monkeypatch):
    (tmp_path / "dynamic.py").write_text("def orders(ctx, source):\n    return eval('source')\n")
    stage = 'orders: {job: "dynamic:orders", source: {kind: parquet, path: x, splits: 1}}'
    (tmp_path / "one.yaml").write_text(f"pipeline: shipping_priority\nstages:\n  {stage}\n")
    monkeypatch.setenv("STAGEHOLD_PROJECT", str(tmp_path))
    monkeypatch.setenv("STAGEHOLD_PIPELINES", str(tmp_path))
    assert "its present code cannot be compared: dynamic line 1 uses eval" in refused("orders", "--reason", "x")
