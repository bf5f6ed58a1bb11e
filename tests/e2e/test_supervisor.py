"""`stagehold up`: everything comes up, comes back after a kill, and goes away. The last tests of a stack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest
from tests.e2e.driven_airflow import DrivenAirflow
from tests.e2e.stack import RUN_SECONDS, Stack

from stagehold.errors import AirflowRefused, NotInTime
from stagehold.local.state import ServicePhase, known_state, living_supervisor, read_state
from stagehold.settings import Settings
from stagehold.spark.ports import is_free
from stagehold.spark.processes import identify, python_environment, session_members, wait_until
from stagehold.spark.session.sessions import open_session, release_session

pytestmark = [pytest.mark.e2e, pytest.mark.takes_down]

SERVICES = ["spark", "api-server", "scheduler", "dag-processor"]


@pytest.fixture(scope="module")
def settings(stack: Stack) -> Settings:
    """Of the stack that all other tests have used: these tests are the last, since they leave nothing of it."""
    return stack.settings


def stagehold(settings: Settings, *arguments: str) -> str:
    code = "from stagehold.cli.main import app; app()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=python_environment(settings), capture_output=True, text=True, timeout=180, check=True
    ).stdout


def pids(settings: Settings) -> dict[str, int]:
    state = read_state(settings)
    return {service.name: service.pid for service in state.services} if state else {}


def ready(settings: Settings) -> bool:
    state = living_supervisor(settings)
    return state is not None and state.ready


def left_of(settings: Settings, sessions: list[int]) -> list[int]:
    """Processes in the services' sessions, and others that were started for this home."""
    mark = f"STAGEHOLD_HOME={settings.home_path}".encode()
    marked = [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/environ") if mark in read(file).split(b"\0")]
    return [pid for pid in marked if identify(pid)] + [pid for session in sessions for pid in session_members(session)]


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def assert_nothing_is_left(settings: Settings, sessions: list[int]) -> None:
    assert wait_until(lambda: not left_of(settings, sessions), 10), left_of(settings, sessions)
    assert is_free(settings.spark_port)
    assert is_free(settings.airflow_port)


def test_killed_services_come_back_and_down_leaves_nothing(settings: Settings) -> None:
    before = pids(settings)
    for name in ("api-server", "spark"):
        os.kill(before[name], signal.SIGKILL)
    assert wait_until(
        lambda: ready(settings) and all(pids(settings)[name] != before[name] for name in ("api-server", "spark")), 90
    )
    assert {name: pids(settings)[name] for name in ("scheduler", "dag-processor")} == {
        name: before[name] for name in ("scheduler", "dag-processor")
    }
    assert_spark_answers(settings)
    assert_airflow_runs_dags(settings)

    sessions = list(pids(settings).values())
    assert stagehold(settings, "down").startswith("Stopped after ")
    assert_nothing_is_left(settings, sessions)
    assert json.loads(stagehold(settings, "status", "--json"))["services"] == []


def assert_spark_answers(settings: Settings) -> None:
    name = str(uuid4())
    assert open_session(settings, name).range(5).count() == 5
    release_session(settings, name)


def assert_airflow_runs_dags(settings: Settings) -> None:
    with DrivenAirflow.local(settings) as airflow:
        airflow.await_dag("nightly")
        run = airflow.wait(airflow.trigger("nightly", conf={"interval": "after the kills"}), RUN_SECONDS)
        assert run.state == "success"
        assert "computed 2 in " in airflow.log_text(run, "orders", 1)
        failed = airflow.wait(airflow.trigger("nightly", conf={"restore": "nobody/ran#1"}), RUN_SECONDS)
        assert failed.state == "failed"
        assert {"customer", "orders"} <= set(airflow.clear(failed, only_failed=True))
        assert airflow.wait(failed, RUN_SECONDS).state == "failed"
        tasks = airflow.tasks("nightly", failed.run_id)
        assert {tasks[name].number for name in ("customer", "orders")} == {2}

        with pytest.raises(AirflowRefused, match="404"):
            airflow.trigger("missing")
        with pytest.raises(NotInTime):
            airflow.await_dag("missing", seconds=0.5)
    with pytest.raises(AirflowRefused, match="401"):
        DrivenAirflow.logged_in(f"http://127.0.0.1:{settings.airflow_port}", "admin", "wrong")


def test_up_says_where_airflow_is_and_nothing_is_left_when_the_supervisor_itself_is_killed(settings: Settings) -> None:
    text = stagehold(settings, "up")
    assert f"http://127.0.0.1:{settings.airflow_port}  user admin  password " in text
    begun = time.monotonic()
    assert stagehold(settings, "up").startswith("Already up.")
    assert time.monotonic() - begun < 5
    shown = json.loads(stagehold(settings, "status", "--json"))["services"]
    assert [(service["name"], service["state"], service["restarts"]) for service in shown] == [
        (name, "running", 0) for name in SERVICES
    ]

    state = living_supervisor(settings)
    assert state is not None
    sessions = [service.pid for service in state.services]
    assert len(session_members(pids(settings)["scheduler"])) > 1
    os.kill(state.pid, signal.SIGKILL)
    assert_nothing_is_left(settings, sessions)
    known = known_state(settings)
    assert known is not None
    assert {service.phase for service in known.services} == {ServicePhase.ENDED}
    assert stagehold(settings, "down") == "Nothing was up.\n"
