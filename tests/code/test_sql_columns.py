"""Which columns of a query have names that its words show."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.code.sql_columns import selected_columns
from stagehold.code.sql_job import statements
from stagehold.settings import PROJECT

QUERIES = {
    "SELECT sum(v) FROM t": ["sum(v)"],
    "SELECT a, b + c, d AS e, sum(v) total, count( * ) FROM t": ["b + c", "count( * )"],
    "WITH x AS (SELECT max(z) FROM y) SELECT DISTINCT x.*, min(z), z FROM x": ["min(z)"],
    "SELECT a FROM t UNION ALL SELECT sum(b) FROM u": [],  # the first query gives the names
    "SELECT CASE WHEN a THEN 1 END, CASE WHEN a THEN 1 END c FROM t": ["CASE WHEN a THEN 1 END"],
    "SELECT (SELECT max(x) FROM y), x IS NULL, NOT x FROM t": ["(SELECT max(x) FROM y)", "x IS NULL", "NOT x"],
    "SELECT cast(a AS int), cast(t.a AS decimal(18, 2)), cast(sum(a) AS int), a::int FROM t": ["cast(sum(a) AS int)"],
    "SELECT date(a), timestamp(t.a), string(sum(a)), IDENTIFIER(:name), IDENTIFIER('a') FROM t": ["string(sum(a))"],
    "SELECT sum(v) OVER (PARTITION BY x), sum(v) OVER w, sum(v) OVER w AS s FROM t WINDOW w AS (ORDER BY x)": [
        "sum(v) OVER (PARTITION BY x)",
        "sum(v) OVER w",
    ],
    "SELECT explode(a), window(ts, '1 day'), posexplode(b) AS (p, q) FROM t": [],
    "SELECT *, t.*, 1, -1, 'x', a['k'], b[0], m.x, date '2024-01-01', :interval, (a) FROM t": [],
    "SELECT 'sum(v)', \"a + b\", `a + b`.c -- sum(v)\n FROM t": [],
    "FROM t SELECT sum(v)": [],  # not followed
    "VALUES (1)": [],
}


@pytest.mark.parametrize(("query", "nameless"), QUERIES.items())
def test_a_column_is_nameless_if_spark_surely_calls_it_by_its_expression(query, nameless):
    assert [expression for name, expression, _ in selected_columns(query) if name is None] == nameless


def test_given_names_are_found_with_and_without_as():
    query = "SELECT a AS `sum(v)`, b `b c`, `d e`, f(x) g, h FROM t"
    assert [name for name, *_ in selected_columns(query)] == ["sum(v)", "b c", "d e", "g"]


def test_a_column_is_found_where_it_stands():
    text = "SELECT a,\n  sum(v)\nFROM t"
    ((_, _, start),) = selected_columns(text)
    assert text[start:].startswith("sum(v)")


def test_queries_that_run_have_no_column_without_a_name():
    files = [*Path(PROJECT, "examples").rglob("*.sql")]
    assert len(files) >= 22
    for file in files:
        last = statements(file.read_text(encoding="utf-8"))[-1]
        assert [expression for name, expression, _ in selected_columns(last.text) if name is None] == [], file
