"""`stagehold inspect` as a user calls it: on a lake that was copied away from everything else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.viewer.samples import checkpoint, names, order, orders, partition, sample_lake, write
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.settings import PROJECT

pytestmark = pytest.mark.slow

ALONE = """
import sys
from stagehold.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
heavy = ("pyspark", "airflow", "sqlalchemy", "delta", "deltalake")
foreign = [name for name in sys.modules if name.split(".")[0] in heavy]
ledger = [name for name in sys.modules if name.startswith("stagehold.ledger")]
assert not foreign + ledger, foreign + ledger
sys.exit(code)
"""


@pytest.fixture
def lake(tmp_path, monkeypatch):
    made = sample_lake(tmp_path)
    monkeypatch.setenv("STAGEHOLD_LAKE", made)
    return made


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["inspect", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["inspect", *arguments])
    assert result.exit_code == 1, result.output
    return result.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--check",),
        ("--stage", "orders"),
        ("--stage", "orders", "--partition", "1"),
        ("--state", "seen"),
        ("--sql", "SELECT * FROM orders JOIN orders.seen USING (id)"),
    ],
)
def test_a_copied_lake_is_enough(tmp_path, words):
    """No ledger, no project, and neither Spark nor Airflow is imported."""
    away = tmp_path / "away"
    shutil.move(sample_lake(tmp_path), away)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("STAGEHOLD_")}
    ended = subprocess.run(
        [sys.executable, "-c", ALONE, "inspect", str(away), *words],
        cwd=tmp_path,
        env={**environment, "STAGEHOLD_HOME": str(tmp_path / "home"), "PYTHONPATH": str(PROJECT / "include")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\x1b" not in ended.stdout
    assert not (tmp_path / "home").exists()


def test_without_a_name_the_newest_in_the_lake_is_shown(lake):
    write(lake, checkpoint(4, names(lake), run_id="sales/later"))
    assert "checkpoint 4 of sales/later" in invoke()


def test_the_tree_says_what_there_is_at_every_level(lake):
    text = invoke("sales/run", "--check")
    assert "checkpoint 3 of sales/run" in text
    assert "partitions: 2 consumable, 1 blocked, 1 missing" in text
    assert "source: 2 files, 150 bytes" in text
    assert "state seen, keyed by id, hash hash-1: 2 partitions, 3 rows" in text
    assert "partition 1, key groups 32-63: 1 rows" in text
    assert "every file is there" in text


def test_gone_files_are_told_in_tree_and_document(lake):
    shutil.rmtree(Path(lake, "stages/sales/orders/2026-01-01/_data/attempt-1/0/_partition=1"))
    assert "files gone or of another size: partitions 1" in invoke("sales/run#3", "--check")
    document = json.loads(invoke("sales/run#3", "--check", "--json"))
    assert [trouble["partition"] for trouble in document["stages"][0]["file_troubles"]] == [1]
    assert "Data of orders is gone for partition(s) 1." in refused("sales/run", "--sql", "SELECT 1 FROM orders")


def test_the_document_has_what_the_tree_has(lake):
    document = json.loads(invoke("sales/run", "--json"))
    assert (document["number"], document["run_id"], document["kind"]) == (3, "sales/run", "checkpoint")
    first = document["stages"][0]
    assert (first["parallelism"], first["missing"], first["amounts"]["consumable"]["rows"]) == (4, 1, 4)
    assert first["states"][0]["parts"][1]["first_group"] == 32


def test_a_stages_partitions_are_listed_and_one_is_shown_fully(lake):
    text = invoke("sales/run", "--stage", "orders")
    assert "1 passed; not_null price failed: 3" in text
    document = json.loads(invoke("sales/run", "--stage", "orders", "--json"))
    assert [partition["state"] for partition in document["partitions"]] == ["consumable", "consumable", "blocked"]
    one = invoke("sales/run", "--stage", "orders", "--partition", "2")
    assert "orders[2] blocked" in one
    assert "gate orders: not_null price failed: 3" in one
    assert (
        json.loads(invoke("sales/run", "--stage", "orders", "--partition", "0", "--json"))["kept"][0]["name"] == "seen"
    )
    assert "There is no partition of orders with a record '3'. Known: 0-2." in refused(
        "sales/run", "--stage", "orders", "--partition", "3"
    )


def test_rows_of_state_by_several_keys(lake):
    rows = json.loads(invoke("sales/run", "--state", "seen", "--keys", "7", "3", "--json"))["rows"]
    assert rows == [
        {"_partition": 0, "_group": 9, "id": 7, "times": 1},
        {"_partition": 1, "_group": 40, "id": 3, "times": 4},
    ]
    assert "There is no state of names 'seen'" in refused("sales/run", "--stage", "names", "--state", "seen")


def test_rows_as_a_table_are_limited_and_as_a_document_are_not(lake):
    assert "1 rows; there are more, --limit shows them" in invoke("sales/run", "--sql", "FROM orders", "--limit", "1")
    document = json.loads(invoke("sales/run", "--sql", 'SELECT id, price, "at" FROM orders ORDER BY id', "--json"))
    assert document["rows"][1] == {"id": 1, "price": "1.50", "at": "2026-01-01T01:00:00+00:00"}
    assert document["columns"]["price"] == "DECIMAL(3,2)"
    assert "Nothing was changed." in refused("sales/run", "--sql", "COPY orders TO 'x'")


def test_two_checkpoints_are_compared_down_to_rows(lake):
    before = orders(lake)
    changed = partition(lake, "orders", 1, [order(2, "9.99"), order(8)], 1, kept=before.partitions[1].kept)
    after = replace(before, partitions=(before.partitions[0], changed, before.partitions[2]))
    write(lake, checkpoint(4, after, names(lake)))
    pair = ("--diff", "sales/run#3", "sales/run#4")
    assert "1 partitions other content: 1" in invoke(*pair)
    text = invoke(*pair, "--stage", "orders", "--key", "id")
    assert all(words in text for words in ("1 rows only in A", "1 rows only in B", "1 rows changed", "price in B"))
    document = json.loads(invoke(*pair, "--stage", "orders", "--json"))
    assert (document["alike"], document["rows"]["removed"]["count"], document["rows"]["changed"]) == (False, 2, None)
    assert json.loads(invoke("--diff", "sales/run#3", "sales/run#3", "--json"))["alike"]
    assert "nothing differs" in invoke("--diff", "sales/run#3", "sales/run#4", "--stage", "names")


def test_what_is_missing_in_the_call_is_named(lake):
    assert "Newest runs with one: sales/run." in refused("sales/other")
    assert "--key is 'id'" in refused("--diff", "sales/run", "sales/run", "--key", "id")
