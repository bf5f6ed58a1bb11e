"""The 22 queries of TPC-H, published by a run, are as DuckDB answers them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from examples.tpch import tpch

from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import PROJECT, Settings
from stagehold.spec.loading.loader import load_pipeline

pytestmark = pytest.mark.spark
FOLDER = PROJECT / "examples" / "tpch"


def test_each_query_is_published_as_duckdb_answers_it(tmp_path: Path, spark_remote: str, monkeypatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    settings = Settings(home=str(tmp_path), project=str(FOLDER), spark_remote=spark_remote, spark_cores=2)
    lake = Path(settings.lake_uri)
    lake.mkdir(parents=True)
    tpch.make_data(lake, 0.01)
    path = FOLDER / "include" / "pipelines" / "tpch.yaml"
    pipeline = load_pipeline(path, project=FOLDER, suites=FOLDER / "include" / "suites")
    run_locally(RunRequest(pipeline, "tpch", "2026-11-20", {}), settings, print)
    assert len(tpch.queries()) == 22
    assert list(tpch.differing(lake)) == []
