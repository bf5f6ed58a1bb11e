from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stagehold.cli.main import app
from stagehold.local.local_services import local_services
from stagehold.local.state import ServiceFailure, ServicePhase, ServiceState, SupervisorState, write_state
from stagehold.settings import Settings
from stagehold.spark.processes import identify
from stagehold.spark.server.server_record import ServerState, using
from stagehold.spark.server.server_record import write_state as keep_server

SERVICE = ServiceState("scheduler", ServicePhase.RUNNING, "http://127.0.0.1:1", 2, "2026-01-02T03:04:05+00:00", 77, 88)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    return Settings(home=str(tmp_path))


@pytest.fixture
def living(settings: Settings) -> SupervisorState:
    """The record of a supervisor that lives: this process."""
    own = identify(os.getpid())
    assert own is not None
    state = SupervisorState(own.pid, own.started, None, (SERVICE,))
    write_state(settings, state)
    return state


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_status_says_how_to_start_what_is_not_up(settings: Settings) -> None:
    assert "`stagehold up` starts them" in invoke("status").stdout


def test_status_shows_each_service(living: SupervisorState) -> None:
    line = next(line for line in invoke("status").stdout.splitlines() if "scheduler" in line)
    assert line.split() == ["scheduler", "running", "77", "2", "2026-01-02", "03:04:05", "http://127.0.0.1:1"]
    service = json.loads(invoke("status", "--json").stdout)["services"][0]
    assert service == {
        "name": "scheduler",
        "state": "running",
        "pid": 77,
        "restarts": 2,
        "since": "2026-01-02T03:04:05+00:00",
        "address": "http://127.0.0.1:1",
    }


def test_status_says_why_a_supervisor_gave_up(settings: Settings, living: SupervisorState) -> None:
    write_state(settings, replace(living, started=0, failure=ServiceFailure("scheduler", "ended 7 times", ("line",))))
    text = invoke("status").stdout
    assert "ended" in text
    assert "They were stopped: scheduler ended 7 times. `stagehold up` starts them again." in text


def test_up_says_at_once_that_it_is_up_already(living: SupervisorState) -> None:
    result = invoke("up")
    assert result.exit_code == 0
    assert result.stdout.startswith("Already up.\nAirflow: http://127.0.0.1:8080  user admin  password ")


def test_down_says_that_nothing_was_up(settings: Settings) -> None:
    assert invoke("down").stdout == "Nothing was up.\n"


@pytest.mark.parametrize(
    ("variable", "other"),
    [("STAGEHOLD_AIRFLOW_PORT", "STAGEHOLD_SPARK_PORT"), ("STAGEHOLD_SPARK_PORT", "STAGEHOLD_AIRFLOW_PORT")],
)
def test_up_names_a_port_that_is_taken_and_its_setting(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, variable: str, other: str
) -> None:
    with socket.socket() as taken, socket.socket() as free:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv(variable, str(port))
        monkeypatch.setenv(other, str(free.getsockname()[1]))
        free.close()
        result = invoke("up")
    assert result.exit_code == 1
    assert f"Port {port}" in result.stderr
    assert variable in result.stderr
    assert not (settings.home_path / "supervisor.json").exists()


def test_status_says_who_uses_the_spark_server(settings: Settings) -> None:
    with using(settings, "run toy/1"):
        line = next(line for line in invoke("status").stdout.splitlines() if "toy/1" in line)
        assert line.split()[:3] == ["run", "toy/1", str(os.getpid())]
        (user,) = json.loads(invoke("status", "--json").stdout)["spark_users"]
        assert (user["pid"], user["purpose"]) == (os.getpid(), "run toy/1")
    assert json.loads(invoke("status", "--json").stdout)["spark_users"] == []


def test_a_server_that_runs_use_is_not_started_a_second_time(settings: Settings) -> None:
    own = identify(os.getpid())
    assert own is not None
    with socket.socket() as listening, using(settings, "run toy/1"):
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        keep_server(settings, ServerState(own.pid, own.started, port, "", "", "", own.pid, own.started, kept_up=False))
        refused = invoke("up")
    assert refused.exit_code == 1
    assert f"run toy/1 (process {os.getpid()})" in " ".join(refused.stderr.split())


def test_spark_alone_is_refused_where_it_is_somebody_elses(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEHOLD_SPARK_REMOTE", "sc://elsewhere")
    refused = invoke("up", "--spark-only")
    assert (refused.exit_code, "--spark-only is 'given'" in refused.stderr) == (1, True)


def test_spark_alone_is_one_service(settings: Settings) -> None:
    assert [service.name for service in local_services(settings, spark_only=True)] == ["spark"]
