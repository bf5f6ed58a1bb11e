"""The session that functions of stages are given: pyspark's, but for what would harm the attempt that it is of, and
with names that mean in a frame what they meant when they were used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self, cast

from pyspark.sql.connect.readwriter import DataFrameReader
from pyspark.sql.connect.session import SparkSession as ConnectSession

from stagehold.code.sql_text import GLOBAL, Intent, NotConstant, SqlStatement, statement, with_arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.plan import LogicalPlan
    from pyspark.sql.types import StructType

    from stagehold.spark.calls.call_watch import SessionWatch


class StopRefused(RuntimeError):
    """A function wanted to stop the session of its attempt."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark session is its attempt's, which ends it; other partitions and stages still need it. "
            "Take the line that stops it out of the function"
        )


ALL_OF_IT = re.compile(r"(/\*\*?(\.\w+)*)*/?")  # behind a path: `/*.parquet`


class InputHasNoParts(ValueError):
    """A script wanted a part of an input, by its path."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is an input of the stage, which is no folder: read it whole, by itself, and filter its rows"
        )


class StageSession(ConnectSession):
    """Names are kept by its watch, while it has one. While it runs a script, that finds its inputs by their paths."""

    stagehold_watch: SessionWatch | None = None
    stagehold_inputs: Mapping[str, DataFrame] | None = None

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """``spark`` itself, as one of these from now on."""
        session: Any = spark
        session.__class__ = cls
        return cast("Self", session)

    def stop(self) -> None:
        """Does nothing at the end of a script.

        :raises StopRefused: always else; whoever opened the session stops it as pyspark's own (`ConnectSession.stop`).
        """
        if self.stagehold_inputs is None:
            raise StopRefused

    def __enter__(self) -> Self:
        """As a classic session, which Spark Connect's is not in this."""
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def sparkContext(self) -> Any:
        """What jobs of classic Spark ask of it beside computing, :class:`ClassicContext`."""
        from stagehold.spark.session.classic_context import ClassicContext

        return ClassicContext(cast("SparkSession", self))

    @property
    def _jvm(self) -> Any:
        return self.sparkContext._jvm

    @property
    def read(self) -> DataFrameReader:
        return WatchedReader(self, self.stagehold_watch)

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
    """A reader that makes frames out of names and of inputs of a script. ``watch`` is that of the session, if it has
    one.
    """

    def __init__(self, session: StageSession, watch: SessionWatch | None) -> None:
        super().__init__(session)
        self._watch = watch

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        """An input of a script, in whatever format it expects that; anything else as pyspark does."""
        given = self._input_at(path)
        if given is None:
            return super().load(path, format, schema, **options)
        if schema is not None:
            self.schema(schema)
        return given.to(_struct(self._schema)) if self._schema else given

    def _input_at(self, path: Any) -> DataFrame | None:
        paths = [path] if isinstance(path, str) else list(path or ())
        session: Any = self._client
        for place, frame in (session.stagehold_inputs or {}).items():
            below = [each[len(place) :] for each in paths if isinstance(each, str) and each.startswith(place)]
            if len(below) == len(paths) == 1 and ALL_OF_IT.fullmatch(below[0]):
                return frame  # type: ignore[no-any-return]
            if any(each == "" or each.startswith("/") for each in below):
                raise InputHasNoParts(place)
        return None

    def table(self, tableName: str) -> Any:
        view = self._watch.view(tableName) if self._watch and isinstance(tableName, str) else None
        return super().table(tableName) if view is None else view

    def _df(self, plan: LogicalPlan) -> Any:
        frame = super()._df(plan)
        if self._watch:
            self._watch.note_reading(frame)
        return frame


def _struct(schema: str) -> StructType:
    from pyspark.sql.types import StructType

    if schema.startswith("{"):
        return StructType.fromJson(json.loads(schema))
    return cast("StructType", StructType.fromDDL(schema))


class LocalSession(StageSession):
    """The session of a program of its own, which stops it as it would any other; ``ending`` is what there is to do."""

    ending: ExitStack

    def stop(self) -> None:
        if self.stagehold_inputs is None:
            self.ending.close()
