"""SQL of an expectation is carried out as it is written, so it has to be one query and nothing else."""

from __future__ import annotations

import pytest
from tests.gates.test_judge import judged
from tests.lake.stagehand import Stagehand

from stagehold.errors import GateErrored
from stagehold.gates.suite import Expectation
from stagehold.lake.store.location import TableLocation

pytestmark = pytest.mark.spark

VIEW = "stagehold_own_sql"
MARK = f"CREATE OR REPLACE TEMPORARY VIEW {VIEW} AS SELECT 1"


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int")


def asking(query: str) -> Expectation:
    return Expectation("unexpected_rows_expectation", {"unexpected_rows_query": query}, line=7)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {batch} WHERE amount < 0",
        "select * from {batch} where amount < 0 -- the end\n",
        "SELECT * FROM {batch} WHERE amount < 0 ORDER BY name LIMIT 3;",
        "WITH bad AS (SELECT * FROM {batch} WHERE amount < 0) SELECT name, name FROM bad",
        "/* why */ (SELECT name FROM {batch} WHERE amount < 0) UNION ALL SELECT name FROM {batch} WHERE amount < 0",
        "SELECT ') ; DROP TABLE x; --' FROM {batch} WHERE amount < 0",
        "FROM {batch} |> WHERE amount < 0",
    ],
)
def test_one_query_is_judged(hand, query):
    found = judged(hand, asking(query)).verdicts
    assert [(one.partition, one.passed) for one in found] == [(4, False), (9, True), (11, True)]


@pytest.mark.parametrize(
    "query",
    [
        MARK,
        f"SELECT 1; {MARK}",
        f"SELECT 1) SELECT 1; {MARK}; SELECT (1",
        f"SELECT 1 FROM {{batch}}) SELECT * FROM asked; {MARK} --",
        f"-- SELECT 1\n{MARK}",
        "INSERT INTO x SELECT * FROM {batch}",
        "WITH a AS (SELECT 1) INSERT INTO x SELECT * FROM a",
        "FROM {batch} INSERT INTO x SELECT * INSERT INTO y SELECT *",
        "DROP TABLE x",
        "DELETE FROM x",
        "USE other",
        "SHOW TABLES",
        "CLEAR CACHE",
        "SET spark.sql.ansi.enabled=false",
        "RESET spark",
        "REFRESH x",
        "ADD JAR '/tmp/x.jar'",
        "EXPLAIN SELECT 1",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "CALL system.drop()",
        "BEGIN SELECT 1; END",
        "SELECT 1 /*",
        "SELECT * FROM {batch} WHERE )",
        "",
    ],
)
def test_sql_that_is_more_than_a_query_is_an_error_of_the_suite_and_not_carried_out(hand, query):
    with pytest.raises(GateErrored) as refused:
        judged(hand, asking(query))
    (problem,) = refused.value.problems
    assert problem.startswith("toy.yaml:7: unexpected_rows_expectation")
    assert "unexpected_rows_query is not one query (SELECT, or WITH and SELECT) that only reads: [" in problem
    assert not hand.spark.catalog.tableExists(VIEW)


def test_a_table_that_is_not_there_is_told_by_its_name(hand):
    with pytest.raises(GateErrored, match="TABLE_OR_VIEW_NOT_FOUND"):
        judged(hand, asking("SELECT * FROM {batch} JOIN nowhere USING (name)"))
