"""A Python function that sleeps for ever, in a server of this home: noticed, written down, interrupted and tried again."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.busy import until
from tests.run.workbench import INTERVAL, Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, FailureClass
from stagehold.run.server import running_server, spark_server

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


@pytest.fixture
def bench(tmp_path, own_settings):
    """With a server of its own, whose processes can be asked what they do."""
    made = Workbench.make(tmp_path, "")
    made = Workbench(replace(made.settings, spark_port=own_settings.spark_port, spark_memory="1g"))
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
    assert (first.state, first.failure_class, first.failure_rule) == (AttemptState.FAILED, FailureClass.ENVIRONMENT, "stalled")
    assert second.state is AttemptState.FINISHED
    (folder,) = (bench.settings.home_path / "dumps").iterdir()
    assert f"were doing is in {folder}" in first.failure
    assert "stage_frame" in (folder / "client.txt").read_text()
    assert "Executor task launch worker" in (folder / "server.txt").read_text()
    assert any("in work" in file.read_text() for file in folder.glob("python-*.txt"))
    assert bench.published() == bench.expected()


def test_a_server_that_is_frozen_hangs_nobody(bench, tmp_path):
    """Neither planning nor executing nor goodbye is answered."""
    bench.declare("stall_timeout: 10s\nrestart: {strategy: none}")
    server = running_server(bench.settings)
    run = bench.command("run", "toy", "--interval", INTERVAL, "--run-id", "r1")
    with Ledger.open(bench.settings.ledger_url) as ledger:
        until(lambda: ledger.attempts.of_run("r1"), 60)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        failed = ended(run, 280)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert failed.code == 1
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
    assert attempt.failure_class is FailureClass.ENVIRONMENT
