"""Declaring sources: what each kind has and needs, and where a mistake is reported."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from tests.spec.samples import VALID, Project

from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.source import OnChange, Reread, Source, SourceKind
from stagehold.spec.settings.split_forms import SplitSize

PARQUET = '{kind: parquet, path: "${lake}/raw/lineitem/*.parquet", splits: 4}'
CSV = (
    "{kind: csv, path: raw, splits: 4, schema: 'id int, tags array<struct<a:int,b:int>>, price decimal(10, 2), "
    "`odd, name` string'}"
)
JDBC = "{kind: jdbc, url: 'jdbc:derby:db', table: t, column: id, lower: 0, upper: 100, splits: 4}"
QUERY = "{kind: jdbc, url: 'jdbc:postgresql://host/db', query: select 1 as a, splits: 1}"
SHOP_API = """
class Orders:
    def splits(self, ctx): ...
    def read(self, ctx, split): ...

class Half:
    def splits(self, ctx): ...
    def read(self, split): ...
"""
XML = "{kind: spark, format: xml, options: {rowTag: order}, path: raw, splits: 2}"
PYTHON = "{kind: python, reader: 'shop_api:Orders', schema: n bigint, splits: 2}"
MONGO = "{kind: spark, format: mongodb, options: {database: shop}, splits: 1}"


def written(source: str) -> str:
    assert VALID.count(PARQUET) == 1
    return VALID.replace(PARQUET, source)


@pytest.fixture
def project(tmp_path) -> Project:
    made = Project(tmp_path)
    (tmp_path / "shop_api.py").write_text(SHOP_API)
    return made


def declared(project: Project, source: str) -> Source:
    pipeline = project.load(written(source))
    assert Pipeline.model_validate_json(pipeline.model_dump_json()) == pipeline
    stage = pipeline.stage("lineitem")
    assert stage.source is not None
    assert stage.partitions == (len(stage.source.listed) or stage.source.splits)
    return stage.source


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        (PARQUET, {"path": "${lake}/raw/lineitem/*.parquet", "splits": 4, "incremental": False}),
        ("{kind: parquet, splits: [[a, b], c/*]}", {"splits": (("a", "b"), ("c/*",)), "place": "a b c/*"}),
        (
            "{kind: parquet, path: a, splits: 2, incremental: true, on_change: ignore}",
            {"on_change": OnChange.IGNORE, "incremental": True},
        ),
        (CSV, {"header": False, "delimiter": ","}),
        (
            "{kind: csv, path: a, splits: 2, schema: infer, header: true, delimiter: ';', options: {multiLine: true, "
            "maxColumns: 3}}",
            {"options": {"multiLine": "true", "maxColumns": "3"}, "ddl": "infer"},
        ),
        (
            "{kind: csv, path: a, splits: 2, schema: infer, header: null, delimiter: , on_change: }",
            {"header": False, "delimiter": ",", "on_change": OnChange.ERROR},
        ),
        ("{kind: json, path: a, splits: 2, schema: 'a int NOT NULL'}", {"ddl": "a int NOT NULL"}),
        ("{kind: delta, path: a, splits: 2, version: 0}", {"version": 0}),
        (
            "{kind: delta, path: a, splits: 2, from_version: 3, to_version: 3, on_change: ignore}",
            {"from_version": 3, "to_version": 3, "skips_changes": True},
        ),
        (JDBC, {"lower": 0, "upper": 100, "place": "jdbc:derby:db t", "reread": Reread.INTERVAL}),
        (
            JDBC.replace("lower: 0, upper: 100", "lower: 2024-01-01, upper: '2024-02-01'"),
            {"lower": date(2024, 1, 1), "upper": date(2024, 2, 1)},
        ),
        (
            JDBC.replace("lower: 0, upper: 100", "lower: 2024-01-01T00:00:00, upper: '2024-01-01 12:00'"),
            {"upper": datetime(2024, 1, 1, 12)},
        ),
        (
            "{kind: jdbc, url: 'jdbc:derby:db', table: t, splits: [a < 1, a >= 1], reread: run, user_variable: U, "
            "password_variable: P}",
            {"splits": (("a < 1",), ("a >= 1",)), "reread": Reread.RUN},
        ),
        (QUERY, {"query": "select 1 as a"}),
        (PYTHON, {"reader": "shop_api:Orders", "place": "shop_api:Orders", "dealt": True, "names_interval": True}),
        ("{kind: orc, path: a, splits: 2, where: a = 1}", {"spark_format": "orc", "gives_rows": False}),
        ("{kind: avro, path: a, splits: 2}", {"ddl": None}),
        (XML, {"spark_format": "xml", "place": "raw", "gives_rows": False, "options": {"rowTag": "order"}}),
        (MONGO, {"place": "mongodb database=shop", "gives_rows": True, "dealt": False}),
        (MONGO.replace("splits: 1", "splits: [a < 1, a >= 1], reread: run"), {"splits": (("a < 1",), ("a >= 1",))}),
    ],
)
def test_a_source_is_read_as_declared(project, source, facts):
    found = declared(project, source)
    assert {name: getattr(found, name) for name in facts} == facts


def without(source: str, *fields: str) -> str:
    for field in fields:
        start = source.index(f", {field}: ")
        end = min(place for place in (source.find(", ", start + 2), source.find("}", start)) if place > 0)
        source = source[:start] + source[end:]
    return source


def added(source: str, text: str) -> str:
    return f"{source[:-1]}, {text}}}"


SPLITS = (
    "a whole number, 1 or more, {bytes: 128mb}, or a list with the files of each split; or {count: 16, assignment: "
)
MISTAKES = [
    (PARQUET.replace("parquet, path", "hudi, path"), "kind", f"'hudi' | {', '.join(SourceKind)}"),
    ("{path: a, splits: 2}", "kind", f"nothing | {', '.join(SourceKind)}"),
    ("{kind: orc, path: a, splits: 2, schema: a int}", "schema", "'schema' | with orc: path, splits"),
    ("{kind: avro, path: a, splits: 2, schema: infer}", "schema", "'infer' | columns with their types, as in"),
    (without(PYTHON, "reader"), "reader", "nothing | module:Class, such as jobs.shop_api:Orders"),
    (without(PYTHON, "schema"), "schema", "nothing | columns with their types, as in 'id bigint, name string', which"),
    (PYTHON.replace("splits: 2", "splits: [a, b]"), "splits", "a whole number, 1 or more, or {bytes: 128mb}"),
    (PYTHON.replace("shop_api:Orders", "shop_apy:Orders"), "reader", "a class of a module that is installed or"),
    (PYTHON.replace("Orders", "Order"), "reader", "'shop_api:Order' | a class of shop_api: "),
    (PYTHON.replace("Orders", "Half"), "reader", "'shop_api:Half' | a class with `def read(self, ctx, split)`"),
    (added(PYTHON, "incremental: true"), "incremental", "'incremental' | with python: reader, schema, splits"),
    (added(XML, "where: a = 1"), "where", "'where' | with spark: path, splits"),
    (added(XML, "reread: run"), "reread", "'run' | nothing beside a `path`"),
    (XML.replace("format: xml", "schema: a int"), "format", "nothing | a format of Spark, such as xml"),
    (XML.replace("xml,", "CSV,"), "format", "'CSV' | a format of Spark, such as xml or text; `kind: csv` reads it"),
    (XML.replace("rowTag", "PathGlobFilter"), "options", "'PathGlobFilter' | options of Spark's reader that no field"),
    (MONGO.replace("splits: 1", "splits: 4"), "splits", "4 | 1, or a list with the condition of each split"),
    (added(MONGO, "freshness: {warn_after: 1h}"), "freshness", "nothing without a `path`, whose files it is about"),
    (MONGO.replace("database", "api.accessKey"), "options.api.accessKey", "a secret | no secret in clear"),
    (MONGO.replace("shop", "'mongodb://me:word@host'"), "options.database", "a secret | no secret in clear; `secret_"),
    (
        added(MONGO, "secret_options: {connection.uri: shop}"),
        "secret_options.connection.uri",
        "'shop' | one of `secrets` of the pipeline: none",
    ),
    ("{kind: parquet, splits: 2}", "path", "nothing | a file, a folder or a glob"),
    ("{kind: delta, splits: 2}", "path", "nothing | a Delta table"),
    ("{kind: delta, path: a}", "splits", f"nothing | {SPLITS}"),
    ("{kind: parquet, path: a, splits: true}", "splits", f"True | {SPLITS}"),
    (
        "{kind: parquet, path: a, splits: {bytes: 128}}",
        "splits",
        "a mapping | a whole number with a unit, more than 0: 512kb",
    ),
    ("{kind: parquet, path: a, splits: {rows: 128}}", "splits", f"a mapping | {SPLITS}"),
    (
        without(JDBC, "splits").replace("}", ", splits: {bytes: 1gb}}"),
        "splits",
        "a size | a whole number, 1 or more, or a list of conditions",
    ),
    ("{kind: parquet, path: a, splits: {count: 8}}", "splits", f"a mapping | {SPLITS}"),
    ("{kind: parquet, path: a, splits: {assignment: dynamic}}", "splits", f"a mapping | {SPLITS}"),
    ("{kind: parquet, path: a, splits: {count: 8, assignment: greedy}}", "splits", f"a mapping | {SPLITS}"),
    ("{kind: parquet, path: a, splits: {count: 0, assignment: dynamic}}", "splits", f"a mapping | {SPLITS}"),
    ("{kind: parquet, path: a, splits: {count: [a], assignment: dynamic}}", "splits", f"a mapping | {SPLITS}"),
    ("{kind: parquet, path: a, splits: {files: [a], assignment: static}}", "path", "'a' | nothing beside a list in"),
    ("{kind: parquet, splits: []}", "splits", f"[] | {SPLITS}"),
    ("{kind: parquet, splits: [[], [a]]}", "splits", f"[[], ['a']] | {SPLITS}"),
    ("{kind: parquet, splits: [[1]]}", "splits", f"[[1]] | {SPLITS}"),
    ("{kind: parquet, splits: ['${home}/a']}", "splits.0", "${home} | ${lake}, ${interval}, or "),
    ("{kind: parquet, path: a, splits: [a]}", "path", "'a' | nothing beside a list in splits"),
    ("{kind: parquet, splits: [a], incremental: true}", "incremental", "True | nothing beside a list in splits"),
    ("{kind: delta, splits: [a]}", "splits", "a whole number, 1 or more"),
    (
        added(PARQUET, "schema: a int"),
        "schema",
        "'schema' | with parquet: path, splits, if_missing, incremental, on_change",
    ),
    (added(PARQUET, "header: true"), "header", "'header' | with parquet"),
    (added(PARQUET, "version: 1"), "version", "'version' | with parquet"),
    (added(PARQUET, "incremental: yes please"), "incremental", "'yes please' | true, false, or {by: path}"),
    (
        added(PARQUET, "on_change: ignore"),
        "on_change",
        "'ignore' | only for what was read before: with incremental or from_version",
    ),
    (
        added(PARQUET.replace("*.parquet", "${interval}/*"), "incremental: true"),
        "incremental",
        "True | {by: path}, or false: the path names the interval",
    ),
    (added(PARQUET, "on_change: warn, incremental: true"), "on_change", "'warn' | error, ignore"),
    ("{kind: csv, path: a, splits: 2}", "schema", "nothing | columns with their types"),
    ("{kind: json, path: a, splits: 2, schema: id}", "schema", "'id' | columns with their types"),
    ("{kind: json, path: a, splits: 2, schema: 'a int,'}", "schema", "'a int,' | columns with their types"),
    ("{kind: json, path: a, splits: 2, schema: a int, header: true}", "header", "'header' | with json: path, splits"),
    ("{kind: csv, path: a, splits: 2, schema: a int, delimiter: ''}", "delimiter", "'' | one character or more"),
    (
        "{kind: csv, path: a, splits: 2, schema: a int, options: {inferSchema: true}}",
        "options",
        "'inferSchema' | options of Spark's reader that no field",
    ),
    ("{kind: csv, path: a, splits: 2, schema: a int, options: [a]}", "options", "['a'] | a mapping"),
    ("{kind: delta, path: a, splits: 2, version: -1}", "version", "-1 | 0 or more"),
    (
        "{kind: delta, path: a, splits: 2, version: 1, from_version: 0}",
        "version",
        "1 | either a version or from_version and to_version",
    ),
    ("{kind: delta, path: a, splits: 2, to_version: 1}", "to_version", "1 | with from_version"),
    ("{kind: csv, path: a, splits: 2, schema: 'a int', where: a = 1}", "where", "'where' | with csv: path"),
    ("{kind: delta, path: a, splits: 2, where: a = 1 OR a = 2}", "where", "'a = 1 OR a = 2' | AND is expected where"),
    ("{kind: delta, path: a, splits: 2, where: 'a = :interval_star'}", "where", "a value is expected where ':interval"),
    (
        "{kind: delta, path: a, splits: 2, where: a = 1, incremental: true}",
        "incremental",
        "True | nothing beside where",
    ),
    ("{kind: delta, path: a, splits: 2, where: a = 1, from_version: 1}", "from_version", "1 | nothing beside where"),
    ("{kind: parquet, splits: [a, b], where: a = 1}", "where", "'a = 1' | nothing beside a list in splits"),
    ("{kind: parquet, path: a, splits: 2, if_missing: wait}", "if_missing", "'wait' | fail, empty"),
    (
        "{kind: delta, path: a, splits: 2, from_version: 2, to_version: 1}",
        "to_version",
        "1 | with from_version, and not before it",
    ),
    (
        "{kind: delta, path: a, splits: 2, version: 2, incremental: true}",
        "version",
        "2 | no version beside incremental",
    ),
    (without(JDBC, "url"), "url", "nothing | an address that begins with jdbc:"),
    (JDBC.replace("jdbc:derby:db", "postgresql://x"), "url", "'postgresql://x' | an address that begins with jdbc:"),
    (JDBC.replace("jdbc:derby:db", "jdbc:derby:db;user=me;Password=secret"), "url", "a password | no password"),
    (JDBC.replace("jdbc:derby:db", "jdbc:mysql://me:secret@host/db"), "url", "a password | no password"),
    (without(JDBC, "table"), "table", "nothing | either a table or a query"),
    (added(JDBC, "query: select 1"), "table", "both table and query | either a table or a query"),
    (without(JDBC, "column"), "column", "nothing | column, lower and upper"),
    (without(JDBC, "upper"), "upper", "nothing | column, lower and upper"),
    (
        without(JDBC, "upper", "lower").replace("splits: 4", "splits: [a, b]"),
        "column",
        "'id' | no range beside a list of conditions",
    ),
    (JDBC.replace("upper: 100", "upper: -1"), "lower", "0 | less than upper, -1"),
    (JDBC.replace("upper: 100", "upper: 2024-01-01"), "upper", "a bound of the same type as lower, 0"),
    (JDBC.replace("upper: 100", "upper: 1.5"), "upper", "1.5 | a whole number, a date or a time without a zone"),
    (JDBC.replace("upper: 100", "upper: soon"), "upper", "'soon' | a whole number, a date or a time"),
    (
        added(JDBC, "password_variable: $PASSWORD"),
        "password_variable",
        "'$PASSWORD' | the name of an environment variable",
    ),
    (added(JDBC, "password_secret: shop"), "password_secret", "'shop' | one of `secrets` of the pipeline: none"),
    (
        added(JDBC, "password_variable: P, password_secret: shop"),
        "password_secret",
        "'shop' | nothing beside password_variable",
    ),
    (added(JDBC, "incremental: true"), "incremental", "'incremental' | with jdbc: url, driver, table"),
    (added(JDBC, "path: a"), "path", "'path' | with jdbc"),
    (
        added(CSV, "options: {header: true}"),
        "options",
        "'header' | options of Spark's reader that no field of the source stands for; header is a field",
    ),
    (added(JDBC, "options: {Password: secret}"), "options", "'Password' | options of Spark's reader that no field"),
    (added(JDBC, "reread: always"), "reread", "'always' | interval, run"),
]


@pytest.mark.parametrize(
    ("source", "field", "text"), MISTAKES, ids=[f"{field}: {source}" for source, field, _ in MISTAKES]
)
def test_a_mistake_is_reported_once_at_its_place(project, source, field, text):
    problems = project.problems(written(source))
    assert [problem[:2] for problem in problems] == [(20, f"stages.lineitem.source.{field}")], problems
    assert text in problems[0][2]


def test_splits_by_size_leave_the_number_to_be_decided(project):
    pipeline = project.load(written("{kind: parquet, path: a, splits: {bytes: 128mb}}"))
    assert Pipeline.model_validate_json(pipeline.model_dump_json()) == pipeline
    stage = pipeline.stage("lineitem")
    assert stage.auto_partitions
    assert stage.source is not None
    assert stage.source.splits == SplitSize(bytes=134217728)
    small = project.load(written("{kind: parquet, path: a, splits: {bytes: 10b}}"))
    assert small.stage("lineitem").source == Source(kind="parquet", path="a", splits={"bytes": "10b"})
    assert Pipeline.model_validate_json(small.model_dump_json()) == small
    text = written("{kind: parquet, path: a, splits: {bytes: 128mb}}\n    partitions: 4")
    assert project.problems(text) == [
        (21, "stages.lineitem.partitions", "4 | nothing: source.splits says how large they are")
    ]
