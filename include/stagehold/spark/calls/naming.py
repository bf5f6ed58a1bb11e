"""A session whose names mean what they meant when they were used: the parts of it that make frames out of names."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.connect.readwriter import DataFrameReader
from pyspark.sql.connect.session import SparkSession

from stagehold.spark.calls.sql_arguments import NotConstant, with_arguments
from stagehold.spark.calls.sql_text import GLOBAL, Intent, SqlStatement, statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.plan import LogicalPlan

    from stagehold.spark.calls.watch import SessionWatch


class NamingReader(DataFrameReader):
    """``watch`` is that of the session."""

    def __init__(self, session: NamingSession, watch: SessionWatch) -> None:
        super().__init__(session)
        self._watch = watch

    def table(self, tableName: str) -> Any:
        view = self._watch.view(tableName) if isinstance(tableName, str) else None
        return super().table(tableName) if view is None else view

    def _df(self, plan: LogicalPlan) -> Any:
        frame = super()._df(plan)
        self._watch.note_reading(frame)
        return frame


class NamingSession(SparkSession):
    """Names are kept by its watch, while it has one."""

    stagehold_watch: SessionWatch | None = None

    @property
    def read(self) -> DataFrameReader:
        return NamingReader(self, self.stagehold_watch) if self.stagehold_watch else super().read

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
        """As `CREATE TEMPORARY VIEW` would, with names in its query that mean what they mean now."""
        named = frame.toDF(*asked.columns) if asked.columns else frame
        name, is_global = (asked.name or "").removeprefix(f"{GLOBAL}."), (asked.name or "").startswith(f"{GLOBAL}.")
        if is_global:
            make = named.createOrReplaceGlobalTempView if asked.replaces else named.createGlobalTempView
        else:
            make = named.createOrReplaceTempView if asked.replaces else named.createTempView
        make("`" + name.replace("`", "``") + "`")
