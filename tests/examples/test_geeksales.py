"""A public project's report, moved: what is published is what the program before writes, and what DuckDB answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from examples.geeksales import sales

from stagehold.errors import StageFailed
from stagehold.ledger import Ledger
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import PROJECT, Settings
from stagehold.spec.loading.loader import load_pipeline

pytestmark = pytest.mark.spark
DAY = "2026-11-20"


@pytest.fixture
def settings(tmp_path: Path, spark_remote: str) -> Settings:
    project = tmp_path / "geeksales"
    shutil.copytree(PROJECT / "examples" / "geeksales", project, ignore=shutil.ignore_patterns(".stagehold"))
    made = Settings(home=str(tmp_path), project=str(project), spark_remote=spark_remote, spark_cores=2)
    sales.make_data(Path(made.lake_uri), DAY, 2000)
    return made


def run(settings: Settings, run_id: str) -> None:
    project = Path(settings.project)
    path = project / "include" / "pipelines" / "sales.yaml"
    pipeline = load_pipeline(path, project=project, suites=project / "include" / "suites")
    run_locally(RunRequest(pipeline, run_id, DAY, {}), settings, print)


def made(settings: Settings, run_id: str) -> dict[str, int]:
    """How many partitions a run computed of each stage."""
    with Ledger.open(settings.ledger_url) as ledger:
        records = ledger.partitions.of_run(run_id)
    stages = [record.cell.stage for record in records]
    return {stage: stages.count(stage) for stage in stages}


def test_it_goes_on_where_it_failed_and_publishes_what_the_program_before_wrote(settings: Settings, tmp_path: Path):
    lake, code = Path(settings.lake_uri), Path(settings.project, "src/geeksales/spark_utils.py")
    text = code.read_text()
    code.write_text(text.replace('df.groupBy("region")', 'df.groupBy("regoin")'))
    with pytest.raises(StageFailed, match=r"at src/geeksales/spark_utils.py:\d+"):
        run(settings, "failed")
    code.write_text(text)
    run(settings, "resumed")
    assert [made(settings, run_id) for run_id in ("failed", "resumed")] == [{"sales": 8, "orders": 16}, {"regions": 4}]
    assert list(sales.differing(lake, DAY)) == []

    before = tmp_path / "before"
    paths = [str(place) for place in (lake / "raw" / "sales", before)]
    environment = {**os.environ, "SPARK_REMOTE": settings.spark_remote, "PYTHONPATH": f"{settings.project}/src"}
    command = [sys.executable, f"{settings.project}/before/report.py", DAY, *paths]
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert list(sales.differing(lake, DAY, before)) == []
