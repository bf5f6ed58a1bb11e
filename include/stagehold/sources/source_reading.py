"""A source as one attempt reads it: what each split reads, when a split counts as changed, and its rows as a frame."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stagehold.errors import SourceChanged, SourceLost, SourceUnusable
from stagehold.lake.read import united
from stagehold.lake.store.columns import is_reserved, quoted
from stagehold.lake.store.location import spark_uri
from stagehold.model.keys.compute_key import digest
from stagehold.model.source_position import FolderColumn, MixedColumns, SourceFile
from stagehold.plan.sources.folders import root_of
from stagehold.plan.sources.splits import range_conditions
from stagehold.sources.delta import Deleted, is_mapped
from stagehold.sources.source_files import LAKE
from stagehold.spec.settings.source import INFER, Reread, Source, SourceKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField, StructType

PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)  # the same in a path and in a URI


@dataclass(frozen=True)
class Split:
    """What one partition of a source stage reads: files, or the rows of a database that meet ``condition``.

    ``reading`` stands for everything else that decides about its rows. ``found`` are files that hold the same rows now,
    if its own are gone.
    """

    files: tuple[SourceFile, ...]
    reading: str
    condition: str | None = None
    found: tuple[SourceFile, ...] | None = None

    @property
    def read(self) -> tuple[SourceFile, ...]:
        """The files to read now."""
        return self.files if self.found is None else self.found

    def below(self, lake: str) -> Split:
        """The split as it is called from the root of its lake, wherever that lies."""
        files = (replace(file, path=_from_root(file.path, f"{lake}/")) for file in self.files)
        return replace(self, files=tuple(files))

    @property
    def fingerprint(self) -> str:
        """Changes when what the split would read does, so it decides whether its partition is computed again."""
        files = (f"{file.path}|{file.bytes}|{file.version}|{file.partition}" for file in self.files)
        return digest((self.reading, self.condition or "", *files))


@dataclass(frozen=True)
class SourceReading:
    """All splits of a source. ``sample`` is a file with the columns of all; ``schema`` a table's columns as JSON.

    Of the rows only those count for which ``condition`` holds, if there is one.
    ``columns`` are those that the names of folders give to all files. ``spoiled`` says of files, by path, why they must
    not be read: they are no longer what was taken. ``mixed`` are the columns of files that do not all have the same.
    """

    source: Source
    splits: tuple[Split, ...]
    sample: str | None = None
    schema: str | None = None
    columns: tuple[FolderColumn, ...] = ()
    mixed: MixedColumns | None = None
    spoiled: Mapping[str, str] = field(default_factory=dict)
    condition: str | None = None
    deleted: Deleted = field(default_factory=dict)

    def tells_less_than_the_table(self, file: SourceFile) -> bool:
        """Whether the file of a table has deleted rows, or other names than the table has for its columns."""
        return self.schema is not None and (bool(file.version) or is_mapped(self.schema))

    def refuse_spoiled(self, stage: str, files: Iterable[SourceFile]) -> None:
        """:raises SourceChanged: one of them is not what was taken
        :raises SourceLost: the rows of one, of a table, are found nowhere any more
        """
        reasons = dict.fromkeys(self.spoiled[file.path] for file in files if file.path in self.spoiled)
        if reasons and self.source.kind is SourceKind.DELTA:
            raise SourceLost(stage, tuple(reasons))
        if reasons:
            raise SourceChanged(stage, tuple(reasons))


def split_files(
    source: Source,
    groups: Iterable[tuple[SourceFile, ...]],
    schema: str | None = None,
    columns: Sequence[FolderColumn] = (),
    mixed: MixedColumns | None = None,
    *,
    condition: str | None = None,
) -> tuple[Split, ...]:
    """A split for each group of files. A column that is new, or of another type, changes all splits, so that they stay
    alike.
    """
    fields = (*((repr(mixed.fields),) if mixed else ()), *((condition,) if condition else ()))
    reading = digest((how_rows_are_read(source), schema or "", *map(repr, columns), *fields))
    return tuple(Split(files, reading) for files in groups)


def _from_root(path: str, lake: str) -> str:
    return f"{LAKE}/{path.removeprefix(lake)}" if path.startswith(lake) else path


def how_rows_are_read(source: Source) -> str:
    """Everything that is declared about how rows are read, whichever rows they are."""
    given = (source.kind, source.ddl, source.header, source.delimiter, sorted(source.options.items()))
    return repr((*given, source.format, sorted(source.secret_options.items())) if source.format else given)


def database_reading(source: Source, count: int, run_id: str) -> SourceReading:
    """A database has no files to see changes by, so what was read counts for the interval, or for the run."""
    reading = digest((how_rows_are_read(source), source.place, run_id if source.reread is Reread.RUN else ""))
    return SourceReading(source, tuple(Split((), reading, condition) for condition in _conditions(source, count)))


def _conditions(source: Source, count: int) -> Iterable[str]:
    if source.listed:
        return (" and ".join(f"({text})" for text in split) for split in source.listed)
    if source.column is None or source.lower is None or source.upper is None:
        return ("1 = 1",)
    return range_conditions(source.column, source.lower, source.upper, count)


ReadsSplits = Callable[["SparkSession", Sequence[SourceFile], "StructType"], "DataFrame"]


class SourceFrames:
    """Frames of one source.

    Its columns are found once, from one file or the declaration, and all splits have them.
    """

    def __init__(
        self,
        spark: SparkSession,
        stage: str,
        reading: SourceReading,
        secret: Callable[[str], str] = str,
        read: ReadsSplits | None = None,
    ) -> None:
        """
        :param secret: gives the value of a secret of the pipeline.
        :param read: gives the rows of splits that the project's own code reads.
        """
        self.spark, self.stage, self.reading, self._secret, self._read = spark, stage, reading, secret, read

    def frame(self, partition: int) -> DataFrame:
        """The rows of one split.

        :raises SourceChanged: a file of it is no longer what was taken
        :raises SourceLost: its rows are found nowhere any more
        """
        split = self.reading.splits[partition]
        self.reading.refuse_spoiled(self.stage, split.files)
        if split.condition is not None:
            return self._rows(split.condition)
        if self._read is not None:
            return self._read(self.spark, split.files, self._schema)
        self._refuse_other_columns()
        if not split.read:
            return self.spark.createDataFrame([], self._schema)
        return self._files(split.read)

    def _refuse_other_columns(self) -> None:
        """:raises SourceUnusable: a declared column is missing, or has another type."""
        found = {field.name: field.dataType.simpleString() for field in self._schema.fields}
        wrong = [
            f"{name} is declared {form.type}, and is {found.get(name, 'not there')}"
            for name, form in self._source.columns.items()
            if found.get(name) != form.type
        ]
        if wrong:
            raise SourceUnusable(self.stage, "; ".join(wrong), "Have it written as declared, or declare what is there")

    def _files(self, files: Sequence[SourceFile]) -> DataFrame:
        condition = self.reading.condition
        if condition is None:
            return self._all_rows(files)
        # The condition may be about columns of ours, which are no content: a table that another pipeline publishes has
        # its intervals in one.
        return self._all_rows(files).where(condition).select(*map(quoted, self._schema.fieldNames()))

    def _all_rows(self, files: Sequence[SourceFile]) -> DataFrame:
        if self._source.kind is SourceKind.DELTA:
            from stagehold.sources.table_rows import read_table_files

            schema = self._table_schema if self.reading.condition else self._own_schema
            return read_table_files(self.spark, schema, files, self.reading.deleted)
        if not self.reading.columns:
            return self._reader.schema(self._schema).load(_paths(files))
        return united(
            [self._below(root, list(group)) for root, group in groupby(sorted(files, key=self._root), key=self._root)]
        )

    def _below(self, root: str, files: Sequence[SourceFile]) -> DataFrame:
        """Files below ``root``: Spark reads the columns of folders from their paths, and skips files by them."""
        return self._reader.option("basePath", f"{spark_uri(root)}/").schema(self._schema).load(_paths(files))

    def _root(self, file: SourceFile) -> str:
        return root_of(file.path, len(self.reading.columns))

    def together(self, partitions: Sequence[int]) -> tuple[DataFrame, Column] | None:
        """The rows of many splits in one scan, and the column that tells a row's split by its file.

        None unless each split is one plain file of a format that tells a row's file.

        :raises SourceError: as `frame` does
        """
        from pyspark.sql import functions as F

        if self._source.kind in (SourceKind.SPARK, SourceKind.PYTHON):
            return None
        taken = [(partition, file) for partition in partitions for file in self.reading.splits[partition].read]
        names = [file.path.rpartition("/")[2] for _, file in taken]
        of_files = (
            bool(taken)
            and not any(file.partition or self.reading.tells_less_than_the_table(file) for _, file in taken)
            and len({self._root(file) for _, file in taken}) == 1
        )
        if not of_files or not len(taken) == len({*names}) == len({partition for partition, _ in taken}):
            return None
        if not all(map(PLAIN_NAME.fullmatch, names)) or any(map(is_reserved, self._schema.fieldNames())):
            return None
        for partition in partitions:
            self.reading.refuse_spoiled(self.stage, self.reading.splits[partition].files)
        files = [file for _, file in taken]
        place = F.array_position(F.array(*map(F.lit, names)), F.col("_metadata.file_name"))
        split = F.element_at(F.array(*(F.lit(partition) for partition, _ in taken)), place.cast("int"))
        return self._files(files), split

    @property
    def _source(self) -> Source:
        return self.reading.source

    @property
    def _reader(self) -> DataFrameReader:
        return self.spark.read.format(self._source.spark_format).options(**_options(self._source), **self._secrets)

    @cached_property
    def _schema(self) -> StructType:
        """The columns of the files without those that folders give, and then these, which count where both have one."""
        from pyspark.sql.types import StructType

        given = {field.name.lower() for field in self._folder_fields}
        own = [field for field in self._file_schema.fields if field.name.lower() not in given]
        return StructType([*own, *self._folder_fields])

    @cached_property
    def _folder_fields(self) -> list[StructField]:
        """The columns that folders give, of the declared type, else of one that fits the values of all files."""
        if not self.reading.columns:
            return []
        ddl = ", ".join(f"{quoted(column.name)} {column.type}" for column in self.reading.columns)
        inferred = self.spark.createDataFrame([], ddl).schema.fields
        twice = (
            {field.name.lower(): field for field in self._file_schema.fields} if self._source.ddl is not None else {}
        )
        both = [field.name for field in inferred if field.name.lower() in twice]
        if both and self._source.ddl == INFER and self._source.kind is SourceKind.CSV:
            reason = f"its files have columns that their folders give as well: {', '.join(both)}"
            raise SourceUnusable(
                self.stage, reason, "Declare its `schema` without them if the files have none, or rename the folders"
            )
        return inferred if self._source.ddl == INFER else [twice.get(field.name.lower(), field) for field in inferred]

    @cached_property
    def _file_schema(self) -> StructType:
        """Inferred from one file at most: inferring it per split would cost a Spark job each, and could differ."""

        if self.reading.schema is not None:
            from stagehold.sources.table_rows import plain

            known: StructType = plain(self._own_schema)
            return known
        if self._source.ddl is not None and self._source.ddl != INFER:
            return self.spark.createDataFrame([], self._source.ddl).schema
        if self.reading.mixed is not None:
            return self._union(self.reading.mixed)
        if self.reading.sample is None:
            raise SourceUnusable(
                self.stage, "no file is left that shows its columns", "Put one of those it has read back"
            )
        reader = self._reader.option("inferSchema", "true") if self._source.ddl == INFER else self._reader
        return reader.load(_paths([SourceFile(self.reading.sample, 0, "")])).schema

    @cached_property
    def _table_schema(self) -> StructType:
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(str(self.reading.schema)))

    @property
    def _own_schema(self) -> StructType:
        """The table's columns without those that are ours."""
        from pyspark.sql.types import StructType

        return StructType([field for field in self._table_schema.fields if not is_reserved(field.name)])

    def _union(self, mixed: MixedColumns) -> StructType:
        """The columns of all files by name: each as Spark has it in the first file with it; as the footers say where it
        is wider, or where no such file is left.
        """
        from pyspark.sql.types import StructType

        ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in mixed.fields)
        there = {file.path for split in self.reading.splits for file in split.files} - set(self.reading.spoiled)
        known: dict[str, StructField] = {}
        for sample in (path for path in mixed.samples if path in there):
            for column in self._reader.load(_paths([SourceFile(sample, 0, "")])).schema.fields:
                known.setdefault(column.name.lower(), column)
        wider = {name.lower() for name in mixed.wider}
        fields = self.spark.createDataFrame([], ddl).schema.fields
        return StructType(
            [field if field.name.lower() in wider else known.get(field.name.lower(), field) for field in fields]
        )

    def _rows(self, condition: str) -> DataFrame:
        """Those of a source without files."""
        if self._source.kind is SourceKind.JDBC:
            return self._database(condition)
        reader = self._reader if self._source.ddl is None else self._reader.schema(self._source.ddl)
        return reader.load().where(condition)

    @property
    def _secrets(self) -> dict[str, str]:
        return {option: self._secret(name) for option, name in self._source.secret_options.items()}

    def _database(self, condition: str) -> DataFrame:
        source = self._source
        table = source.table or f"({source.query}) stagehold_query"
        properties: dict[str, Any] = {**source.options, **self._credentials()}
        if source.driver:
            properties["driver"] = source.driver
        return self.spark.read.jdbc(str(source.url), table, predicates=[condition], properties=properties)

    def _credentials(self) -> dict[str, str]:
        variables = {"user": self._source.user_variable, "password": self._source.password_variable}
        given = {name: self._variable(variable) for name, variable in variables.items() if variable is not None}
        if self._source.password_secret is not None:
            given["password"] = self._secret(self._source.password_secret)
        return given

    def _variable(self, name: str) -> str:
        if name not in os.environ:
            raise SourceUnusable(
                self.stage, f"the environment variable {name} is not set", "Set it for the process that runs the stage"
            )
        return os.environ[name]


def _options(source: Source) -> dict[str, str]:
    """A record that does not fit the schema is an error unless the user says otherwise.

    Spark looks at a whole record for the number of its columns, but only at those that are used for their types.
    """
    options = {"mode": "FAILFAST", **source.options}
    if source.kind is SourceKind.CSV:
        # With a header, names are compared with the schema's; without this, columns would be taken by their place.
        header = {"header": str(source.header).lower(), "enforceSchema": str(not source.header).lower()}
        return {**options, **header, "sep": source.delimiter, "columnPruning": "false"}
    return options if source.kind is SourceKind.JSON else {**source.options}


def _paths(files: Sequence[SourceFile]) -> list[str]:
    from stagehold.sources.table_rows import spark_path  # a plan reads nothing

    return [spark_path(file.path) for file in files]
