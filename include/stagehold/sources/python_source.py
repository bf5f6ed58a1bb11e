"""Sources in Python: a class of the project says in what splits an interval is read, and reads each.

    class Orders:
        def splits(self, ctx):
            return [SourceSplit(shop, stamp=newest_order(shop, ctx.interval)) for shop in ("de", "fr")]

        def read(self, ctx, split):
            return fetch(split.name, ctx.interval_start, ctx.interval_end)  # a frame, or rows

Splits are listed once for a run, by whoever needs them first, and recorded as files are. What a split is read from is
the same as long as its name and stamp are, so only others are read again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagehold.errors import SourceUnusable, SplitsUnlisted
from stagehold.model.context import SourceSplit, StageContext
from stagehold.model.source_position import FilesRead, Position, SourceFile
from stagehold.plan.sources.splits import deal
from stagehold.secrets import masked
from stagehold.sources.source_reading import SourceReading, split_files
from stagehold.spec.settings.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Taken = Any


class PythonReader:
    """The class of one source, with the context in which it is called; made once for an attempt."""

    def __init__(
        self,
        stage: str,
        source: Source,
        project: Path,
        context: Callable[[], StageContext],
        reporting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """:param reporting: tells what the class raises when it reads as its author has to know it."""
        self.stage, self.source, self.project = stage, source, project
        self._context, self._reporting = context, reporting

    def listed(self) -> tuple[SourceFile, ...]:
        """Its splits, as what there is to read.

        :raises SplitsUnlisted: the class cannot be loaded or raised
        :raises SourceUnusable: what it returned are no splits
        """
        from stagehold.spark.session.project_modules import load_anew

        try:
            made = load_anew(str(self.source.reader), self.project)()
            given = list(made.splits(self._context()))
        except Exception as error:
            raise SplitsUnlisted(self.stage, str(self.source.reader), self._told(error)) from error
        return self._checked([SourceSplit(each) if isinstance(each, str) else each for each in given])

    def _checked(self, splits: Sequence[Any]) -> tuple[SourceFile, ...]:
        wrong = [each for each in splits if not isinstance(each, SourceSplit) or not each.name]
        names = [each.name for each in splits if each not in wrong]
        twice = sorted({name for name in names if names.count(name) > 1})
        if wrong or twice:
            what = f"{wrong[0]!r}, which is no split" if wrong else f"the split {twice[0]!r} twice"
            remedy = "Return texts or `stagehold.SourceSplit`, each with another name"
            raise SourceUnusable(self.stage, f"{self.source.reader}.splits gives {what}", remedy)
        return tuple(SourceFile(each.name, each.bytes, each.stamp) for each in splits)

    def _told(self, error: Exception) -> str:
        """What was raised, with the last line of the project that led to it."""
        own = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename.startswith(f"{self.project}/")
        ]
        place = f" ({Path(own[-1].filename).relative_to(self.project)}:{own[-1].lineno})" if own else ""
        return masked(f"{type(error).__name__}: {error}{place}")

    def frame(self, spark: SparkSession, files: Iterable[SourceFile], schema: StructType) -> DataFrame:
        """The rows of splits, with the declared columns.

        :raises SourceUnusable: it gave others
        """
        from stagehold.lake.read import united

        frames = [self._frame(spark, file, schema) for file in files]
        return united(frames) if frames else spark.createDataFrame([], schema)

    def _frame(self, spark: SparkSession, file: SourceFile, schema: StructType) -> DataFrame:
        with self._reporting():
            given = self._made.read(self._context(), SourceSplit(file.path, file.version, file.bytes))
            if not hasattr(given, "toArrow"):  # not a frame of Spark's
                rows = given if hasattr(given, "columns") or hasattr(given, "schema") else list(given)
                return spark.createDataFrame(rows, schema)
        wanted = {field.name: field.dataType.simpleString() for field in schema.fields}
        found = {field.name: field.dataType.simpleString() for field in given.schema.fields}
        if found != wanted:
            reason = (
                f"{self.source.reader}.read gives {_columns(found)} for {file.path}; declared are {_columns(wanted)}"
            )
            raise SourceUnusable(self.stage, reason, "Declare in `schema` what it gives, or cast that")
        selected: DataFrame = given.select(*wanted)
        return selected

    @cached_property
    def _made(self) -> Any:
        from stagehold.spark.session.project_modules import load_function

        return load_function(str(self.source.reader), self.project)()


def _columns(types: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


class SplitContents:
    """What a source in Python gives, listed when it is asked for. What a run has seen of it is what it reads."""

    def __init__(self, reader: PythonReader) -> None:
        self.reader, self.source = reader, reader.source

    @cached_property
    def _listed(self) -> tuple[SourceFile, ...]:
        return self.reader.listed()

    def check(self, taken: Taken) -> None:  # noqa: ARG002
        if not self._listed and self.source.fails_if_missing:
            remedy = "Have it give some, or declare `if_missing: empty`"
            raise SourceUnusable(self.reader.stage, f"{self.source.reader}.splits gives nothing", remedy)

    def choose(self, taken: Taken) -> Position:  # noqa: ARG002
        return FilesRead(self._listed)

    def again(self, position: Position) -> Position:
        return position

    def lost(self, interval: str, position: Position) -> str | None:  # noqa: ARG002
        return None

    def since(self, position: Position) -> str | None:  # noqa: ARG002
        return None

    def told(self, position: Position) -> str:
        assert isinstance(position, FilesRead)
        return f"{len(position.files)} splits of {self.source.reader}"

    def reading(self, position: Position, count: int) -> SourceReading:
        if not isinstance(position, FilesRead):
            remedy = "Give the stage a name and a uid that it did not have before"
            raise SourceUnusable(self.reader.stage, "its earlier intervals read a table", remedy)
        return SourceReading(self.source, split_files(self.source, deal(position.files, count)))
