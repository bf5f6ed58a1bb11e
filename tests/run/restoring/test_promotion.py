"""`stagehold sandbox promote`: what was tried becomes what production has, and nothing is computed for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from tests.run.small_project import FILES, SmallProject
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.spark
JOBS = """
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def times(ctx, numbers):
    return numbers.selectExpr("{times} * number AS number")
"""
DAY = "2026-11-20"
EXPECTED = "{{type: expect_column_values_to_be_between, column: number, max_value: {most}}}"
SUITE = f"suite: small\nexpectations:\n  - {EXPECTED}\n"


class Shop:
    def __init__(self, made: SmallProject) -> None:
        self.made, self.folder = made, Path(made.settings.project)

    def write(self, times: int, most: int = 1000) -> None:
        (self.folder / f"{self.folder.name}.py").write_text(JOBS.format(times=times))
        (self.folder / "small.yaml").write_text(SUITE.format(most=most))
        module, folder = self.folder.name, Path(self.made.settings.pipelines)
        folder.mkdir(parents=True, exist_ok=True)
        table = {"type": "blocking_persistent", "table": "marts.numbers"}
        source = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}
        stages = {
            "numbers": {"job": f"{module}:numbers", "source": source},
            "times": {"job": f"{module}:times", "inputs": {"numbers": "forward"}, "gate": "small", "output": table},
        }
        (folder / "shop.yaml").write_text(
            yaml.safe_dump({"pipeline": "shop", "schedule": "@daily", "stages": stages}, sort_keys=False)
        )

    def call(self, *words: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*words, "--json"], env=dict(self.made.settings.environment))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.output

    def run(self, *words: str) -> dict[str, Any]:
        return self.call("run", "shop", "--interval", DAY, *words)

    def promote(self, *words: str, code: int = 0) -> Any:
        return self.call("sandbox", "promote", "fix", "shop", "--interval", DAY, *words, code=code)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(f"{self.made.settings.lake_uri}/marts/numbers")

    @property
    def numbers(self) -> list[int]:
        return sorted(self.table.to_pyarrow_table(columns=["number"]).column("number").to_pylist())


@pytest.fixture
def shop(tmp_path: Path, spark_remote: str) -> Shop:
    folder = tmp_path / "promoted"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS.format(times=2))
    found = Shop(replace(made, settings=replace(made.settings, pipelines=str(folder / "include" / "pipelines"))))
    found.write(2)
    found.run()
    return found


def every(times: int) -> list[int]:
    return [times * number for number in range(FILES * 25)]


def test_what_was_tried_is_published_by_one_commit_and_nothing_is_computed(shop):
    shop.write(3)
    assert shop.run("--sandbox", "fix")["computed"] == FILES
    assert shop.numbers == every(2)
    version = shop.table.version()
    assert shop.promote("--dry-run")["run_id"] is None
    assert (shop.table.version(), shop.numbers) == (version, every(2))
    promoted = shop.promote("--reason", "it was right", "--by", "ann")
    assert promoted["partitions"] == 2 * FILES
    assert shop.numbers == every(3)
    commits = [commit for commit in shop.table.history() if commit["version"] > version]
    assert len([commit for commit in commits if commit["operation"] == "WRITE" or "add" in str(commit).lower()]) <= 2
    events = shop.call("status", promoted["run_id"])
    assert "ann promoted run" in json.dumps(events)
    assert shop.call("sandbox", "remove", "fix")["removed"]["name"] == "fix"
    assert shop.run()["computed"] == 0
    assert shop.numbers == every(3)


def test_what_production_would_compute_again_is_refused_and_nothing_is_changed(shop):
    assert "There is no sandbox 'fix'" in shop.promote(code=1)
    shop.write(3)
    shop.run("--sandbox", "fix")
    shop.write(4)
    said = shop.promote(code=1)
    assert f"times: {FILES} partitions" in said
    assert "the code of promoted:times changed" in said
    other = shop.call("sandbox", "promote", "fix", "shop", "--interval", "2026-11-21", code=1)
    assert "no run of it was made there" in other
    assert shop.numbers == every(2)
    shop.write(3)
    shop.promote()
    assert shop.numbers == every(3)


def test_what_productions_gate_refuses_is_not_published(shop):
    shop.write(3)
    shop.run("--sandbox", "fix")
    shop.write(3, most=200)
    said = shop.promote(code=1)
    assert "blocked" in said
    assert max(shop.numbers) <= 3 * 99
