"""The local Spark Connect server: who gets in, who starts and ends it, and what is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from stagehold.errors import SparkMisconfigured, SparkUnavailable
from stagehold.settings import Settings
from stagehold.spark.processes import identify, python_environment, wait_until
from stagehold.spark.server.configuration import USUAL_PORT
from stagehold.spark.server.server import port_answers, running_server, spark_server, start_server
from stagehold.spark.server.server_record import read_state, server_folder, server_users, write_state
from stagehold.spark.session.sessions import open_session, release_session, translate

pytestmark = pytest.mark.spark

ENDLESS = "sum(id % 7)"  # over a range too long to finish


def processes_of(settings: Settings) -> list[int]:
    """Every living process that was started for this home, wherever it is in the process tree."""
    mark = f"STAGEHOLD_HOME={settings.home_path}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables and identify(int(folder.name)):
            found.append(int(folder.name))
    return found


def start_lock_is_free(settings: Settings) -> bool:
    with (server_folder(settings) / "start.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("token", ["", ";token=wrong"])
def test_a_client_without_the_token_is_refused(spark_settings: Settings, token: str) -> None:
    remote = f"sc://localhost:{spark_settings.spark_port}/;user_id=stranger{token}"
    with pytest.raises(SparkMisconfigured, match="does not accept the token"):
        open_session(replace(spark_settings, spark_remote=remote), str(uuid4()), wait_seconds=0)


def test_a_block_leaves_a_server_running_that_was_there_before(spark_settings: Settings) -> None:
    before = running_server(spark_settings)
    assert before is not None
    with spark_server(spark_settings):
        pass
    assert running_server(spark_settings) == before


def test_the_token_is_readable_by_its_owner_only_and_on_no_command_line(spark_settings: Settings) -> None:
    file = server_folder(spark_settings) / "server.json"
    state = json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert state["token"] not in Path(f"/proc/{state['pid']}/cmdline").read_text()


def test_the_server_listens_on_the_loopback_address_only(spark_settings: Settings) -> None:
    state = running_server(spark_settings)
    assert state is not None
    inodes = {str(link.readlink()) for link in Path(f"/proc/{state.pid}/fd").iterdir() if link.is_symlink()}
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    listening = {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
    assert listening == {"0000000000000000FFFF00000100007F"}


def test_starting_finds_the_server_that_runs(spark_settings: Settings) -> None:
    assert start_server(spark_settings) == running_server(spark_settings)


def test_a_server_is_waited_for_replaced_started_again_after_a_kill_and_ends_with_its_last_user(
    own_settings: Settings,
) -> None:
    """The life of a server in one test, since each start takes seconds."""
    ended = threading.Event()
    # a server dies with the thread that started it
    starter = threading.Thread(target=lambda: (start_server(own_settings, "a test"), ended.wait()))
    starter.start()
    assert answers(own_settings, wait_seconds=180)
    assert wait_until(lambda: start_lock_is_free(own_settings), 180)
    first = running_server(own_settings)
    assert first is not None
    changed = replace(own_settings, spark_memory="900m")
    with spark_server(changed):
        assert [user.purpose for user in server_users(changed)] == ["a test"]
        second = running_server(changed)
        assert second is not None
        assert second.pid != first.pid
        kill_under_a_query(changed, second.pid)
        assert start_server(changed).pid != second.pid
        assert answers(changed)
    assert wait_until(lambda: processes_of(changed) == [], 30)
    assert running_server(changed) is None
    assert not port_answers(changed.spark_port)
    ended.set()
    starter.join()


def answers(settings: Settings, wait_seconds: float = 0) -> bool:
    name = str(uuid4())
    counted = open_session(settings, name, wait_seconds=wait_seconds).range(5).count()
    release_session(settings, name)
    return counted == 5


def kill_under_a_query(settings: Settings, pid: int) -> None:
    name = str(uuid4())
    spark = open_session(settings, name)
    threading.Timer(2, os.kill, (pid, signal.SIGKILL)).start()
    begun = time.monotonic()
    with pytest.raises(Exception, match="UNAVAILABLE") as raised:
        spark.range(0, 10**12).selectExpr(ENDLESS).collect()
    assert time.monotonic() - begun < 15
    assert isinstance(translate(raised.value), SparkUnavailable)
    assert not release_session(settings, name)


def start_user(settings: Settings) -> subprocess.Popen[str]:
    code = (
        "import time; from stagehold.spark.server.server import start_server; from stagehold.settings import "
        "load_settings; print(start_server(load_settings()).pid, flush=True); time.sleep(600)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], env=python_environment(settings), stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def usual_port_taken() -> Iterator[None]:
    with socket.socket() as other:
        with suppress(OSError):  # who has it already is another one, too
            other.bind(("127.0.0.1", USUAL_PORT))
            other.listen()
        yield


def test_two_processes_that_start_one_at_once_share_it_and_it_ends_with_the_last_of_them(
    own_settings: Settings, usual_port_taken: None
) -> None:
    own_settings = replace(own_settings, spark_linger=0, spark_port=0)
    users = [start_user(own_settings) for _ in range(2)]
    pids = {user.stdout.readline().strip() for user in users if user.stdout}
    assert len(pids) == 1
    assert {user.pid for user in users} == {user.pid for user in server_users(own_settings)}
    for user in users:
        server = running_server(own_settings)
        assert server
        assert server.port != USUAL_PORT
        name = str(uuid4())
        assert open_session(own_settings, name, wait_seconds=0).range(5).count() == 5
        release_session(own_settings, name)
        user.kill()
        user.communicate()
        time.sleep(1.5)  # its keeper looks twice a second
    assert wait_until(lambda: processes_of(own_settings) == [] and running_server(own_settings) is None, 15)


def test_a_server_whose_user_was_killed_is_kept_for_the_next_and_ends_behind_one_that_leaves(
    own_settings: Settings,
) -> None:
    user = start_user(own_settings)
    assert user.stdout is not None
    pid = int(user.stdout.readline())
    user.kill()
    user.communicate()
    time.sleep(2)
    warm = running_server(own_settings)
    assert warm is not None
    assert warm.pid == pid
    with spark_server(own_settings):
        assert answers(own_settings)
        assert running_server(own_settings) == warm
    assert wait_until(lambda: processes_of(own_settings) == [], 30)


def test_a_starter_that_is_killed_while_the_server_starts_leaves_nothing(own_settings: Settings) -> None:
    own_settings = replace(own_settings, spark_linger=0)
    user = start_user(own_settings)
    assert wait_until(lambda: len(processes_of(own_settings)) > 2, 60)
    user.kill()
    user.communicate()
    assert wait_until(lambda: processes_of(own_settings) == [], 60)


def test_a_server_whose_starter_was_killed_is_waited_for_by_whoever_comes_at_once(own_settings: Settings) -> None:
    """And no second one is started beside it, which could not have its port."""
    own_settings = replace(own_settings, spark_linger=0)
    killed = start_user(own_settings)
    assert wait_until(lambda: read_state(own_settings) is not None, 60)
    killed.kill()
    first = read_state(own_settings)
    following = start_user(own_settings)
    assert first is not None
    assert following.stdout is not None
    assert following.stdout.readline().strip() == str(first.pid)
    for user in (killed, following):
        user.kill()
        user.communicate()
    assert wait_until(lambda: processes_of(own_settings) == [], 30)


@pytest.mark.parametrize("who", ["server", "keeper"])
def test_a_server_or_keeper_that_is_killed_while_it_starts_is_started_again(own_settings: Settings, who: str) -> None:
    own_settings = replace(own_settings, spark_linger=0)
    user = start_user(own_settings)
    assert wait_until(lambda: read_state(own_settings) is not None, 60)
    first = read_state(own_settings)
    assert first is not None
    os.kill(first.pid if who == "server" else first.keeper_pid, signal.SIGKILL)
    assert user.stdout is not None
    second = running_server(own_settings) if user.stdout.readline().strip().isdigit() else None
    assert second is not None
    assert second.pid != first.pid
    user.kill()
    user.communicate()
    assert wait_until(lambda: processes_of(own_settings) == [], 30)


def test_a_server_with_other_settings_of_another_process_is_left_alone(spark_settings: Settings) -> None:
    code = (
        "from stagehold.spark.server.server import start_server; from stagehold.settings import load_settings; "
        "start_server(load_settings())"
    )
    changed = python_environment(replace(spark_settings, spark_memory="900m"))
    run = subprocess.run(
        [sys.executable, "-c", code], env=changed, capture_output=True, text=True, timeout=60, check=False
    )
    assert "stagehold down" in run.stderr
    assert running_server(spark_settings)


def test_a_start_that_fails_shows_why(own_settings: Settings) -> None:
    with pytest.raises(SparkUnavailable, match="Invalid maximum heap size"):
        start_server(replace(own_settings, spark_memory="many"))
    assert processes_of(own_settings) == []


def test_a_stale_record_of_a_pid_that_now_is_another_process_is_not_believed(spark_settings: Settings) -> None:
    state = running_server(spark_settings)
    assert state is not None
    write_state(spark_settings, replace(state, started=state.started - 1))
    assert running_server(spark_settings) is None
    write_state(spark_settings, state)
