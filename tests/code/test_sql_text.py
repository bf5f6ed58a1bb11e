"""Texts of SQL are told apart by what they are for, and given the views that they name."""

from __future__ import annotations

import pytest

from stagehold.code.sql_text import Intent, is_dynamic, names_in, statement, with_views

PURPOSES = {
    "SELECT 1": Intent.QUERY,
    "  -- why\n select * from t": Intent.QUERY,
    "/* why */ (SELECT 1)": Intent.QUERY,
    "WITH a AS (SELECT 1) SELECT * FROM a": Intent.QUERY,
    "FROM t SELECT id": Intent.QUERY,
    "FROM t |> WHERE id > 1": Intent.QUERY,
    "VALUES (1), (2)": Intent.QUERY,
    "TABLE t": Intent.QUERY,
    "SELECT delete, update, insert FROM t": Intent.QUERY,
    "SELECT 'INSERT INTO t' AS text": Intent.QUERY,
    "SELECT * FROM `insert into`": Intent.QUERY,
    "SELECT * FROM t -- INSERT INTO other": Intent.QUERY,
    "": Intent.QUERY,
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": Intent.WRITES,
    "FROM t INSERT OVERWRITE u SELECT id": Intent.WRITES,
    "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM a)": Intent.WRITES,
    "WITH a AS (SELECT 1) UPDATE t SET id = 1": Intent.WRITES,
    "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE": Intent.WRITES,
    "SHOW TABLES": Intent.ASKS,
    "DESCRIBE t": Intent.ASKS,
    "desc extended t": Intent.ASKS,
    "EXPLAIN SELECT 1": Intent.ASKS,
    "SET": Intent.ASKS,
    "SET -v": Intent.ASKS,
    "SET spark.sql.ansi.enabled": Intent.ASKS,
    "SET spark.sql.ansi.enabled = false": Intent.SETS,
    "set spark.sql.ansi.enabled=false": Intent.SETS,
    "SET TIME ZONE 'Asia/Tokyo'": Intent.SETS,
    "RESET": Intent.SETS,
    "USE other": Intent.SETS,
    "DECLARE VARIABLE x INT DEFAULT 1": Intent.SETS,
    "SET VAR x = 2": Intent.SETS,
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1": Intent.SETS,
    "CREATE TEMP VIEW v AS SELECT 1": Intent.NAMES,
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1": Intent.NAMES,
    "CREATE OR REPLACE GLOBAL TEMP VIEW v AS SELECT 1": Intent.NAMES,
    "DROP VIEW IF EXISTS v": Intent.NAMES,
    "CACHE TABLE v": Intent.KEEPS,
    "UNCACHE TABLE v": Intent.KEEPS,
    "CLEAR CACHE": Intent.KEEPS,
    "REFRESH TABLE v": Intent.KEEPS,
    "CREATE TABLE t AS SELECT 1": Intent.WRITES,
    "CREATE VIEW v AS SELECT 1": Intent.WRITES,
    "CREATE FUNCTION f AS 'x'": Intent.WRITES,
    "DROP TABLE t": Intent.WRITES,
    "INSERT INTO t VALUES (1)": Intent.WRITES,
    "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE": Intent.WRITES,
    "OPTIMIZE t": Intent.WRITES,
    "VACUUM t": Intent.WRITES,
    "EXECUTE IMMEDIATE 'SELECT 1'": Intent.WRITES,
    "CALL system.p()": Intent.WRITES,
}


@pytest.mark.parametrize("text", PURPOSES)
def test_a_text_is_told_by_its_purpose(text):
    assert statement(text).intent is PURPOSES[text]


# text, name, columns, query, whether it replaces
VIEWS = [
    ("CREATE TEMP VIEW v AS SELECT 1", "v", (), " SELECT 1", False),
    ("create or replace temporary view `My View` as select 1", "my view", (), " select 1", True),
    ("CREATE GLOBAL TEMP VIEW v AS (SELECT 1)", "global_temp.v", (), " (SELECT 1)", False),
    (
        "CREATE TEMP VIEW v (a COMMENT 'x, AS', `b c`) COMMENT 'y' AS SELECT 1, 2",
        "v",
        ("a", "b c"),
        " SELECT 1, 2",
        False,
    ),
    ("CREATE TEMP VIEW v USING parquet OPTIONS (path '/x')", "v", (), None, False),
]


@pytest.mark.parametrize(("text", "name", "columns", "query", "replaces"), VIEWS)
def test_the_parts_of_a_view(text, name, columns, query, replaces):
    found = statement(text)
    assert (found.name, found.columns, found.body, found.replaces) == (name, columns, query, replaces)


def test_what_is_dropped_has_its_name():
    dropped = statement("DROP VIEW IF EXISTS V")
    assert (dropped.name, dropped.drops) == ("v", True)
    assert statement("DECLARE OR REPLACE VARIABLE x INT").name == "x"
    assert statement("CREATE OR REPLACE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x").name == "f"


def test_names_in_a_text_are_those_outside_of_literals_and_comments():
    assert {"t", "my view", "id"} <= names_in("SELECT id FROM T JOIN `My View` -- u\n WHERE x = 'v'")
    assert not {"u", "v"} & names_in("SELECT id FROM T -- u\n WHERE x = 'v' /* u */")
    assert "global_temp.t" in names_in("SELECT * FROM Global_Temp.`T`")


# text, views, what is sent
BOUND = [
    ("SELECT * FROM t", {"t": "v1"}, "WITH `t` AS (SELECT * FROM v1) (SELECT * FROM t\n)"),
    ("SELECT * FROM t -- all;", {"t": "v1"}, "WITH `t` AS (SELECT * FROM v1) (SELECT * FROM t -- all;\n)"),
    (
        "SELECT * FROM `My T`, MORE",
        {"my t": "v1", "more": "v2"},
        "WITH `My T` AS (SELECT * FROM v1), `MORE` AS (SELECT * FROM v2) (SELECT * FROM `My T`, MORE\n)",
    ),
    ("SELECT * FROM t ; ", {"t": "v1"}, "WITH `t` AS (SELECT * FROM v1) (SELECT * FROM t \n)"),
    (
        "SELECT t.id FROM global_temp.t",
        {"global_temp.t": "v1"},
        "WITH `t` AS (SELECT * FROM v1) (SELECT t.id FROM `t`\n)",
    ),
    (
        "SELECT * FROM global_temp.t JOIN t",
        {"global_temp.t": "v1", "t": "v2"},
        "WITH `global_temp_t` AS (SELECT * FROM v1), `t` AS (SELECT * FROM v2) "
        "(SELECT * FROM `global_temp_t` JOIN t\n)",
    ),
]


@pytest.mark.parametrize(("text", "views", "sent"), BOUND)
def test_a_query_is_given_the_views_that_it_names(text, views, sent):
    assert with_views(text, views) == sent


def test_a_name_may_come_from_elsewhere():
    assert is_dynamic("SELECT * FROM IDENTIFIER(:name)")
    assert not is_dynamic("SELECT 'identifier'")
