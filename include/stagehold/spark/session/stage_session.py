"""The session that functions of stages are given: pyspark's, but for what would harm the attempt that it is of, and
with names that mean in a frame what they meant when they were used.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self, cast

from pyspark.sql.connect.readwriter import DataFrameReader
from pyspark.sql.connect.session import SparkSession as ConnectSession

from stagehold.code.sql_text import GLOBAL, Intent, NotConstant, SqlStatement, statement, with_arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.plan import LogicalPlan

    from stagehold.spark.calls.call_watch import SessionWatch


class StopRefused(RuntimeError):
    """A function wanted to stop the session of its attempt."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark session is its attempt's, which ends it; other partitions and stages still need it. "
            "Take the line that stops it out of the function"
        )


class StageSession(ConnectSession):
    """Names are kept by its watch, while it has one."""

    stagehold_watch: SessionWatch | None = None

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """``spark`` itself, as one of these from now on."""
        session: Any = spark
        session.__class__ = cls
        return cast("Self", session)

    def stop(self) -> None:
        """:raises StopRefused: always; whoever opened the session stops it as pyspark's own (`ConnectSession.stop`)."""
        raise StopRefused

    @property
    def read(self) -> DataFrameReader:
        return WatchedReader(self, self.stagehold_watch) if self.stagehold_watch else super().read

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        if args and isinstance(sqlQuery, str):
            with suppress(NotConstant):
                sqlQuery, args = with_arguments(sqlQuery, args), None
        if self.stagehold_watch is None or not self.stagehold_watch.is_calling or not isinstance(sqlQuery, str):
            return super().sql(sqlQuery, args, **kwargs)
        asked = statement(sqlQuery)
        keeps = asked.intent is Intent.KEEPS and asked.verb != "REFRESH"
        if keeps:
            self.stagehold_watch.note_keeping()
        if asked.body is not None:  # of a view
            self._make_view(asked, self.sql(asked.body, args, **kwargs))
        if keeps or asked.body is not None:
            return self.createDataFrame([], "result string")
        return self.stagehold_watch.close(super().sql(sqlQuery, args, **kwargs))

    def _make_view(self, asked: SqlStatement, frame: DataFrame) -> None:
        """Make a view as `CREATE TEMPORARY VIEW` would, with names in its query that mean what they mean now."""
        named = frame.toDF(*asked.columns) if asked.columns else frame
        name, is_global = (asked.name or "").removeprefix(f"{GLOBAL}."), (asked.name or "").startswith(f"{GLOBAL}.")
        if is_global:
            make = named.createOrReplaceGlobalTempView if asked.replaces else named.createGlobalTempView
        else:
            make = named.createOrReplaceTempView if asked.replaces else named.createTempView
        make("`" + name.replace("`", "``") + "`")


class WatchedReader(DataFrameReader):
    """A reader that makes frames out of names. ``watch`` is that of the session."""

    def __init__(self, session: StageSession, watch: SessionWatch) -> None:
        super().__init__(session)
        self._watch = watch

    def table(self, tableName: str) -> Any:
        view = self._watch.view(tableName) if isinstance(tableName, str) else None
        return super().table(tableName) if view is None else view

    def _df(self, plan: LogicalPlan) -> Any:
        frame = super()._df(plan)
        self._watch.note_reading(frame)
        return frame


class LocalSession(StageSession):
    """The session of a program of its own, which stops it as it would any other; ``ending`` is what there is to do."""

    ending: ExitStack

    def stop(self) -> None:
        self.ending.close()
