"""The Spark session of one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from stagehold.run.equipment.workplace import Progress
from stagehold.settings import Settings
from stagehold.spark.session.active_session import as_active
from stagehold.spark.session.call_clock import CallClock
from stagehold.spark.session.sessions import break_off, open_session, release_session, session_id, translate
from stagehold.spark.session.stack_dumps import dump_stacks
from stagehold.spark.session.watchdog import StallReaction, Watchdog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_of(
    attempt_id: str, died: Sequence[str], settings: Settings, progress: Progress, stall_timeout: timedelta
) -> Iterator[SparkSession]:
    """A session of the attempt's own, which is the active one in the block. Those of attempts which did not say goodbye
    are released first.

    Errors of a dead server or a released session come out as the StageholdError they stand for.

    :raises CallStalled: a call made no progress for ``stall_timeout``, and was interrupted.
    """
    for earlier in died:
        release_session(settings, session_id(settings, earlier))
    name, clock = session_id(settings, attempt_id), CallClock()
    reaction = StallReaction(partial(dump_stacks, settings, attempt_id), partial(break_off, settings, name))
    watchdog = Watchdog(clock, stall_timeout.total_seconds(), reaction)
    try:
        spark = open_session(settings, name, clock=clock)
        progress(f"opened Spark session {name}")
        with watchdog, as_active(spark):
            yield spark
    except Exception as error:
        known = watchdog.stalled or translate(error)
        if known is None or known is error:
            raise
        raise known from error
    finally:
        release_session(settings, name)
