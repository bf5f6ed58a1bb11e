"""Which session the project's code gets when it asks pyspark for one, in whatever thread: its attempt's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagehold.spark.connect import take_active_session_from
from stagehold.spark.session.worker import is_importing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Innermost last, each with the thread that entered it.
_entered: list[tuple[int, SparkSession]] = []
# Sessions that a module got while it was imported, and may have kept.
_taken_by_modules: set[SparkSession] = set()


@contextmanager
def as_active(spark: SparkSession) -> Iterator[None]:
    """In the block, `SparkSession.builder.getOrCreate()`, `getActiveSession()` and `active()` give ``spark``.

    Threads that the block starts get it, too; so does every other thread that has entered no session itself.
    """
    take_active_session_from(_active_session)
    entry = (threading.get_ident(), spark)
    _entered.append(entry)
    try:
        yield
    finally:
        _entered.remove(entry)


def forget_taken(spark: SparkSession) -> bool:
    """Whether a module took another session than ``spark`` when it was imported; that is forgotten now."""
    others = _taken_by_modules - {spark}
    _taken_by_modules.difference_update(others)
    return bool(others)


def _active_session() -> SparkSession | None:
    thread, entered = threading.get_ident(), _entered.copy()
    found = [spark for entering, spark in entered if entering == thread] or [spark for _, spark in entered]
    if not found:
        return None
    if found[-1] not in _taken_by_modules and is_importing():
        _taken_by_modules.add(found[-1])
    return found[-1]
