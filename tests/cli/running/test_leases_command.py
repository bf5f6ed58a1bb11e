"""`stagehold leases` and what `stagehold status RUN` says of who is at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from tests.ledger.samples import attempt, run
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.ledger.attempts import Failure
from stagehold.ledger.leases import lease_of
from stagehold.model.pulse import Memory, Pulse, Side
from stagehold.model.records import FailureClass
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.plan.restart.left_out_hosts import HOST
from stagehold.run.checkpoints.discarding import coordinator_lease

PULSE = Pulse(
    stage="joined",
    wave=3,
    doing=Side.WRITING,
    done=12,
    partitions=40,
    rows=24_000,
    bytes=5_000_000,
    read=9_000_000,
    rows_a_second=1200.4,
    bytes_a_second=250_000.0,
    seconds={Side.READING: 2.0, Side.WRITING: 6.0},
    memory=Memory(150_000_000, 2_000_000_000),
)


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.fixture
def at_work(ledger):
    """An attempt in its third wave, and whoever takes the checkpoints of its run."""
    ledger.runs.start(run())
    lease = ledger.leases.acquire(lease_of(attempt()), "airflow ann|worker-3|4711|99|98|4700", 60)
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.leases.renew(lease, 60, PULSE)
    ledger.leases.acquire(coordinator_lease(run()), "checkpoint 1|worker-3|4711|99", 60)
    return lease


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_leases_are_shown_with_their_holders_and_what_their_heartbeats_said(at_work):
    shown = invoke("leases")
    for told in (
        "joined",
        "coordinator of run-1",
        "process 4711 on worker-3",
        "joined wave 3, writing: 12 of 40 partitions",
        "1,200 rows/s, 250.0 kB/s",
        "most time for writing (75%)",
        "client 150.0 MB, server 2.0 GB",
    ):
        assert told in shown
    assert " in 60 s " in shown or " in 59 s " in shown


def test_a_program_is_told_all_of_it(at_work):
    region, coordinator = json.loads(invoke("leases", "--json"))["leases"]
    assert (region["kind"], region["run_id"], region["attempt_id"]) == ("region", "run-1", attempt().attempt_id)
    who = {"owner": "airflow ann", "host": "worker-3", "pid": 4711, "started": "99"}
    assert region["holder"] == {**who, "command": [98, 4700], "table": ""}
    assert coordinator["holder"] == {**who, "owner": "checkpoint 1", "command": [], "table": ""}
    assert region["pulse"]["seconds"] == {"reading": 2.0, "writing": 6.0}
    assert (region["pulse"]["slowest"], region["pulse"]["share_of_slowest"]) == ("writing", 0.75)
    assert region["taken_at"] <= region["renewed_at"] < region["expires_at"]
    assert (coordinator["kind"], coordinator["run_id"], coordinator["pulse"]) == ("coordinator", "run-1", None)


def test_status_of_a_run_says_who_is_at_work_for_it(at_work):
    assert "At work now" in invoke("status", "run-1")
    assert [lease["kind"] for lease in json.loads(invoke("status", "run-1", "--json"))["leases"]] == [
        "region",
        "coordinator",
    ]


def test_where_nobody_is_at_work_that_is_said_with_what_to_look_at(ledger):
    ledger.runs.start(run())
    assert invoke("leases") == "Nobody has a lease now. `stagehold status` lists the newest runs.\n"
    assert json.loads(invoke("leases", "--json")) == {"pipeline": None, "leases": [], "left_out": []}
    assert "At work now" not in invoke("status", "run-1")


def test_a_pipeline_that_there_is_not_is_refused(ledger):
    result = CliRunner().invoke(app, ["leases", "no_such"])
    assert result.exit_code == 1
    assert "no_such" in result.output


def test_leases_are_watched_until_somebody_interrupts(at_work):
    command = [sys.executable, "-m", "stagehold", "leases", "--watch"]
    heard = partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # what began in the background of a shell does not hear it
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}, preexec_fn=heard) as watching:
        lines = iter(watching.stdout.readline, "")
        shown = [next(line for line in lines if "process 4711 on worker-3" in line) for _ in range(4)]
        watching.send_signal(signal.SIGINT)
        watching.wait(10)
    assert len(shown) == 4, "two leases, twice"


def test_a_host_that_gets_no_tasks_is_shown_with_the_reason_and_until_when(ledger):
    for number, (host, failure) in enumerate([("bad", True), ("bad", True), ("good", False), ("bad", True)], 1):
        made = replace(attempt(number), labels={HOST: host})
        ledger.attempts.create(made, *UNTIL_RUNNING)
        event = AttemptEvent.FAIL if failure else AttemptEvent.REPORTED_FINISHED
        why = Failure("OSError: no space", FailureClass.ENVIRONMENT, "disk_full", {"team": "data"}) if failure else None
        ledger.attempts.apply(made.attempt_id, event, failure=why)
    shown = " ".join(invoke("leases").split())
    assert "bad gets no tasks before" in shown
    assert "3 attempts in a row failed there, the last by rule disk_full" in shown
    (host,) = json.loads(invoke("leases", "--json"))["left_out"]
    assert (host["host"], host["failures"], host["rule"]) == ("bad", 3, "disk_full")
    assert ledger.attempts.of_run("run-1")[0].labels == {HOST: "bad", "team": "data"}
