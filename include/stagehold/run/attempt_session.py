"""The Spark session of one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagehold.errors import StageholdError
from stagehold.model.records import Attempt
from stagehold.run.region_task import Progress
from stagehold.run.sessions import open_session, release_session, session_id, translate
from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_of(attempt: Attempt, died: Sequence[Attempt], settings: Settings, progress: Progress) -> Iterator[SparkSession]:
    """A session of the attempt's own; those of attempts which did not say goodbye are released first.

    Errors of a dead server or a released session come out as the StageholdError they stand for.
    """
    for earlier in died:
        release_session(settings, session_id(settings, earlier.attempt_id))
    name = session_id(settings, attempt.attempt_id)
    try:
        spark = open_session(settings, name)
        progress(f"opened Spark session {name}")
        yield spark
    except StageholdError:
        raise
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        raise known from error
    finally:
        release_session(settings, name)
