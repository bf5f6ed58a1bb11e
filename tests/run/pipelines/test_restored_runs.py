"""Runs that begin with a savepoint, by the command, on a real Spark server."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import TOY, Ended, Workbench, ended

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path / "origin", spark_remote)
    shutil.copy(TOY / "events.yaml", bench.settings.pipelines)
    return bench


def say(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command(*words, "--json"))


def published(bench: Workbench) -> dict[str, list[int]]:
    table = DeltaTable(f"{bench.settings.lake_uri}/marts/events").to_pyarrow_table()
    found: dict[str, list[int]] = {}
    for row in table.sort_by("id").to_pylist():
        found.setdefault(row["_interval"], []).append(row["id"])
    return found


def elsewhere(bench: Workbench, folder: Path) -> Workbench:
    """Another lake and ledger of the same project."""
    other = Workbench.make(folder, bench.settings.spark_remote)
    shutil.copy(TOY / "events.yaml", other.settings.pipelines)
    shutil.copytree(f"{bench.settings.lake_uri}/raw", f"{other.settings.lake_uri}/raw", dirs_exist_ok=True)
    return other


def test_an_incremental_pipeline_goes_on_in_another_lake(bench, tmp_path):
    bench.arrive("events", 1, 2, 3)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    assert say(bench, "savepoint", "create", "--name", "monday").code == 0
    exported = str(tmp_path / "exported")
    assert say(bench, "savepoint", "export", "monday", exported).code == 0
    other = elsewhere(bench, tmp_path / "other")
    assert say(other, "savepoint", "import", exported).code == 0
    restored = say(other, "run", "events", "--interval", "monday", "--restore", "monday")
    assert restored.counts[1] == 0, restored.err
    assert published(other) == {"monday": [1, 2, 3]}
    other.arrive("events", 4)
    assert say(other, "run", "events", "--interval", "tuesday").code == 0
    assert published(other) == {"monday": [1, 2, 3], "tuesday": [4]}


def test_rows_of_one_interval_do_not_come_into_another(bench):
    bench.arrive("events", 1, 2)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    assert say(bench, "savepoint", "create", "--name", "monday").code == 0
    refused = say(bench, "run", "events", "--interval", "tuesday", "--restore", "monday")
    assert refused.code == 1
    assert "interval monday has taken some of that since" in refused.err
    assert published(bench) == {"monday": [1, 2]}


def test_an_interval_goes_back_and_the_plan_said_so(bench):
    assert say(bench, "run", "toy").code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    before = [(file, file.stat()) for file in Path(bench.settings.lake_uri, "raw", "numbers").iterdir()]
    contents = {file: file.read_bytes() for file, _ in before}
    for number in range(4):
        bench.write_source(number, 1000 * number)
    assert say(bench, "run", "toy").counts[1] > 0

    for file, status in before:
        file.write_bytes(contents[file])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    plan = json.loads(say(bench, "plan", "toy", "--restore", "good").out)
    assert plan["run"] == 0
    taken = [line for line in plan["summary"] if line["reason"].startswith("consumable")]
    assert {line["stage"] for line in taken} == {"numbers", "by_wave", "by_colour", "summary"}
    assert all(line["reason"].endswith("; restored") for line in taken)
    back = say(bench, "run", "toy", "--restore", "good")
    assert back.counts[1] == 0, back.err
    assert say(bench, "run", "toy").counts[1] == 0
