"""The session that functions of stages are given: pyspark's, but for what would harm the attempt that it is of."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, cast

from stagehold.spark.calls.naming import NamingSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StopRefused(RuntimeError):
    """A function wanted to stop the session of its attempt."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark session is its attempt's, which ends it; other partitions and stages still need it. "
            "Take the line that stops it out of the function"
        )


class StageSession(NamingSession):
    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """``spark`` itself, as one of these from now on."""
        session: Any = spark
        session.__class__ = cls
        return cast("Self", session)

    def stop(self) -> None:
        """:raises StopRefused: always; whoever opened the session stops it as pyspark's own (`ConnectSession.stop`)."""
        raise StopRefused


class LocalSession(StageSession):
    """The session of a program of its own, which stops it as it would any other; ``ending`` is what there is to do."""

    ending: ExitStack

    def stop(self) -> None:
        self.ending.close()
