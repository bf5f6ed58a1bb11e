"""Threads of the api-server that make savepoints, or wait until a run that goes on has: no request has to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Thread

from stagehold.lake.checkpoints.savepoints import Savepoint

MOST = 8  # at once; each waits for `checkpoint.timeout` at most

log = logging.getLogger(__name__)

_free = BoundedSemaphore(MOST)


def begun(ask: Callable[[], Savepoint | None], make: Callable[[], Savepoint]) -> Future[Savepoint] | None:
    """Ask for it and have it made, unless it is there; None if too many are being made already, and nothing is asked.

    A daemon thread: an api-server that ends leaves the wish on record, and whoever asks for it again has it served.
    """
    if not _free.acquire(blocking=False):
        return None
    made: Future[Savepoint] = Future()
    try:
        there = ask()
    except BaseException:
        _free.release()
        raise
    if there:
        _free.release()
        made.set_result(there)
        return made
    Thread(target=_carry_out, args=(make, made), name="savepoint", daemon=True).start()
    return made


def _carry_out(make: Callable[[], Savepoint], made: Future[Savepoint]) -> None:
    try:
        made.set_result(make())
    except Exception as error:
        log.info("a savepoint was not made", exc_info=True)
        made.set_exception(error)
    finally:
        _free.release()
