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


def begun(make: Callable[[], Savepoint]) -> Future[Savepoint] | None:
    """Have it made; None if too many are being made already.

    A daemon thread: an api-server that ends leaves the wish on record, and whoever asks for it again has it served.
    """
    if not _free.acquire(blocking=False):
        return None
    made: Future[Savepoint] = Future()
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
