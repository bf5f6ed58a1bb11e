"""One measurement of `make bench`, so that the benchmarks stay runnable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres import BACK_ENDS

from stagehold.settings import PROJECT

pytestmark = pytest.mark.slow


def test_planning_is_measured() -> None:
    command = [sys.executable, "bench/plan.py", "--only", "500", "--repetitions", "1"]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["partitions"] == 500


@pytest.mark.spark
def test_growth_is_measured_and_however_cut_the_answer_is_the_same(tmp_path) -> None:
    results = tmp_path / "growth.json"
    command = [sys.executable, "bench/growth.py", "--counts", "2", "5", "--scale", "0.01", "--results", str(results)]
    subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    found = json.loads(results.read_text())
    assert [(one["partitions"], one["code"], len(one["answers"])) for one in found["measured"]] == [
        (2, "now", 1),
        (5, "now", 1),
    ]
    assert found["ratios"]["now: ledger_bytes, 5 against 2"] >= 1


@pytest.mark.parametrize("behind", BACK_ENDS)
def test_the_ledgers_waits_are_measured_under_many_attempts(behind: str, tmp_path: Path) -> None:
    results = tmp_path / "ledger.json"
    command = [sys.executable, "bench/ledger.py", "--behind", behind, "--attempts", "3", "--seconds", "1"]
    given = ["--pauses", "0", "--results", str(results)]
    subprocess.run([*command, *given], cwd=PROJECT, capture_output=True, text=True, check=True)
    (found,) = json.loads(results.read_text())["measured"]
    assert len(found["calls"]) == 4
    assert all(0 < call["median"] <= call["p99"] <= call["most"] for call in found["calls"].values())
    assert found["failed"] == {}
    assert found["connections"]["left"] == 0


@pytest.mark.airflow
def test_pages_are_measured_beside_airflows_own() -> None:
    command = [sys.executable, "bench/pages.py", "--only", "2", "--repetitions", "1"]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout.splitlines()[-1])  # Airflow logs before it
    assert (found["pipelines"], len(found["lists"])) == (2, 2)
    assert {"intervals", "run: grid", "run: dry run"} <= found["routes"].keys()
    assert found["health"]["kept_bytes"] > 0


@pytest.mark.parametrize(
    ("memory", "kept"),
    [
        ([300.0, 400.0, 500.0, 500.0, 500.0, 490.0, 500.0, 505.0], True),
        ([300.0, 400.0, 500.0, 500.0, 500.0, 520.0, 560.0, 580.0], False),
    ],
)
def test_a_soak_refuses_memory_that_grows_in_its_second_half(memory, kept) -> None:
    samples = [
        {"seconds": 10.0 * number, "resident_megabytes": resident, "processor_seconds": number, "kept_megabytes": 9}
        for number, resident in enumerate(memory)
    ]
    told = (
        "import json, sys; sys.path[:0] = ['bench']; import soak; samples = json.loads(sys.argv[1]);"
        "print(json.dumps([soak._summary(samples), soak._chart(samples)]))"
    )
    command = [sys.executable, "-c", told, json.dumps(samples)]
    summary, chart = json.loads(subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout)
    assert (summary["kept"], summary["cores_used"]) == (kept, 0.1)
    assert summary["resident_megabytes"]["first_half"] == {"median": 450.0, "most": 500.0}
    assert chart.count("<polyline") == 2
