"""What stages read, as their authors declare it: sources, and how they are cut into splits."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from stagehold.code.sql_slice import names_interval_edges, with_interval
from stagehold.model.keys.interval_text import IntervalTimes, names_interval, of_interval
from stagehold.model.units import PositiveDuration
from stagehold.spec.settings.fields import Bound, Options, SpecPart, Switch, written_name
from stagehold.spec.settings.output_settings import ColumnForm
from stagehold.spec.settings.split_forms import AssignedSplits, Assignment, SplitList, Splits, SplitSize, cut_of

INFER = "infer"  # in place of a schema: take the one that the first file seems to have


class SourceKind(StrEnum):
    """Files of one format, a Delta table, a table of a database, or what Spark reads by a format or a class reads."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    CSV = "csv"
    JSON = "json"
    DELTA = "delta"
    JDBC = "jdbc"
    SPARK = "spark"
    PYTHON = "python"


class OnChange(StrEnum):
    """What to do when something that an incremental source has read is not what it was."""

    ERROR = "error"
    IGNORE = "ignore"


class IfMissing(StrEnum):
    """What becomes of an interval for which there is nothing to read."""

    FAIL = "fail"  # most often its path or `where` has gone wrong, or its files are late
    EMPTY = "empty"  # it reads no rows


class TakenBy(StrEnum):
    """What says which interval a file of an incremental source belongs to."""

    PATH = "path"  # the interval that it names
    COLUMN = "column"  # a value of its folder, or its greatest one by the file's statistics
    ARRIVAL = "arrival"  # when it was last written


class Reread(StrEnum):
    """How long what was read from a database counts: nothing tells whether its rows have changed since."""

    INTERVAL = "interval"
    RUN = "run"


Version = Annotated[int, Field(strict=True, ge=0)]


class IncrementalForm(SpecPart):
    """What an interval takes of files that nobody has taken: its own, and those that came late for earlier ones."""

    by: TakenBy
    column: str | None = None


INCREMENTAL_ALLOWED = "true, false, or {by: path}, {by: column, column: NAME}, {by: arrival}"


def read_incremental(given: Any) -> bool | IncrementalForm:
    if isinstance(given, bool | IncrementalForm):
        return given
    by, column = (given.get("by"), given.get("column")) if isinstance(given, Mapping) else (None, None)
    fits = isinstance(column, str) and column if by == TakenBy.COLUMN else column is None
    if isinstance(by, str) and by in (*TakenBy,) and fits and not set(given) - {"by", "column"}:
        return IncrementalForm(by=TakenBy(by), column=column)
    raise PydanticCustomError("incremental", INCREMENTAL_ALLOWED)


Incremental = Annotated[
    bool | IncrementalForm, BeforeValidator(read_incremental, json_schema_input_type=bool | IncrementalForm)
]


class FreshnessForm(SpecPart):
    """How old what is read may be."""

    warn_after: PositiveDuration | None = None
    error_after: PositiveDuration | None = None

    def __bool__(self) -> bool:
        return self.warn_after is not None or self.error_after is not None


