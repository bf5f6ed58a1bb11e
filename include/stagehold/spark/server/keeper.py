"""Holds the Spark server of a home for as long as somebody uses it: `python -m stagehold.spark.server.keeper`.

The server is its child, and dies with it, so that no user's end is the server's. It tells whoever started it, in one
line on its standard output, that the server is ready or why it is not.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from stagehold.errors import SparkUnavailable
from stagehold.settings import Settings, load_settings
from stagehold.spark.processes import stop_session
from stagehold.spark.server.server import (
    READY,
    STOP_SECONDS,
    LaunchedServer,
    await_ready,
    launch_server,
    start_lock,
    stop_if_unused,
)

POLL_SECONDS = 0.5


def keep(settings: Settings, lock: IO[str]) -> None:
    """Start the server and stay until it has ended, which it is made to do when nobody uses it any more.

    :param lock: the start lock, which is given back when the server is ready or has ended.
    """
    with lock:
        server = launch_server(settings, kept_up=False)
        try:
            await_ready(settings, server)
        except BaseException as error:
            _end(server)
            if isinstance(error, SparkUnavailable):
                return _answer(error.reason, error.log_lines)
            raise
    try:
        _answer(READY, ())
        while server.child.poll() is None:
            stop_if_unused(settings)
            time.sleep(POLL_SECONDS)
    finally:
        if server.child.poll() is None:
            with start_lock(settings):  # whoever comes meanwhile waits, and takes up none that is ending
                _end(server)
        server.stop_warm_up()


def _end(server: LaunchedServer) -> None:
    server.stop_warm_up()
    stop_session(server.state.process, seconds=STOP_SECONDS)


def _answer(word: str, log_lines: Sequence[str]) -> None:
    """Whoever asked may be gone."""
    with suppress(BrokenPipeError):
        print(json.dumps([word, *log_lines]), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    keep(load_settings(), os.fdopen(int(sys.argv[1]), "w"))
