"""What must hold across the fields of a source and of `reads`: which its kind has or needs, and which go together."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from stagehold.code.project import Module, load_module
from stagehold.code.sql_slice import SliceUnfit, check_slice, with_interval
from stagehold.model.keys.interval_text import FORMS, IntervalTimes, names_interval, of_interval
from stagehold.spec.draft import Draft
from stagehold.spec.form import show, suggest
from stagehold.spec.loading.named_code import class_problem
from stagehold.spec.settings.output_settings import OUTPUT_TYPES
from stagehold.spec.settings.source import (
    INFER,
    IncrementalForm,
    SourceForm,
    SourceKind,
    TakenBy,
    gives_rows,
)
from stagehold.spec.settings.split_forms import SPLITS_ALLOWED, SplitSize
from stagehold.spec.yaml import FieldPath, Problem

ENVIRONMENT_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
QUOTED_NAME = re.compile(r"`(?:[^`]|``)+`")
DDL_COLUMN = re.compile(r"\s*\w+\s*[\s:]\s*\w.*", re.DOTALL)
SOME_INTERVAL = IntervalTimes("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
OF_ALL = ("owner", "description", "max_age")
FILES = ("path", "splits", "if_missing", "incremental", "on_change", "columns", "freshness", *OF_ALL)
FIELDS = {
    SourceKind.PARQUET: (*FILES, "where"),
    SourceKind.ORC: (*FILES, "where"),
    SourceKind.AVRO: (*FILES, "schema", "options"),
    SourceKind.CSV: (*FILES, "schema", "header", "delimiter", "options"),
    SourceKind.JSON: (*FILES, "schema", "options"),
    SourceKind.DELTA: (*FILES, "where", "version", "from_version", "to_version"),
    SourceKind.JDBC: (
        *("url", "driver", "table", "query", "column", "lower", "upper", "splits"),
        *("user_variable", "password_variable", "password_secret", "options", "reread", *OF_ALL),
    ),
    SourceKind.PYTHON: ("reader", "schema", "splits", "if_missing", *OF_ALL),
    SourceKind.SPARK: (*FILES, "format", "schema", "options", "secret_options", "reread"),
}
WHICH_FILES = ("pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore")
# Options of Spark's readers that a field of ours stands for, or that would change which rows are read.
TAKEN_OPTIONS = {
    SourceKind.CSV: (
        "path",
        "schema",
        "header",
        "sep",
        "delimiter",
        "inferschema",
        "enforceschema",
        "columnpruning",
        "pathglobfilter",
    ),
    SourceKind.JSON: ("path", "schema", "inferschema", "samplingratio", "pathglobfilter"),
    SourceKind.AVRO: ("path", "schema", *WHICH_FILES),
    SourceKind.SPARK: ("path", "paths", "schema", "basepath", *WHICH_FILES),
    SourceKind.JDBC: (
        *(
            "url",
            "driver",
            "dbtable",
            "query",
            "partitioncolumn",
            "lowerbound",
            "upperbound",
            "numpartitions",
            "predicates",
        ),
        *("user", "password"),
    ),
}
# Names of options, without what stands between their words, whose value nobody may see.
SECRET_OPTION = re.compile(r"(password|passwd|pwd|secret|token|credentials?|accesskey|apikey|privatekey|accountkey)$")
READER_ALLOWED = "module:Class, such as jobs.shop_api:Orders"
PASSWORD_IN_URL = re.compile(r"password\s*=|//[^/?;]*:[^/?;]*@", re.IGNORECASE)
TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
TABLE_ALLOWED = "schema.table of a table that is published in the lake, or the path of a Delta table, with a / in it"


def check_source(draft: Draft, name: str) -> Iterator[Problem]:
    source, path = draft.stages[name].source, ("stages", name, "source")
    if source is None:
        return
    if source.kind is None:
        if not draft.is_broken(*path, "kind"):
            yield Problem((*path, "kind"), "nothing", ", ".join(SourceKind))
        return
    yield from _check_fields(source, source.kind, path)
    own = _check_reader(source, path, draft.project) if source.kind is SourceKind.PYTHON else ()
    for problem in (*_missing(source, source.kind, path), *_at_odds(source, source.kind, path), *own):
        # A field that is there but cannot be read is neither missing nor at odds with another.
        if not draft.is_broken(*problem.path) and not any(
            draft.is_broken(*path, other) for other in FIELDS[source.kind]
        ):
            yield problem


def _check_fields(source: SourceForm, kind: SourceKind, path: FieldPath) -> Iterator[Problem]:
    for field in sorted(set(source.given) - {"kind", *FIELDS[kind]}):
        yield Problem((*path, field), show(field), f"with {kind}: {suggest(field, FIELDS[kind])}")
    for option in source.options:
        if option.lower() in TAKEN_OPTIONS.get(kind, ()):
            own = f"; {option.lower()} is a field of the source" if option.lower() in FIELDS[kind] else ""
            yield Problem(
                (*path, "options"),
                show(option),
                f"options of Spark's reader that no field of the source stands for{own}",
            )


def _missing(source: SourceForm, kind: SourceKind, path: FieldPath) -> Iterator[Problem]:
    listed = isinstance(source.cut, tuple)
    if source.splits is None:
        yield Problem((*path, "splits"), "nothing", SPLITS_ALLOWED)
    if kind is SourceKind.JDBC:
        yield from _missing_of_jdbc(source, path)
    elif kind is SourceKind.SPARK:
        yield from _check_format(source, path)
    elif not source.path and not listed and kind is not SourceKind.PYTHON:
        yield Problem(
            (*path, "path"),
            show(source.path),
            "a file, a folder or a glob" if kind is not SourceKind.DELTA else "a Delta table",
        )
    if kind in (SourceKind.CSV, SourceKind.JSON) and (source.ddl is None or not _is_ddl(source.ddl)):
        allowed = (
            f"columns with their types, as in 'id bigint, name string', or {INFER} to guess them from the first file"
        )
        yield Problem((*path, "schema"), show(source.ddl), allowed)
    elif kind in (SourceKind.AVRO, SourceKind.SPARK) and source.ddl is not None and not _names_columns(source.ddl):
        allowed = "columns with their types, as in 'id bigint, name string'; without it, those of the first file"
        yield Problem((*path, "schema"), show(source.ddl), allowed)


def _check_format(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    if not source.format or source.format.lower() in (*SourceKind,):
        allowed = "a format of Spark, such as xml or text"
        own = f"; `kind: {source.format.lower()}` reads it" if source.format else ""
        yield Problem((*path, "format"), show(source.format) if source.format else "nothing", f"{allowed}{own}")
    if source.path is None:
        if not isinstance(source.cut, tuple) and source.cut not in (None, 1):
            allowed = "1, or a list with the condition of each split; without a `path` there are no files to deal"
            yield Problem((*path, "splits"), show(source.given["splits"]), allowed)
        of_files = {*FILES} - {"path", "splits", *OF_ALL}
        yield from _unfit(source, path, of_files, "nothing without a `path`, whose files it is about")
    else:
        yield from _unfit(source, path, {"reread"}, "nothing beside a `path`, whose files tell what is new")
    for option, value in source.options.items():
        if SECRET_OPTION.search(re.sub(r"[^a-z]", "", option.lower())) or PASSWORD_IN_URL.search(value):
            allowed = f"no secret in clear; `secret_options: {{{option}: NAME}}` names the secret that it is"
            yield Problem((*path, "options", option), "a secret", allowed)


def _check_reader(source: SourceForm, path: FieldPath, project: Path) -> Iterator[Problem]:
    if isinstance(source.cut, tuple):
        yield Problem((*path, "splits"), show(source.given["splits"]), "a whole number, 1 or more, or {bytes: 128mb}")
    if source.ddl is None or not _names_columns(source.ddl):
        allowed = "columns with their types, as in 'id bigint, name string', which `read` gives"
        yield Problem((*path, "schema"), show(source.ddl), allowed)
    problem = class_problem(source.reader, project) if source.reader else (show(source.reader), READER_ALLOWED)
    if problem is None and (module := load_module(str(source.reader).partition(":")[0], project)) is not None:
        problem = _lacking_methods(module, str(source.reader))
    if problem is not None:
        yield Problem((*path, "reader"), *problem)


def _lacking_methods(module: Module, reader: str) -> tuple[str, str] | None:
    """What is wrong with a class that is defined there and inherits from none."""
    wanted = {"splits": ["self", "ctx"], "read": ["self", "ctx", "split"]}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and node.name == reader.partition(":")[2] and not node.bases:
            found = {each.name: len(each.args.args) for each in node.body if isinstance(each, ast.FunctionDef)}
            lacking = [name for name, given in wanted.items() if found.get(name) != len(given)]
            if lacking:
                forms = " and ".join(f"`def {name}({', '.join(wanted[name])})`" for name in lacking)
                return show(reader), f"a class with {forms}"
    return None


def _unfit(source: SourceForm, path: FieldPath, fields: Collection[str], allowed: str) -> Iterator[Problem]:
    for field in sorted({*fields} & set(source.given)):
        given = source.given[field]
        yield Problem((*path, field), show(given.value if isinstance(given, StrEnum) else given), allowed)


def _missing_of_jdbc(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    if source.url is None or not source.url.startswith("jdbc:"):
        yield Problem((*path, "url"), show(source.url), "an address that begins with jdbc:")
    elif PASSWORD_IN_URL.search(source.url):
        yield Problem((*path, "url"), "a password", "no password; password_secret names the secret that it is")
    if bool(source.table) == bool(source.query):
        yield Problem(
            (*path, "table"), "both table and query" if source.table else "nothing", "either a table or a query"
        )
    for field in ("user_variable", "password_variable"):
        given = source.given.get(field)
        if given is not None and not ENVIRONMENT_VARIABLE.fullmatch(given):
            yield Problem((*path, field), show(given), "the name of an environment variable")
    if source.password_secret is not None and source.password_variable is not None:
        yield Problem((*path, "password_secret"), show(source.password_secret), "nothing beside password_variable")
    yield from _check_range(source, path)


def _check_range(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    """Several splits need a column and its bounds, unless each has a condition of its own."""
    bounds = {field: source.given.get(field) for field in ("column", "lower", "upper")}
    if isinstance(source.cut, SplitSize):
        yield Problem(
            (*path, "splits"),
            "a size",
            "a whole number, 1 or more, or a list of conditions; nobody knows the size of a table",
        )
        return
    if isinstance(source.cut, tuple):
        for field in (field for field, value in bounds.items() if value is not None):
            yield Problem((*path, field), show(bounds[field]), "no range beside a list of conditions in splits")
        return
    if any(value is not None for value in bounds.values()) or (source.cut or 1) > 1:
        for field in (field for field, value in bounds.items() if value is None):
            yield Problem(
                (*path, field), "nothing", "column, lower and upper, by which rows are dealt; or a list of conditions"
            )
    if source.lower is None or source.upper is None:
        return
    if type(source.lower) is not type(source.upper):
        yield Problem((*path, "upper"), show(source.upper), f"a bound of the same type as lower, {source.lower}")
    elif source.lower >= source.upper:  # type: ignore[operator]
        yield Problem((*path, "lower"), show(source.lower), f"less than upper, {source.upper}")


def _at_odds(source: SourceForm, kind: SourceKind, path: FieldPath) -> Iterator[Problem]:
    if gives_rows(kind, source.path):
        return
    if isinstance(source.cut, tuple):
        if kind is SourceKind.DELTA:
            yield Problem((*path, "splits"), show(source.splits), "a whole number, 1 or more, or {bytes: 128mb}")
        for field in sorted({"path", "incremental", "where", "if_missing"} & set(source.given)):
            yield Problem(
                (*path, field),
                show(source.given[field]),
                "nothing beside a list in splits, which names the files itself",
            )
    if not source.delimiter:
        yield Problem((*path, "delimiter"), show(source.delimiter), "one character or more")
    for column, form in source.columns.items():
        if form.type is None or not form.null:
            given = "a column without `type`" if form.type is None else "null: false"
            yield Problem((*path, "columns", column), given, f"a type; NULLs are for a gate: {OUTPUT_TYPES}")
    yield from _check_versions(source, path)
    yield from _check_where(source, path)
    yield from _check_intervals(source, path)
    if "on_change" in source.given and not source.incremental and source.from_version is None:
        yield Problem(
            (*path, "on_change"),
            show(source.on_change.value),
            "only for what was read before: with incremental or from_version",
        )


def _check_intervals(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    by = source.incremental.by if isinstance(source.incremental, IncrementalForm) else None
    named = bool(source.path and names_interval(source.path))
    if source.incremental and named and by is not TakenBy.PATH:
        given = f"{{by: {by}}}" if by else "True"
        allowed = "{by: path}, or false: the path names the interval, which is what an interval takes"
        yield Problem((*path, "incremental"), given, allowed)
    if by is TakenBy.PATH and not named:
        yield Problem((*path, "path"), show(source.path), f"a path that names its interval: {FORMS}")
    if by is not None and source.kind is SourceKind.DELTA:
        yield Problem((*path, "incremental"), f"{{by: {by}}}", "true, for a table; `where` gives a day its own rows")


def _check_where(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    if source.where is None:
        return
    try:
        check_slice(with_interval(of_interval(source.where, SOME_INTERVAL), SOME_INTERVAL.edge))
    except SliceUnfit as unfit:
        yield Problem((*path, "where"), show(source.where), str(unfit))
    for field in sorted({"incremental", "from_version"} & set(source.given)):
        given = source.given[field]
        if given is not False:
            yield Problem((*path, field), show(given), "nothing beside where, which says what an interval reads")


def _check_versions(source: SourceForm, path: FieldPath) -> Iterator[Problem]:
    ranged = source.from_version is not None
    if source.incremental:
        for field in sorted({"version", "from_version", "to_version"} & set(source.given)):
            yield Problem(
                (*path, field),
                show(source.given[field]),
                "no version beside incremental, which follows the table by itself",
            )
        return
    if source.version is not None and (ranged or source.to_version is not None):
        yield Problem((*path, "version"), show(source.version), "either a version or from_version and to_version")
    elif source.to_version is not None and (source.from_version is None or source.from_version > source.to_version):
        yield Problem(
            (*path, "to_version"),
            show(source.to_version),
            "with from_version, and not before it; version reads the whole table",
        )


def _names_columns(text: str) -> bool:
    return text != INFER and _is_ddl(text)


def _is_ddl(text: str) -> bool:
    """Whether ``text`` has the shape of a schema; whether Spark knows the types is found when it is used."""
    return text == INFER or all(DDL_COLUMN.fullmatch(column) for column in _columns(QUOTED_NAME.sub("quoted", text)))


def _columns(ddl: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets: a type may have commas of its own."""
    start = depth = 0
    for place, character in enumerate(ddl):
        depth += (character in "(<") - (character in ")>")
        if character == "," and depth == 0:
            yield ddl[start:place]
            start = place + 1
    yield ddl[start:]


