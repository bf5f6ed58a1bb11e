"""Texts of SQL are told apart by what they are for, and given the views that they name."""

from __future__ import annotations

import pytest

from stagehold.spark.calls.sql_text import Purpose, is_dynamic, names_in, statement, with_views

PURPOSES = {
    "SELECT 1": Purpose.QUERY,
    "  -- why\n select * from t": Purpose.QUERY,
    "/* why */ (SELECT 1)": Purpose.QUERY,
    "WITH a AS (SELECT 1) SELECT * FROM a": Purpose.QUERY,
    "FROM t SELECT id": Purpose.QUERY,
    "FROM t |> WHERE id > 1": Purpose.QUERY,
    "VALUES (1), (2)": Purpose.QUERY,
    "TABLE t": Purpose.QUERY,
    "SELECT delete, update, insert FROM t": Purpose.QUERY,
    "SELECT 'INSERT INTO t' AS text": Purpose.QUERY,
    "SELECT * FROM `insert into`": Purpose.QUERY,
    "SELECT * FROM t -- INSERT INTO other": Purpose.QUERY,
    "": Purpose.QUERY,
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": Purpose.WRITES,
    "FROM t INSERT OVERWRITE u SELECT id": Purpose.WRITES,
    "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM a)": Purpose.WRITES,
    "WITH a AS (SELECT 1) UPDATE t SET id = 1": Purpose.WRITES,
    "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE": Purpose.WRITES,
    "SHOW TABLES": Purpose.ASKS,
    "DESCRIBE t": Purpose.ASKS,
    "desc extended t": Purpose.ASKS,
    "EXPLAIN SELECT 1": Purpose.ASKS,
    "SET": Purpose.ASKS,
    "SET -v": Purpose.ASKS,
    "SET spark.sql.ansi.enabled": Purpose.ASKS,
    "SET spark.sql.ansi.enabled = false": Purpose.SETS,
    "set spark.sql.ansi.enabled=false": Purpose.SETS,
    "SET TIME ZONE 'Asia/Tokyo'": Purpose.SETS,
    "RESET": Purpose.SETS,
    "USE other": Purpose.SETS,
    "DECLARE VARIABLE x INT DEFAULT 1": Purpose.SETS,
    "SET VAR x = 2": Purpose.SETS,
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1": Purpose.SETS,
    "CREATE TEMP VIEW v AS SELECT 1": Purpose.NAMES,
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1": Purpose.NAMES,
    "CREATE OR REPLACE GLOBAL TEMP VIEW v AS SELECT 1": Purpose.NAMES,
    "DROP VIEW IF EXISTS v": Purpose.NAMES,
    "CACHE TABLE v": Purpose.KEEPS,
    "UNCACHE TABLE v": Purpose.KEEPS,
    "CLEAR CACHE": Purpose.KEEPS,
    "REFRESH TABLE v": Purpose.KEEPS,
    "CREATE TABLE t AS SELECT 1": Purpose.WRITES,
    "CREATE VIEW v AS SELECT 1": Purpose.WRITES,
    "CREATE FUNCTION f AS 'x'": Purpose.WRITES,
    "DROP TABLE t": Purpose.WRITES,
    "INSERT INTO t VALUES (1)": Purpose.WRITES,
    "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE": Purpose.WRITES,
    "OPTIMIZE t": Purpose.WRITES,
    "VACUUM t": Purpose.WRITES,
    "EXECUTE IMMEDIATE 'SELECT 1'": Purpose.WRITES,
    "CALL system.p()": Purpose.WRITES,
}


@pytest.mark.parametrize("text", PURPOSES)
def test_a_text_is_told_by_its_purpose(text):
    assert statement(text).purpose is PURPOSES[text]


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
