"""Holds the Spark server of a home for as long as somebody uses it: `python -m stagehold.spark.server.keeper`.

The server is its child, and dies with it, so that no user's end is the server's. It tells whoever started it, in one
line on its standard output, that the server is ready or why it is not.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from stagehold.errors import SparkUnavailable
from stagehold.settings import Settings, load_settings
from stagehold.spark.processes import stop_session
from stagehold.spark.server.server import READY, STOP_SECONDS, await_ready, launch_server, stop_if_unused

POLL_SECONDS = 0.5


def keep(settings: Settings) -> None:
    """Start the server and stay until it has ended, which it is made to do when nobody uses it any more."""
    server = launch_server(settings, kept_up=False)
    try:
        await_ready(settings, server)
        _answer(READY, ())
        while server.child.poll() is None:
            stop_if_unused(settings)
            time.sleep(POLL_SECONDS)
    except SparkUnavailable as error:
        _answer(error.reason, error.log_lines)
    finally:
        server.stop_warm_up()
        stop_session(server.state.process, seconds=STOP_SECONDS)


def _answer(word: str, log_lines: Sequence[str]) -> None:
    """Whoever asked may be gone."""
    with suppress(BrokenPipeError):
        print(json.dumps([word, *log_lines]), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    keep(load_settings())
