"""`stagehold init`. That what it writes runs is seen in tests/packaging."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline_schema import pipeline_schema


def init(folder: Path, **variables: str):
    return CliRunner().invoke(
        app, ["init", str(folder)], env={"STAGEHOLD_HOME": None, "STAGEHOLD_LAKE": None, **variables}
    )


def test_what_it_writes_is_a_pipeline_without_problems(tmp_path: Path) -> None:
    answer = init(tmp_path / "new")
    assert answer.exit_code == 0
    assert "stagehold run customer_totals" in answer.stdout
    settings = load_settings({}, project=str(tmp_path / "new"))
    assert [stage.name for stage in find_pipeline("customer_totals", settings).stages] == ["orders", "customer_totals"]
    file = Path(settings.pipelines, "customer_totals.yaml")
    (said,) = re.findall(r"^# yaml-language-server: \$schema=(.+)$", file.read_text(), re.MULTILINE)
    assert json.loads((file.parent / said).read_text()) == pipeline_schema()
    assert len(list((Path(settings.lake_uri) / "raw" / "orders").glob("*.csv"))) == 4


def test_nothing_is_overwritten_and_nothing_written_beside_it(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "customers.py").write_text("mine")
    answer = init(tmp_path)
    assert answer.exit_code == 1
    assert "jobs/customers.py" in answer.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["customers.py"]
    assert (tmp_path / "jobs" / "customers.py").read_text() == "mine"


def test_a_lake_in_a_bucket_is_not_written_to(tmp_path: Path) -> None:
    answer = init(tmp_path / "new", STAGEHOLD_LAKE="s3://bucket/lake")
    assert (answer.exit_code, "STAGEHOLD_LAKE" in answer.stderr) == (1, True)
    assert not (tmp_path / "new").exists()
