"""What a stage's code reads beside its inputs, as far as its text shows: the environment, files, tables.

Found are calls that are known to read, by the names that lead to them. What only might read is left out: a reader of
the findings should believe each. Views that the same code makes are no tables, and the frames of inputs read nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagehold.code.scopes import NameScope, last_name, names_of
from stagehold.code.script_job import is_script
from stagehold.code.sql_job import is_sql
from stagehold.code.sql_tables import OF_TABLES, UNKNOWN, tables_in, view_name, views_in
from stagehold.code.stage_code import lines_of, reached_code
from stagehold.model.keys.compute_key import ReadKind

ENVIRON, GETENV = frozenset({"os.environ", "os.environb"}), frozenset({"os.getenv", "os.getenvb"})
WRITES_ENVIRON = frozenset({"update", "clear", "putenv", "unsetenv"})
OPENERS = frozenset(
    {
        *("open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "fsspec.open", "tarfile.open"),
        *("zipfile.ZipFile", "PIL.Image.open", "pathlib.Path.open", "os.open"),
    }
)
READERS = frozenset(
    {
        *("pandas.ExcelFile", "pandas.HDFStore", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile"),
        *("numpy.memmap", "joblib.load", "torch.load", "toml.load", "linecache.getline", "linecache.getlines"),
        *("pyarrow.memory_map", "pyarrow.OSFile", "pyarrow.input_stream", "pyarrow.dataset.dataset"),
        *("pyarrow.parquet.read_table", "pyarrow.parquet.read_pandas", "pyarrow.parquet.ParquetFile"),
        *("pyarrow.parquet.ParquetDataset", "pyarrow.parquet.read_schema", "pyarrow.parquet.read_metadata"),
        *("pyarrow.csv.read_csv", "pyarrow.csv.open_csv", "pyarrow.json.read_json", "pyarrow.feather.read_table"),
        *("pyarrow.feather.read_feather", "pyarrow.orc.read_table", "pyarrow.orc.ORCFile"),
        *("duckdb.read_csv", "duckdb.read_parquet", "duckdb.read_json", "fileinput.input", "pyspark.SparkFiles.get"),
    }
)
READER_PREFIXES = ("pandas.read_", "polars.read_", "polars.scan_")
NO_FILES = ("pandas.read_sql", "pandas.read_gbq", "pandas.read_clipboard", "polars.read_database")
TABLE_READERS: Mapping[str, int] = {  # with the place of the argument that names the table
    "delta.DeltaTable.forPath": 1,
    "delta.DeltaTable.forName": 1,
    "delta.tables.DeltaTable.forPath": 1,
    "delta.tables.DeltaTable.forName": 1,
    "deltalake.DeltaTable": 0,
}
OF_PATHS = frozenset({"read_text", "read_bytes"})
OF_SPARK_CONTEXT = frozenset({"textFile", "wholeTextFiles", "binaryFiles"})
OF_READER = frozenset({"csv", "json", "parquet", "orc", "text", "xml", "load", "table", "jdbc", "delta"})
IN_MEMORY = frozenset({"StringIO", "BytesIO", "parallelize", "getvalue", "BufferReader"})
MAKES_VIEW = frozenset(
    {
        *("createTempView", "createOrReplaceTempView", "createGlobalTempView", "createOrReplaceGlobalTempView"),
        "registerTempTable",
    }
)
MADE_UP = frozenset({"rate", "rate-micro-batch", "socket", "kafka"})  # formats that read neither files nor tables
PATH_KEYWORDS = ("filepath_or_buffer", "path_or_buf", "path", "io", "source", "fname", "file", "filename", "f", "where")
IN_TEXT = re.compile(r"\$\{?(\w+)")  # variables that a path names


@dataclass(frozen=True)
class SideRead:
    """A read; ``name`` is that of the variable, the path or the table, None where nobody knows it before it is read.

    ``place`` is a file with a line, as in ``jobs/x.py:12``, and ``text`` that line.
    """

    kind: ReadKind
    name: str | None
    place: str = ""
    text: str = ""

    def __str__(self) -> str:
        what = f"{self.kind} {self.name}" if self.name is not None else f"{_SOME[self.kind]} by `{self.text}`"
        return f"{what} ({self.place})" if self.place else what


_SOME = {ReadKind.ENV: "variables of the environment", ReadKind.FILE: "a file", ReadKind.TABLE: "a table"}


def side_reads(job: str, project: Path, frames: Iterable[str] = ()) -> tuple[SideRead, ...]:
    """Every read in the project's code that ``module:function`` reaches, functions for UDFs included, by file and line;
    as far as the code can be followed. In a file of SQL, ``frames`` are what the stage is given by name.
    """
    reached = reached_code(job, project)
    modules = {module.path: names_of(module) for module, _ in reached}
    scopes = [NameScope(modules[module.path], statement) for module, statement in reached]
    given = frames if is_sql(job.partition(":")[0]) else ()
    views = frozenset((*given, *(view for scope in scopes for view in _views(scope))))
    found = [(read, scope) for scope in scopes for read in _reads(scope, views)]
    if is_script(job.partition(":")[0]):  # its paths are arguments, so what it reads is seen when it runs
        found = [(read, scope) for read, scope in found if read.name is not None or read.kind is ReadKind.ENV]
    reads = {_placed(read, scope, project) for read, scope in found}
    return tuple(sorted(reads, key=lambda read: (_sortable(read.place), read.kind, read.name or "")))


def _sortable(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line)


@dataclass(frozen=True)
class _Found:
    """A read and its line; ``by_name`` says that it may be the name of a view."""

    kind: ReadKind
    name: str | None
    line: int
    by_name: bool = False


def _placed(found: _Found, scope: NameScope, project: Path) -> SideRead:
    path = scope.names.module.path
    place = f"{path.relative_to(project).as_posix()}:{found.line}"
    return SideRead(found.kind, found.name, place, lines_of(path)[found.line - 1].strip())


def _views(scope: NameScope) -> Iterator[str]:
    """Views that the code makes, in lower case; `UNKNOWN` for one whose name it does not show."""
    for call in scope.calls:
        given = _first(call, "name", "sqlQuery")
        if last_name(call.func) in MAKES_VIEW:
            yield view_name(scope.literal(given) or UNKNOWN)
        elif last_name(call.func) == "sql" and given is not None:
            yield from views_in(scope.text(given))


def _reads(scope: NameScope, views: frozenset[str]) -> Iterator[_Found]:
    yield from _environment_reads(scope)
    for call in scope.calls:
        yield from _file_reads(scope, call)
        yield from (found for found in _table_reads(scope, call) if not _is_view(found, views))


def _is_view(found: _Found, views: frozenset[str]) -> bool:
    """Whether what is read as a table is, or may be, a view that the same code makes."""
    if found.kind is not ReadKind.TABLE or not found.by_name:
        return False
    if found.name is None:
        return UNKNOWN in views
    name = view_name(found.name).removeprefix("global_temp.")
    return name in views or (UNKNOWN in views and "." not in name)


def _environment_reads(scope: NameScope) -> Iterator[_Found]:
    """Uses of the environment that name no variable read them all; giving it another name does not."""
    named = {id(value) for value in scope.assigned.values()}
    for node in scope.nodes:
        match node:
            case ast.Subscript(value=value, slice=key) if scope.target(value) in ENVIRON:
                named.add(id(value))
                if isinstance(node.ctx, ast.Load):
                    yield _Found(ReadKind.ENV, scope.literal(key), node.lineno)
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[value]) if (
                scope.target(value) in ENVIRON
            ):
                named.add(id(value))
                yield _Found(ReadKind.ENV, scope.literal(key), node.lineno)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if scope.target(value) in ENVIRON:
                named.add(id(value))
                if attr not in WRITES_ENVIRON:
                    yield _Found(ReadKind.ENV, scope.literal(_first(node, "key")), _line(node))
            case ast.Call(func=func) if scope.target(func) in GETENV:
                yield _Found(ReadKind.ENV, scope.literal(_first(node, "key")), _line(node))
            case ast.Call(func=func) if scope.target(func) == "os.path.expandvars":
                variables = IN_TEXT.findall(scope.literal(_first(node, "path")) or "") or [None]
                yield from (_Found(ReadKind.ENV, name, _line(node)) for name in variables)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if (
                id(node) not in named and scope.target(node) in ENVIRON
            ):
                yield _Found(ReadKind.ENV, None, node.lineno)


def _file_reads(scope: NameScope, call: ast.Call) -> Iterator[_Found]:
    target, line = scope.target(call.func) or "", _line(call)
    if target in OPENERS:
        if not _writes(scope, call, 1):
            yield from _opened(scope, _first(call, "file", "name", "filename", "fp", "urlpath", "path"), line)
    elif target in READERS or (target.startswith(READER_PREFIXES) and not target.startswith(NO_FILES)):
        yield from _opened(scope, _first(call, *PATH_KEYWORDS), line)
    elif isinstance(call.func, ast.Attribute):
        yield from _files_of_method(scope, call, call.func, line)


def _files_of_method(scope: NameScope, call: ast.Call, func: ast.Attribute, line: int) -> Iterator[_Found]:
    opens = func.attr == "open" and scope.is_path(func.value) and not _writes(scope, call, 0)
    if func.attr in OF_PATHS or opens:
        yield _Found(ReadKind.FILE, scope.literal(func.value), line)
    elif func.attr == "read" and scope.makes(func.value, "configparser.ConfigParser", "configparser.RawConfigParser"):
        yield from _opened(scope, _first(call, "filenames"), line)
    elif func.attr in OF_SPARK_CONTEXT:
        yield _Found(ReadKind.FILE, scope.literal(_first(call, "name", "path")), line)


def _opened(scope: NameScope, path: ast.expr | None, line: int) -> Iterator[_Found]:
    """What is read if ``path`` is one, and not a file that was opened already, or something in memory."""
    opened = scope.value(path) if path is not None else None
    if opened is None or (isinstance(opened, ast.Constant) and not isinstance(opened.value, str)):
        return
    calls = [node for node in ast.walk(opened) if isinstance(node, ast.Call)]
    if any(last_name(call.func) in IN_MEMORY or scope.target(call.func) in OPENERS for call in calls):
        return
    if isinstance(opened, ast.Call) and last_name(opened.func) == "open":
        return
    yield _Found(ReadKind.FILE, scope.literal(opened), line)


def _writes(scope: NameScope, call: ast.Call, place: int) -> bool:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    mode = scope.literal(given or (call.args[place] if len(call.args) > place else None)) or "r"
    return bool(set("wax") & set(mode)) and "+" not in mode


def _table_reads(scope: NameScope, call: ast.Call) -> Iterator[_Found]:
    """Tables, and files that Spark reads."""
    line, place = _line(call), TABLE_READERS.get(scope.target(call.func) or "")
    if place is not None:
        given = call.args[place] if len(call.args) > place else None
        yield _Found(ReadKind.TABLE, scope.literal(given), line)
    elif not isinstance(call.func, ast.Attribute):
        return
    elif call.func.attr in OF_READER and (reader := scope.reader(call.func.value)) is not None:
        yield from _read_by_spark(scope, call, call.func.attr, reader)
    elif call.func.attr == "table" and scope.is_session(call.func.value):
        yield _Found(ReadKind.TABLE, scope.literal(_first(call, "tableName")), line, by_name=True)
    elif call.func.attr == "sql" and scope.is_session(call.func.value):
        yield from _read_by_sql(scope, call)


def _read_by_spark(scope: NameScope, call: ast.Call, method: str, options: Mapping[str, ast.expr]) -> Iterator[_Found]:
    line = _line(call)
    options = {**options, **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}}
    kind = (scope.literal(options.get("format")) or "").lower() if method == "load" else method
    if method == "table":
        yield _Found(ReadKind.TABLE, scope.literal(_first(call, "tableName")), line, by_name=True)
    elif kind == "jdbc":
        yield _Found(ReadKind.TABLE, None, line)
    elif kind not in MADE_UP:
        given = [*call.args[:1], *(call.args[1:] if method in ("parquet", "orc") else ())]
        given = given or [options[name] for name in ("path", "paths") if name in options]
        for path in (item for node in given for item in _items(scope.value(node))):
            if not any(last_name(part) in IN_MEMORY | {"rdd"} for part in ast.walk(path)):
                yield _Found(ReadKind.TABLE if kind in OF_TABLES else ReadKind.FILE, scope.literal(path), line)


def _items(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple) else [node]


def _read_by_sql(scope: NameScope, call: ast.Call) -> Iterator[_Found]:
    given = _first(call, "sqlQuery")
    if given is None:
        return
    text, query = scope.text(given), scope.value(given)
    for frame in (keyword.arg for keyword in call.keywords if keyword.arg):
        text = text.replace(f"{{{frame}}}", "values")  # which Spark puts there itself
    for name, is_file, offset in tables_in(text):
        # Only in a text that stands there as it is each line is one of the file.
        below = text[:offset].count("\n") if isinstance(query, ast.Constant) else 0
        line = query.lineno + below if isinstance(query, ast.Constant) else _line(call)
        kind = ReadKind.FILE if is_file else ReadKind.TABLE
        yield _Found(kind, name, line, by_name=not is_file)


def _first(call: ast.Call, *keywords: str) -> ast.expr | None:
    """The first argument, by place or by name."""
    named = (keyword.value for keyword in call.keywords if keyword.arg in keywords)
    return call.args[0] if call.args else next(named, None)


def _line(call: ast.Call) -> int:
    """The line of a call: in a chain of methods each has its own."""
    return call.func.end_lineno or call.lineno