def check_reads(draft: Draft, name: str) -> Iterator[Problem]:
    """Whether what a stage declares that it reads can be looked at: names of variables, files and tables."""
    reads, path = draft.stages[name].reads, ("stages", name, "reads")
    for variable in reads.env:
        if not ENVIRONMENT_VARIABLE.fullmatch(variable):
            allowed = "the name of an environment variable: letters, digits and underscores, no digit first"
            yield Problem((*path, "env"), show(variable), allowed)
    for file in reads.files:
        if not file:
            yield Problem((*path, "files"), show(file), "a file, a folder or a glob")
    for table in reads.tables:
        yield from _check_table(draft, table, (*path, "tables"))
    yield from _check_files(draft, draft.stages[name].files, ("stages", name, "files"))


def _check_files(draft: Draft, files: Sequence[str], path: FieldPath) -> Iterator[Problem]:
    """Whether each of a stage's `files` is one that its function can ask for by name."""
    named: dict[str, str] = {}
    for file in files:
        other = named.setdefault(Path(file).name, file)
        if not file or Path(file).is_absolute() or ".." in Path(file).parts or re.search(r"[*?\[$:]", file):
            allowed = "the path of a file below the project, without `..`, a glob or a variable"
            yield Problem(path, show(file), f"{allowed}; others can be declared in `reads: {{files: ...}}`")
        elif (draft.project / file).is_dir():
            yield Problem(path, f"{show(file)}, which is a folder", "the path of a file")
        elif other != file:
            yield Problem(path, show(file), f"files of different names; {other} has this name, too")


def _check_table(draft: Draft, table: str, path: FieldPath) -> Iterator[Problem]:
    if is_name(table):
        publisher = next((name for name, stage in draft.stages.items() if stage.output.table == table), None)
        if publisher is not None:
            # Its version is another one after each wave, and nobody would wait for it.
            allowed = f"a table that no stage of this pipeline publishes; have the stage read {publisher} as an input"
            yield Problem(path, show(table), allowed)
    elif "/" not in table:
        yield Problem(path, show(table), TABLE_ALLOWED)


def is_name(table: str) -> bool:
    """Whether a table is called by its name in the lake, and not by its place."""
    return TABLE_NAME.fullmatch(table) is not None
