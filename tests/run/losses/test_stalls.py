"""A Python function that sleeps for ever, in a server of this home:
noticed, written down, interrupted and tried again.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.run.workbench import Workbench

from stagehold.errors import CallStalled
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, FailureClass
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.spark.server.server import running_server, spark_server
from stagehold.spark.session import sessions
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.spark

# Replaces the toy's source function. It sleeps for ever for as long as the file `stuck` is there.
JOB = """
@stage
def numbers(ctx: StageContext, source: DataFrame) -> DataFrame:
    def work(batches):
        import pathlib
        import time

        for batch in batches:
            if pathlib.Path("{folder}/stuck").exists():
                pathlib.Path("{folder}/stuck").unlink()
                time.sleep(100000)
            yield batch

    frame = source.select("number", (F.col("number") % 7).alias("colour"))
    return frame.mapInArrow(work, "number long, colour long")
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """With a server of its own, whose processes can be asked what they do."""
    made = Workbench.make(tmp_path_factory.mktemp("stalls"), "")
    made = Workbench(replace(made.settings, spark_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA))
    with spark_server(made.settings, "a test"):
        yield made


def test_a_stalled_call_is_interrupted_with_its_stacks_and_the_strategy_decides(bench, tmp_path):
    jobs = Path(bench.settings.project) / "toy_jobs.py"
    jobs.write_text(jobs.read_text() + JOB.replace("{folder}", str(tmp_path)))
    (tmp_path / "stuck").touch()
    bench.declare("stall_timeout: 15s")
    assert bench.run("--run-id", "r1").counts == (0, 13)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        first, second = [attempt for attempt in ledger.attempts.of_run("r1") if attempt.region == "numbers"]
    assert (first.state, first.failure_class, first.failure_rule) == (
        AttemptState.FAILED,
        FailureClass.ENVIRONMENT,
        "stalled",
    )
    assert second.state is AttemptState.FINISHED
    (folder,) = (bench.settings.home_path / "dumps").iterdir()
    assert f"were doing is in {folder}" in first.failure
    assert "stage_frame" in (folder / "client.txt").read_text()
    assert "Executor task launch worker" in (folder / "server.txt").read_text()
    assert any("in work" in file.read_text() for file in folder.glob("python-*.txt"))
    assert bench.published() == bench.expected()


def test_a_server_that_is_frozen_hangs_nobody(bench, monkeypatch):
    """Neither planning nor executing nor goodbye is answered."""
    monkeypatch.setattr(sessions, "ANSWER_SECONDS", 5.0)
    monkeypatch.setattr(sessions, "LISTEN_SECONDS", 5.0)
    bench.declare("stall_timeout: 10s\nrestart: {strategy: none}")
    server = running_server(bench.settings)
    request = RunRequest(find_pipeline("toy", bench.settings), "frozen", "2026-11-21", {})

    def freeze(line: str) -> None:
        if "opened Spark session" in line:
            os.kill(server.pid, signal.SIGSTOP)

    try:
        with pytest.raises(CallStalled):
            run_locally(request, bench.settings, freeze)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("frozen")
    assert attempt.failure_class is FailureClass.ENVIRONMENT
