"""`stagehold run --keep`: what changed leaves an interval's data as it is, on record; and data that is too old."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
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
def doubled(ctx, numbers):
    return numbers.selectExpr("{times} * number AS number")
"""
DAY = ("--interval", "2026-11-20")


class Kept:
    def __init__(self, made: SmallProject) -> None:
        self.made, self.folder = made, Path(made.settings.project)

    def declare(self, times: int = 2, **fields: Any) -> None:
        (self.folder / f"{self.folder.name}.py").write_text(JOBS.format(times=times))
        stages = {
            "numbers": {
                "source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES},
                "output": {"type": "blocking"},
            },
            "doubled": {"inputs": {"numbers": "forward"}, **fields},
        }
        jobs = {name: {"job": f"{self.folder.name}:{name}", **stage} for name, stage in stages.items()}
        Path(self.made.settings.pipelines).mkdir(parents=True, exist_ok=True)
        declared = {"pipeline": "small", "schedule": "@daily", "params": {"limit": 1}, "stages": jobs}
        Path(self.made.settings.pipelines, "small.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))

    def call(self, *words: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*words, "--json"], env=dict(self.made.settings.environment))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.output

    def planned(self, *words: str) -> int:
        return self.call("plan", "small", *DAY, *words)["run"]

    def computed(self, *words: str) -> int:
        return self.call("run", "small", *DAY, *words)["computed"]


@pytest.fixture
def kept(tmp_path: Path, spark_remote: str) -> Kept:
    folder = tmp_path / "kept"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS.format(times=2))
    found = Kept(replace(made, settings=replace(made.settings, pipelines=str(folder / "include" / "pipelines"))))
    found.declare()
    assert found.computed() == 2 * FILES
    return found


def test_a_run_keeps_what_other_code_and_parameters_made_and_later_runs_go_by_that(kept):
    kept.declare(times=3)
    words = ("--keep", "doubled=code", "--reason", "only a name changed")
    assert (kept.planned(), kept.planned(*words), kept.planned()) == (FILES, 0, FILES)  # a plan records nothing
    assert "--reason" in kept.call("run", "small", *DAY, "--keep", "code", code=1)
    assert kept.computed(*words) == 0
    assert kept.computed() == 0
    (word,) = kept.call("accept", "--list", "--pipeline", "small")["acceptances"]
    assert (word["stage"], word["part"], word["interval"]) == ("doubled", "code", "2026-11-20")
    assert (word["accepted_by"], word["reason"]) == (os.environ.get("USER") or word["accepted_by"], words[-1])
    limit = ("--param", "limit=2")
    assert kept.planned(*limit) == 2 * FILES
    assert kept.planned(*limit, "--keep", "params", "--reason", "the limit is not used") == 0
    assert kept.call("plan", "small", "--interval", "2026-11-21")["run"] == 2 * FILES


def test_a_backfill_keeps_what_changed_of_each_of_its_dates_and_a_plan_of_it_records_nothing(kept):
    assert kept.call("run", "small", "--interval", "2026-11-21")["computed"] == 2 * FILES
    kept.declare(times=3)
    range_, words = ("--from", "2026-11-20", "--to", "2026-11-22"), ("--keep", "code", "--reason", "as good")

    def planned(*more: str) -> list[int]:
        dates = kept.call("backfill", "small", *range_, *more, "--dry-run")["intervals"]
        return [sum(cell["runs"] for cell in date["cells"]) for date in dates]

    assert planned() == [FILES, FILES, 2 * FILES]
    assert planned(*words) == [0, 0, 2 * FILES]
    assert kept.planned() == FILES
    assert "--reason" in kept.call("backfill", "small", *range_, *words[:2], "--local", "--yes", code=1)
    ended = kept.call("backfill", "small", *range_, *words, "--local", "--yes")
    assert [(date["interval"], date["outcome"]["computed"]) for date in ended["intervals"]] == [
        ("2026-11-22", 2 * FILES)
    ]
    assert kept.planned() == 0
    said = kept.call("accept", "--list", "--pipeline", "small")["acceptances"]
    assert sorted((word["interval"], word["stage"], word["part"], word["reason"]) for word in said) == [
        (day, "doubled", "code", "as good") for day in ("2026-11-20", "2026-11-21")
    ]
    refused = kept.call("backfill", "small", "--resume", ended["backfill"], *words, code=1)
    assert "with --from; what --resume goes on with is kept already" in refused


def test_a_resume_keeps_what_changed_since_its_run_failed(kept):
    kept.made.write_suite("type: expect_column_values_to_be_between, column: number, max_value: 100")
    other = ("--run-id", "night", "--interval", "2026-11-21")
    kept.declare(times=2, gate="own")
    kept.call("run", "small", *other, code=1)  # of two partitions
    kept.declare(times=3, gate="own")
    words = ("--keep", "doubled=code", "--reason", "only a name changed")
    kept.made.write_suite("type: expect_column_values_to_be_between, column: number, max_value: 1000")
    assert kept.call("resume", "night", "--dry-run")["run"] == FILES
    assert kept.call("resume", "night", *words, "--dry-run")["run"] == 2
    assert kept.call("resume", "night", "--dry-run")["run"] == FILES
    assert kept.call("resume", "night", *words)["computed"] == 2
    (word,) = kept.call("accept", "--list", "--pipeline", "small")["acceptances"]
    assert (word["stage"], word["interval"], word["reason"]) == ("doubled", "2026-11-21", words[-1])


def test_a_source_that_changed_is_kept_for_the_interval_and_what_changes_after_that_is_not(kept):
    kept.made.write_source(1, 7)
    words = ("--keep", "sources", "--reason", "a test wrote there")
    assert kept.computed(*words) == 0
    assert kept.planned() == 0
    kept.made.write_source(1, 8)
    assert kept.planned() == 2


def test_a_stage_that_says_what_it_keeps_is_not_computed_and_one_that_is_too_old_is(kept):
    kept.declare(times=3, keep=["code"])
    assert kept.planned() == 0
    kept.declare(times=2, max_age="1h")
    assert kept.planned() == 0
    kept.declare(times=2, max_age="1s")
    time.sleep(1.1)  # until all of it is older
    assert kept.computed() == FILES
