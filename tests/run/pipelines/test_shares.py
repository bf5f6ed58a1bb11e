"""A run whose regions are split over tasks, killed and resumed with another cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.run.workbench import INTERVAL, Ended, Workbench, killed, table_versions

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, RunState
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def split(bench: Workbench, tasks: int) -> None:
    """Cut the fused region of two stages, and the keyed stage that reads it, into so many shares."""
    path = Path(bench.settings.pipelines) / "toy.yaml"
    lines = [line for line in path.read_text().splitlines() if "max_parallel_tasks" not in line]
    for stage in ("by_wave", "by_colour"):
        lines.insert(lines.index(f"    job: toy_jobs:{stage}"), f"    max_parallel_tasks: {tasks}")
    path.write_text("\n".join(lines) + "\n")


def test_what_a_share_committed_before_it_was_killed_is_adopted_by_the_shares_of_another_cut(bench):
    split(bench, 2)
    bench.inject(Point.AFTER_PUBLISH, "by_wave", 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", "r1"))
    assert bench.records("by_wave") == ()
    split(bench, 4)
    resumed = bench.run("--run-id", "r1")
    assert resumed.counts == (4 + 2, 2 + 4 + 1)
    # of the two that the old share had, each new one takes its own
    assert resumed.err.count("adopted 1 partitions") == 2
    assert bench.published() == bench.expected()
    with Ledger.open(bench.settings.ledger_url) as ledger:
        attempts = [attempt for attempt in ledger.attempts.of_run("r1") if attempt.region == "doubled__by_wave"]
        assert ledger.runs.get("r1").state is RunState.FINISHED
    assert [attempt.share for attempt in attempts] == ["0-1", "0-0", "1-1", "2-2", "3-3"]
    assert [attempt.epoch for attempt in attempts] == [1, 2, 3, 4, 5]
    assert [attempt.state for attempt in attempts[1:]] == [AttemptState.FINISHED] * 4
    split(bench, 1)
    assert bench.run(settings=bench.without_spark()).counts == (13, 0)
    assert bench.records("by_wave")[0].cell.interval == INTERVAL


REGION = "doubled__by_wave"


def speculate(bench: Workbench) -> None:
    path = Path(bench.settings.pipelines) / "toy.yaml"
    path.write_text(
        path.read_text().replace("stages:\n", "speculation: {least_seconds: 1, multiplier: 1.0}\nstages:\n")
    )


def share(bench: Workbench, name: str) -> subprocess.Popen[str]:
    """The task of one share, in a process of its own."""
    command = [sys.executable, "-m", "tests.run.run_share", "r1", INTERVAL, REGION, name]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=os.environ | dict(bench.settings.environment), stdout=pipe, stderr=pipe, text=True
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err)


def test_a_frozen_share_is_computed_by_another_task_and_finds_its_work_done_when_it_wakes_up(bench):
    split(bench, 4)
    speculate(bench)
    bench.inject(Point.BEFORE_WRITE, "by_wave", 1, FaultAction.FAIL)
    # the first region is done, the shares of the second are all to be done
    assert bench.run("--run-id", "r1").code == 1
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 1, FaultAction.FREEZE)
    frozen = share(bench, "3-3")
    os.waitid(os.P_PID, frozen.pid, os.WSTOPPED | os.WNOWAIT)
    others = [ended(share(bench, name)) for name in ("0-0", "1-1", "2-2")]
    assert [other.out.split() for other in others] == [["0", "1"]] * 3
    assert ["is slow" in other.err for other in others] == [False, False, True]  # enough had finished only then
    records = bench.records("by_wave")
    assert [record.partition for record in records] == [0, 1, 2, 3]
    versions = table_versions(records[0].table)
    rest = bench.run("--run-id", "r1")
    assert rest.counts == (4 + 4, 4 + 1)
    assert bench.published() == bench.expected()
    frozen.send_signal(signal.SIGCONT)
    woken = ended(frozen)
    assert (woken.code, woken.out.split()) == (0, ["1", "0"])
    assert "was overtaken by a faster attempt (Fenced)" in woken.err
    assert (bench.records("by_wave"), table_versions(records[0].table)) == (records, versions)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        assert ledger.runs.get("r1").state is RunState.FINISHED


def test_a_slow_share_that_commits_first_wins_and_its_helper_publishes_nothing(bench):
    split(bench, 4)
    speculate(bench)
    bench.inject(Point.BEFORE_WRITE, "by_wave", 1, FaultAction.FAIL)
    assert bench.run("--run-id", "r1").code == 1
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 1, FaultAction.FREEZE)
    slow = share(bench, "3-3")
    os.waitid(os.P_PID, slow.pid, os.WSTOPPED | os.WNOWAIT)
    assert [ended(share(bench, name)).code for name in ("0-0", "1-1")] == [0, 0]
    helper = share(bench, "2-2")
    _wait_for(bench, partitions=3)
    bench.inject(Point.AFTER_MEASURE, "by_wave", 1, FaultAction.FREEZE)
    os.waitid(os.P_PID, helper.pid, os.WSTOPPED | os.WNOWAIT)
    slow.send_signal(signal.SIGCONT)
    assert ended(slow).out.split() == ["0", "1"]
    records = bench.records("by_wave")
    helper.send_signal(signal.SIGCONT)
    helped = ended(helper)
    assert (helped.code, "is slow" in helped.err) == (0, True)
    assert bench.records("by_wave") == records
    assert not list(Path(bench.settings.lake_uri).glob("**/_data/*speculation*"))
    assert bench.run("--run-id", "r1").counts == (4 + 4, 4 + 1)
    assert bench.published() == bench.expected()


def _wait_for(bench: Workbench, *, partitions: int) -> None:
    deadline = time.monotonic() + 60
    while len(bench.records("by_wave")) < partitions:
        assert time.monotonic() < deadline
        time.sleep(0.05)
