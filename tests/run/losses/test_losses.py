"""What an attempt needs is taken away for a while in the middle of a wave:
the run gets through, and the ledger says what it was.
"""

from __future__ import annotations

import resource
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.run.busy import until
from tests.run.workbench import INTERVAL, Workbench, ended
from tests.run.zygote import Command

from stagehold.ledger.database.engine import LOCK_SECONDS
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, FailureClass
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.server.server import running_server

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    made = Workbench.make(tmp_path, spark_remote)
    file = Path(made.settings.pipelines) / "toy.yaml"
    file.write_text(f"{file.read_text()}restart: {{strategy: fixed-delay, attempts: 1, delay: 4s}}\n")
    return made


@contextmanager
def frozen(bench: Workbench, point: Point, stage: str) -> Iterator[Command]:
    """The run, stopped at ``point`` for the length of the block; after it, it runs to its end and has to succeed."""
    bench.inject(point, stage, 1, FaultAction.FREEZE)
    running = bench.command("run", "toy", "--interval", INTERVAL, "--run-id", "r1", "--json")
    running.await_frozen()
    yield running
    assert ended(running).counts[1] > 0
    assert bench.published() == bench.expected()


def tries(bench: Workbench, region: str) -> list[tuple[AttemptState, FailureClass | None, str | None]]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        found = [attempt for attempt in ledger.attempts.of_run("r1") if attempt.region == region]
    return [(attempt.state, attempt.failure_class, attempt.failure_rule) for attempt in found]


def test_a_ledger_that_is_locked_for_too_long_costs_one_restart_and_no_commit(bench):
    with frozen(bench, Point.AFTER_PUBLISH, "numbers") as running:
        other = sqlite3.connect(bench.settings.home_path / "ledger.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        running.send_signal(signal.SIGCONT)
        time.sleep(LOCK_SECONDS + 2)
        other.close()
    first, second = tries(bench, "numbers")
    assert first == (AttemptState.FAILED, FailureClass.ENVIRONMENT, "ledger_unavailable")
    assert second[0] is AttemptState.FINISHED
    assert {record.reason is not None for record in bench.records("numbers") if record.epoch == 1} == {True}  # adopted


def test_a_disk_that_takes_no_more_bytes_costs_one_restart(bench, spark_settings):
    """No byte can be written by the Spark server:
    the kernel refuses it at the same calls, with another error number than ENOSPC.
    """
    server = running_server(spark_settings)
    limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    with frozen(bench, Point.BEFORE_WRITE, "numbers") as running:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (8, limits[1]))
        try:
            running.send_signal(signal.SIGCONT)
            until(lambda: tries(bench, "numbers")[0][0] is AttemptState.FAILED, 30)
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)
    first, second = tries(bench, "numbers")
    assert first == (AttemptState.FAILED, FailureClass.ENVIRONMENT, "disk_full")
    assert second[0] is AttemptState.FINISHED
