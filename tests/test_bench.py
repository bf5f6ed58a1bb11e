"""One measurement of `make bench`, so that the benchmarks stay runnable."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stagehold.settings import PROJECT

pytestmark = pytest.mark.slow


def test_planning_is_measured() -> None:
    command = [sys.executable, "bench/plan.py", "--only", "500", "--repetitions", "1"]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["partitions"] == 500


@pytest.mark.airflow
def test_pages_are_measured_beside_airflows_own() -> None:
    command = [sys.executable, "bench/pages.py", "--only", "2", "--repetitions", "1"]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout.splitlines()[-1])  # Airflow logs before it
    assert (found["pipelines"], len(found["lists"])) == (2, 2)
    assert {"intervals", "run: grid", "run: dry run"} <= found["routes"].keys()
    assert found["health"]["kept_bytes"] > 0
