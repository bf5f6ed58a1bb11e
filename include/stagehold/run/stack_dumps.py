"""Writes down what all processes behind a call to Spark are doing: this one, the local server, and its Python workers.

What a stalled call waits for can be seen in these stacks only, and only for as long as it waits.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from stagehold.lake.location import path_safe
from stagehold.run.processes import session_members
from stagehold.run.server import running_server
from stagehold.run.server_files import python_stacks, server_log
from stagehold.settings import Settings

LONGEST_WAIT, QUIET_SECONDS = 10.0, 1.0
STAT_SIGNALS = re.compile(r"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)


def dump_stacks(settings: Settings, attempt_id: str) -> Path:
    """A new folder in HOME/dumps with the stacks of every process that can be asked; a remote server cannot."""
    folder = settings.home_path / "dumps" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{path_safe(attempt_id)}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "client.txt").open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    server = None if settings.spark_remote else running_server(settings)
    if server is None:
        return folder
    if Path(f"/proc/{server.pid}/comm").read_text().strip() == "java":
        (folder / "server.txt").write_bytes(_said_by([server.pid], signal.SIGQUIT, server_log(settings)))
    for worker in session_members(server.pid):
        if _catches(worker, signal.SIGUSR1) and worker != server.pid:
            (folder / f"python-{worker}.txt").write_bytes(_said_by([worker], signal.SIGUSR1, python_stacks(settings)))
    return folder


def _said_by(pids: Sequence[int], number: signal.Signals, log: Path) -> bytes:
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


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal, which would end it otherwise."""
    with suppress(OSError):
        caught = STAT_SIGNALS.search(Path(f"/proc/{pid}/status").read_text())
        return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)
    return False
