"""The session that functions of stages are given: pyspark's, but for what would harm the attempt that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.connect.session import SparkSession as ConnectSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StopRefused(RuntimeError):
    """A function wanted to stop the session of its attempt."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark session is its attempt's, which ends it; other partitions and stages still need it. "
            "Take the line that stops it out of the function"
        )


class StageSession(ConnectSession):
    @classmethod
    def of(cls, spark: SparkSession) -> StageSession:
        """``spark`` itself, as one of these from now on."""
        session: Any = spark
        session.__class__ = cls
        return cast("StageSession", session)

    def stop(self) -> None:
        """:raises StopRefused: always; whoever opened the session stops it as pyspark's own (`ConnectSession.stop`)."""
        raise StopRefused
