"""Writes down what all processes behind a call to Spark are doing: this one, the local server, and its Python workers.

What a stalled call waits for can be seen in these stacks only, and only for as long as it waits.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from stagehold.lake.store.location import path_safe
from stagehold.settings import Settings
from stagehold.spark.processes import catches, is_java, session_members
from stagehold.spark.server.files import python_stacks, server_log
from stagehold.spark.server.server import running_server

LONGEST_WAIT, QUIET_SECONDS = 10.0, 1.0


def dump_stacks(settings: Settings, attempt_id: str) -> Path:
    """A new folder in HOME/dumps with the stacks of every process that can be asked; a remote server cannot."""
    folder = settings.home_path / "dumps" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{path_safe(attempt_id)}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "client.txt").open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    server = None if settings.spark_remote else running_server(settings)
    if server is None:
        return folder
    if is_java(server.pid):
        (folder / "server.txt").write_bytes(_stacks_logged([server.pid], signal.SIGQUIT, server_log(settings)))
    for worker in session_members(server.pid):
        if catches(worker, signal.SIGUSR1) and worker != server.pid:
            stacks = _stacks_logged([worker], signal.SIGUSR1, python_stacks(settings))
            (folder / f"python-{worker}.txt").write_bytes(stacks)
    return folder


def _stacks_logged(pids: Sequence[int], number: signal.Signals, log: Path) -> bytes:
    """What a log gains once the processes are sent a signal, until it is quiet."""
    before = size = log.stat().st_size if log.exists() else 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        now = log.stat().st_size if log.exists() else 0
        if now == size > before:
            break
        size = now
    with suppress(FileNotFoundError), log.open("rb") as file:
        file.seek(before)
        return file.read()
    return b""