class SourceSettings(SpecPart):
    """What a source says of itself besides its kind and splits, in the file as in the checked pipeline.

    ``${lake}`` in a path is the lake; a relative one begins at the project's folder.
    """

    path: str | None = None
    """A file, a folder or a glob with `*`, `?`, `[...]` and `**`, or a Delta table. `${lake}` is the lake, a relative
    path begins at the project's folder. `${interval.start:%Y-%m-%d}` and `${interval}` name the interval. Not for
    `jdbc`.
    Example: `path: "s3://shop/orders/**/*.parquet"`"""

    where: str | None = None
    """Which rows of a Delta table or of Parquet files are read: comparisons joined by AND. Files that cannot have such
    rows, by the table's statistics or the names of their folders, are not read and not in the key.
    Example: `kind: delta, path: "${lake}/events", splits: 4, where: "day = :interval_start AND country <> 'de'"`"""

    if_missing: IfMissing = IfMissing.FAIL
    """What to do if there is no file for the interval: fail, or go on without rows. For `empty` the columns have to be
    known: those of a Delta table, of a `schema`, or of files of other intervals that `path` matches.
    Example: `kind: delta, path: "${lake}/events", splits: 4, where: "day = :interval_start", if_missing: empty`"""

    incremental: Incremental = False
    """Whether an interval takes what no interval has taken, and keeps it. For files and Delta tables. With `by`, files
    go to intervals by the interval that `path` names, by the values of a `column`, or by their `arrival`.
    Example: `incremental: {by: column, column: day}`"""

    on_change: OnChange = OnChange.ERROR
    """What to do when something that was read before is not what it was: fail, or read on.
    Example: `incremental: true, on_change: ignore`"""

    owner: str | None = None
    """Who answers for what is read, shown by `stagehold source list`.
    Example: `kind: parquet, path: "${lake}/orders/*.parquet", splits: 4, owner: shop-team`"""

    description: str | None = None
    """What is read, in words.
    Example: `kind: parquet, path: "${lake}/orders/*.parquet", splits: 4, description: Orders of the shop`"""

    columns: Mapping[str, ColumnForm] = Field(default_factory=dict)
    """Columns that what is read has to have, with their types, as those of an output. Others may be there, too. Not for
    `jdbc`.
    Example: `kind: parquet, path: "${lake}/orders/*.parquet", splits: 4, columns: {id: bigint}`"""

    freshness: FreshnessForm = FreshnessForm()
    """How old the newest of all files, or the table's newest version, may be when a run reads: `warn_after` warns,
    `error_after` refuses. Not for `jdbc`.
    Example: `kind: delta, path: "${lake}/events", splits: 4, freshness: {warn_after: 26h, error_after: 50h}`"""

    header: Switch = False
    """Whether the first line of a `csv` file names the columns; they are compared with the schema.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", header: true`"""

    delimiter: str = ","
    """What stands between two values of a `csv` file.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", delimiter: ";"`"""

    options: Options = Field(default_factory=dict)
    """Options of Spark's reader for `csv`, `json`, `avro`, `jdbc` and `spark` that no other field stands for. They may
    name the interval.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", options: {mode:
    PERMISSIVE}`"""

    format: str | None = None
    """The format of `kind: spark`, for `spark.read.format`. Without a `path` it gives rows, as a database does.
    Example: `kind: spark, format: xml, options: {rowTag: order}, path: "${lake}/orders/*.xml", splits: 4`"""

    reader: str | None = None
    """The class of `kind: python`, as `module:Class`: `splits(ctx)` says what there is, `read(ctx, split)` reads it.
    Example: `kind: python, reader: "jobs.shop_api:Orders", schema: "id bigint, name string", splits: 4`"""

    secret_options: Mapping[str, str] = Field(default_factory=dict)
    """Options of `kind: spark` that nobody may see: each names one of the pipeline's `secrets`.
    Example: `kind: spark, format: mongodb, options: {database: shop}, secret_options: {connection.uri: api_token},
    splits: 1`"""

    version: Version | None = None
    """The version of a Delta table to read. Without it: the one that is newest when the run plans.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, version: 12`"""

    from_version: Version | None = None
    """Read what the commits of a Delta table from this one on added.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, from_version: 3, to_version: 12`"""

    to_version: Version | None = None
    """The last of those commits.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, from_version: 3, to_version: 12`"""

    url: str | None = None
    """Address of a database, beginning with `jdbc:` and without a password.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    driver: str | None = None
    """Java class of the database's driver, where its JAR does not say so itself.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, driver: org.postgresql.Driver`"""

    table: str | None = None
    """Table of the database to read; or a `query`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    query: str | None = None
    """Query to read in place of a `table`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", query: "SELECT id, total FROM orders", splits: 1`"""

    column: str | None = None
    """Column by whose range a table of a database is dealt into splits.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    lower: Bound | None = None
    """Where the second split begins, more or less: the first takes everything below, and NULL.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: day, lower: "2026-01-01", upper:
    "2027-01-01", splits: 12`"""

    upper: Bound | None = None
    """Where the last split ends its equal share; it also takes everything above. Of the type of `lower`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    user_variable: str | None = None
    """Environment variable that has the database's user.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, user_variable: SHOP_USER`"""

    password_variable: str | None = None
    """Environment variable that has the password.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, password_variable: SHOP_PASSWORD`"""

    password_secret: str | None = None
    """Secret that is the password, one of those in `secrets` of the pipeline, in place of `password_variable`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, password_secret: api_token`"""

    max_age: PositiveDuration | None = None
    """How long ago it may have been read when a run begins; after that it is read again. Example: `max_age: 12h`"""

    reread: Reread = Reread.INTERVAL
    """Whether rows of a database, or of a format without a path, that an interval has read count for all its runs, or
    are read again by each new run.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, reread: run`"""


def gives_rows(kind: SourceKind | None, path: str | None) -> bool:
    """Whether a source is asked for rows that meet conditions, and has no files that could be listed."""
    return kind is SourceKind.JDBC or (kind is SourceKind.SPARK and path is None)


class SourceForm(SourceSettings):
    """A source as written: what it needs may be missing."""

    kind: SourceKind | None = None
    """What is read: files of one format, a Delta table, a table of a database, what a `format` of Spark gives, or
    what a `reader` in Python gives. Needed.
    Example: `kind: parquet, path: "${lake}/orders/*.parquet", splits: 16`"""

    splits: Splits | None = None
    """How what is read is cut into partitions: a number, a size for each, or a list of what each split reads (files,
    or for `jdbc` conditions). Needed. A number or a list (`files`) may have an `assignment`: `static`, where each task
    of `max_parallel_tasks` has its own, or `dynamic`, where each takes the next ones that nobody has.
    Example: `splits: {count: 16, assignment: static}`"""

    ddl: str | None = Field(default=None, alias="schema")
    """Columns with their types, for `csv`, `json` and `python`; `infer` guesses them from the first file. Without it
    `avro` and `spark` have those of the first file.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string"`"""

    @model_validator(mode="before")
    @classmethod
    def _written(cls, data: Any) -> Any:
        """A field without a value was not given."""
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data

    @property
    def cut(self) -> int | SplitSize | SplitList | None:
        return cut_of(self.splits)

    @property
    def count(self) -> int | None:
        """How many splits there are, where the file tells."""
        if isinstance(self.cut, tuple):
            return len(self.cut)
        return None if isinstance(self.cut, SplitSize) else self.cut

    @property
    def asked_for(self) -> bool:
        """Whether tasks ask for splits."""
        return isinstance(self.splits, AssignedSplits) and self.splits.assignment is Assignment.DYNAMIC

    @property
    def by_size(self) -> bool:
        """Whether the number of splits follows from the bytes that there are."""
        return isinstance(self.splits, SplitSize)

    @property
    def given(self) -> Mapping[str, Any]:
        """Fields that were written down, by the names they have in the file."""
        values = self.model_dump(exclude_unset=True)
        return {written_name(type(self), name): value for name, value in values.items()}


class Source(SourceSettings):
    """What a stage without inputs reads, cut into splits, one partition each. Which fields a kind has is checked by the
    loader.

    ``ddl`` is what the file calls schema; `INFER` there means the first file's.
    """

    kind: SourceKind
    splits: Splits
    ddl: str | None = None

    @property
    def gives_rows(self) -> bool:
        return gives_rows(self.kind, self.path)

    @property
    def place(self) -> str:
        """Where the data is, whatever is taken of it and however it is cut."""
        if self.kind is SourceKind.JDBC:
            return f"{self.url} {self.table or self.query}"
        if self.reader is not None:
            return self.reader
        if self.gives_rows:
            return " ".join((str(self.format), *(f"{name}={value}" for name, value in sorted(self.options.items()))))
        return self.path or " ".join(text for split in self.listed for text in split)

    def of_interval(self, times: IntervalTimes) -> Source:
        """The source with paths, `where` and query that name this interval.

        :raises IntervalUnfit: they cannot.
        """
        texts = {name: text for name in ("path", "where", "query") if (text := getattr(self, name))}
        listed = tuple(tuple(self._of_interval("splits", text, times) for text in split) for split in self.listed)
        changed: dict[str, Any] = {name: self._of_interval(name, text, times) for name, text in texts.items()}
        changed["options"] = {name: of_interval(text, times) for name, text in self.options.items()}
        if listed and isinstance(self.splits, AssignedSplits):
            changed["splits"] = self.splits.model_copy(update={"cut": listed})
        elif listed:
            changed["splits"] = listed
        return self.model_copy(update=changed)

    def _of_interval(self, field: str, text: str, times: IntervalTimes) -> str:
        """Databases know moments without a zone, which are in UTC."""
        named = of_interval(text, times)
        if field == "path" or (field == "splits" and not self.gives_rows):
            return named
        return with_interval(named, times.edge, zone="" if self.kind is SourceKind.JDBC else "+00:00")

    @property
    def names_interval(self) -> bool:
        """Whether each interval reads something of its own."""
        queries = [self.where, self.query, *(text for split in self.listed for text in split)]
        texts = (self.place, *self.options.values())
        own = self.taken is not None or self.reader is not None  # a class is given the interval
        return (
            own
            or any(map(names_interval, texts))
            or any(names_interval(text) or names_interval_edges(text) for text in queries if text)
        )

    @property
    def taken(self) -> IncrementalForm | None:
        """What says which interval a file belongs to, if something does."""
        return self.incremental if isinstance(self.incremental, IncrementalForm) else None

    @property
    def fails_if_missing(self) -> bool:
        return self.if_missing is IfMissing.FAIL

    @property
    def listed(self) -> SplitList:
        """What each split reads, where the file says so."""
        cut = cut_of(self.splits)
        return cut if isinstance(cut, tuple) else ()

    @property
    def asked_for(self) -> bool:
        """Whether tasks ask for splits."""
        return isinstance(self.splits, AssignedSplits) and self.splits.assignment is Assignment.DYNAMIC

    @property
    def dealt(self) -> bool:
        """Whether what there is gets dealt into splits, so that one file more or less may move others."""
        return not self.gives_rows and not self.listed

    @property
    def spark_format(self) -> str:
        """The format by which Spark reads it."""
        return self.format or self.kind.value

    @property
    def skips_changes(self) -> bool:
        return self.on_change is OnChange.IGNORE
