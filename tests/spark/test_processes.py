"""Child processes: told apart from later owners of their pid, and gone with all they started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stagehold.settings import Settings
from stagehold.spark.processes import (
    ProcessIdentity,
    foreign_environment,
    identify,
    is_java,
    own_process,
    python_environment,
    session_members,
    start_process,
    stop_session,
    wait_until,
)

SLEEPER = "import time; time.sleep(60)"
# A child in a group of its own, as Spark's Python workers and Airflow's tasks are.
PARENT = (
    f"import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], process_group=0); "
    "print('started', flush=True); time.sleep(60)"
)
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); time.sleep(60)"
)


def start(code: str, folder: Path) -> tuple[subprocess.Popen[bytes], ProcessIdentity]:
    process = start_process([sys.executable, "-c", code], environment=os.environ, folder=folder, log=folder / "log")
    identity = identify(process.pid)
    assert identity is not None
    return process, identity


def await_start(folder: Path) -> None:
    assert wait_until(lambda: "started" in (folder / "log").read_text(), 10)


def test_a_process_is_alive_until_it_ends_even_if_nobody_reaps_it(tmp_path: Path) -> None:
    process, identity = start(SLEEPER, tmp_path)
    assert identity.alive
    os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not identity.alive, 5)
    process.wait()
    assert not identity.alive


FIRST_THREAD_ENDS = """
import ctypes, platform, socket, threading, time
held = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(600,)).start()
print(held.getsockname()[1], flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_process_is_alive_while_one_of_its_threads_is() -> None:
    """As a killed Java is for a moment, which still has its port."""
    child = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE, text=True)
    identity = identify(child.pid)
    assert identity is not None
    assert child.stdout is not None
    port = int(child.stdout.readline())
    assert wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z", 10)
    assert identity.alive
    socket.create_connection(("127.0.0.1", port)).close()
    child.kill()
    assert wait_until(lambda: not identity.alive, 10)
    child.wait()


def test_a_later_process_with_the_same_pid_is_another_one() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert not ProcessIdentity(own.pid, own.started - 1).alive


def test_stopping_a_session_ends_members_in_other_groups(tmp_path: Path) -> None:
    process, identity = start(PARENT, tmp_path)
    await_start(tmp_path)
    assert len(session_members(identity.pid)) == 2
    stop_session(identity, seconds=5)
    process.wait()
    assert session_members(identity.pid) == ()


def test_a_process_that_ignores_the_first_signal_is_killed(tmp_path: Path) -> None:
    process, identity = start(DEAF, tmp_path)
    await_start(tmp_path)
    stop_session(identity, seconds=0.3)
    assert process.wait() == -signal.SIGKILL


def test_a_session_whose_pid_has_a_new_owner_is_left_alone(tmp_path: Path) -> None:
    process, identity = start(SLEEPER, tmp_path)
    stop_session(ProcessIdentity(identity.pid, identity.started - 1), seconds=1)
    assert identity.alive
    stop_session(identity, seconds=5)
    process.wait()


def test_a_child_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys; from stagehold.spark.processes import start_process; "
        f"print(start_process([sys.executable, '-c', {SLEEPER!r}], environment=os.environ, "
        f"folder=pathlib.Path({str(tmp_path)!r}), log=pathlib.Path({str(tmp_path / 'log')!r})).pid, flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    parent = run_python(["-c", code])
    assert wait_until(lambda: identify(int(parent)) is None, 5)


def test_a_process_that_asks_for_it_ends_with_its_parent() -> None:
    child = (
        "import time; from stagehold.spark.processes import die_with_parent; die_with_parent(); "
        "print('armed', flush=True); time.sleep(60)"
    )
    code = (
        "import os, signal, subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE); "
        "child.stdout.readline(); print(child.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    parent = run_python(["-c", code])
    assert wait_until(lambda: identify(int(parent)) is None, 5)


def test_a_process_knows_itself() -> None:
    assert own_process() == identify(os.getpid())
    assert not is_java(os.getpid())


def test_the_log_of_the_start_before_is_kept(tmp_path: Path) -> None:
    """Started from a Python of its own: what other tests load into this one may write into the logs of its children."""
    code = (
        "import os, pathlib, sys; from stagehold.spark.processes import start_process; "
        f"folder = pathlib.Path({str(tmp_path)!r}); "
        "[start_process([sys.executable, '-c', f'print({text!r})'], environment=os.environ, folder=folder, "
        "log=folder / 'log').wait() for text in ('first', 'second', 'third')]"
    )
    run_python(["-c", code])
    assert [(tmp_path / name).read_text() for name in ("log", "log.1")] == ["third\n", "second\n"]


def run_python(arguments: Sequence[str]) -> str:
    library = str(Path(__file__).parents[2] / "include")
    environment = {**os.environ, "PYTHONPATH": library}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()


def test_what_was_freed_is_given_back_and_seen_in_what_the_process_has():
    """In a process of its own: what others of this one freed before would count as well."""
    script = (
        "from stagehold.spark.processes import give_memory_back, resident_bytes\n"
        "kept = []\n"
        "freed = [bytearray(64_000) for _ in range(2_000)]\n"
        "kept.append(bytearray(64_000))\n"  # behind the others, so that the heap cannot shrink from its end
        "del freed\n"
        "before = resident_bytes()\n"
        "give_memory_back()\n"
        "print(before, resident_bytes())"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = map(int, answer.stdout.split())
    assert before - after > 100_000_000


def test_the_spark_server_is_given_nothing_that_lets_its_functions_into_airflow_or_the_ledger(monkeypatch):
    for name in ("AIRFLOW_TOKEN", "LEDGER"):
        monkeypatch.setenv(f"STAGEHOLD_{name}", "s3cret")
    settings = Settings(
        home="/h", airflow_password="s3cret", admin_password="s3cret", airflow_credentials="s3cret", ledger="s3cret"
    )
    assert "s3cret" not in foreign_environment(settings).values()
    assert foreign_environment(settings)["STAGEHOLD_HOME"] == "/h"
    assert python_environment(settings)["STAGEHOLD_AIRFLOW_PASSWORD"] == "s3cret"
