"""Keeps the Spark server of a home alive for as long as somebody uses it: `python -m stagehold.spark.server.keeper`.

The server is the keeper's child and dies with it, so that it outlives each of its users. In one line on its standard
output the keeper tells whoever started it that the server is ready, or why it is not.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from fcntl import LOCK_NB
from pathlib import Path
from typing import IO

from stagehold.errors import SparkUnavailable
from stagehold.settings import Settings, load_settings
from stagehold.spark.processes import kill_session, signal_group, stop_session, wait_until
from stagehold.spark.server.server import (
    READY,
    STOP_SECONDS,
    LaunchedServer,
    await_ready,
    launch_server,
    start_lock,
)
from stagehold.spark.server.server_record import died_in_use, remove_state, server_users

POLL_SECONDS = 0.25
ARCHIVE_SECONDS = 180.0  # for a Java that writes its archive of classes when it ends
ENDED_BY_ITSELF = (0, 128 + signal.SIGTERM)
SHORT_OF_MEMORY = 0.1  # of all: a server that is kept though nobody uses it goes then
MEMORY = re.compile(r"^(MemTotal|MemAvailable): +(\d+) kB$", re.MULTILINE)


def keep(settings: Settings, lock: IO[str]) -> None:
    """Start the server and stay until it has ended, which it is made to do when nobody uses it any more.

    :param lock: the start lock, which is given back when the server is ready or has ended.
    """
    with lock:
        try:
            server = _started(settings) or _started(settings)
        except SparkUnavailable as error:
            return _answer(error.reason, error.log_lines)
    if server is None:
        return _answer("it was killed twice while it started.", ())
    try:
        _answer(READY, ())
        _stay(settings, server)
    finally:
        if server.child.poll() is None:
            with start_lock(settings):  # whoever comes meanwhile waits, and takes up none that is ending
                _end(server)
        server.stop_warm_up()


def _started(settings: Settings) -> LaunchedServer | None:
    """A server that can be used; None if it was killed meanwhile.

    :raises SparkUnavailable: it ended by itself.
    """
    server = launch_server(settings, kept_up=False)
    try:
        await_ready(settings, server, lambda: not (server_users(settings) or died_in_use(settings)))
    except BaseException as error:
        # Of a server that fails the first query, that is known first, and then it is we who killed it.
        killed = server.child.poll() == -signal.SIGKILL and not server.warm_up.returncode
        _end(server)
        if killed and isinstance(error, SparkUnavailable):
            return None
        raise
    return server


def _stay(settings: Settings, server: LaunchedServer) -> None:
    """Wait until the server has ended. A server whose user died is warm, so it is kept for a while for whoever resumes
    that user's run.
    """
    last_use = time.monotonic()
    while server.child.poll() is None:
        if server_users(settings):
            last_use = time.monotonic()
        elif not (_kept_warm(settings, time.monotonic() - last_use) and died_in_use(settings)):
            with suppress(BlockingIOError), start_lock(settings, LOCK_NB):
                _end_unused(settings, server)
        time.sleep(POLL_SECONDS)


def _kept_warm(settings: Settings, idle_seconds: float) -> bool:
    memory = {name: int(size) for name, size in MEMORY.findall(Path("/proc/meminfo").read_text())}
    return idle_seconds < settings.spark_linger and memory["MemAvailable"] > SHORT_OF_MEMORY * memory["MemTotal"]


def _end_unused(settings: Settings, server: LaunchedServer) -> None:
    """End the server, unless somebody has come. Who comes while Java writes its archive does not wait for that."""
    if server_users(settings):
        return
    process = server.state.process
    signal_group(process.pid, signal.SIGTERM)
    wait_until(
        lambda: server.child.poll() is not None or bool(server_users(settings)),
        ARCHIVE_SECONDS if server.making else STOP_SECONDS,
    )
    kill_session(process)
    server.child.wait()
    if server.making and server.child.returncode in ENDED_BY_ITSELF:
        server.making.complete()
    remove_state(settings)


def _end(server: LaunchedServer) -> None:
    server.stop_warm_up()
    stop_session(server.state.process, seconds=STOP_SECONDS)


def _answer(word: str, log_lines: Sequence[str]) -> None:
    """Tell whoever started this keeper, who may be gone."""
    with suppress(BrokenPipeError):
        print(json.dumps([word, *log_lines]), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    keep(load_settings(), os.fdopen(int(sys.argv[1]), "w"))
