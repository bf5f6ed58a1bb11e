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
