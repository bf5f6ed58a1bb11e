from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from stagehold.code.code_problems import code_problems
from stagehold.code.side_reads import side_reads
from stagehold.code.sql_job import bound_values, job_of, names_of_markers, shown_job, statements
from stagehold.code.sql_text import selects_row_by_row, with_arguments, with_views
from stagehold.code.stage_code import calls_of, code_fingerprint, looks_at_interval
from stagehold.errors import InvalidInterval
from stagehold.model.context import StageContext

FILE = "sql/clean.sql"
QUERY = "SELECT id, upper(name) AS name FROM orders WHERE id > 3"


def write(project: Path, text: str) -> Path:
    (project / "sql").mkdir(exist_ok=True)
    (project / FILE).write_text(text)
    return project


def key(project: Path, text: str) -> str:
    found = code_fingerprint(job_of(FILE), write(project, text))
    assert found.value is not None, found.reason
    assert FILE in found.files
    return found.value


@pytest.mark.parametrize(
    "other",
    [
        "-- Orders of ours\nSELECT id,\n   upper( name ) AS name\nFROM orders /* all */ WHERE id > 3",
        f"{QUERY}\n;\n-- the end\n;",
    ],
)
def test_white_space_and_comments_are_no_other_code(tmp_path, other):
    assert key(tmp_path, QUERY) == key(tmp_path, other)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT id, lower(name) AS name FROM orders WHERE id > 3",
        "SELECT id, upper(name) AS name FROM orders WHERE id > 30",
        "SELECT id, upper(name) AS `name ` FROM orders WHERE id > 3",
        "SELECT id, upper(name) AS name FROM orders WHERE id > 3 AND name <> ' '",
    ],
)
def test_other_words_are_other_code(tmp_path, other):
    assert key(tmp_path, QUERY) != key(tmp_path, other)


def test_people_are_told_the_file_and_not_the_function_that_is_made_of_it():
    assert (shown_job(job_of(FILE)), shown_job("jobs.work:query")) == (FILE, "jobs.work:query")


def test_texts_in_quotes_count_as_they_are(tmp_path):
    assert key(tmp_path, "SELECT 'a  b' FROM orders") != key(tmp_path, "SELECT 'a b' FROM orders")


def test_whether_it_looks_at_its_interval(tmp_path):
    assert not looks_at_interval(job_of(FILE), write(tmp_path, QUERY))
    assert looks_at_interval(job_of(FILE), write(tmp_path, "SELECT :interval AS day FROM orders"))
    assert looks_at_interval(job_of(FILE), write(tmp_path, "SELECT * FROM orders WHERE t < :logical_date"))


def test_calls_have_their_lines_and_a_comment_answers_for_one(tmp_path):
    write(tmp_path, "SELECT id,\n  rand() AS r, -- stagehold: deterministic\n  uuid() AS u\nFROM orders")
    found = {call.name: (call.place, call.silenced) for call in calls_of(job_of(FILE), tmp_path)}
    assert found["rand"] == (f"{FILE}:2", True)
    assert found["uuid"] == (f"{FILE}:3", False)


def test_tables_beside_its_frames_are_read_aside(tmp_path):
    write(tmp_path, "SELECT *\nFROM orders\nJOIN marts.rates USING (day)\nJOIN parquet.`/x/y` USING (day)")
    found = [(read.name, read.place) for read in side_reads(job_of(FILE), tmp_path, ("orders",))]
    assert found == [("marts.rates", f"{FILE}:3"), ("/x/y", f"{FILE}:4")]


def test_nothing_of_it_stops_when_it_is_loaded(tmp_path):
    assert code_problems(job_of(FILE), write(tmp_path, QUERY)) == ()


def test_statements_end_at_semicolons_that_are_not_in_texts():
    text = "-- first\nCREATE TEMP VIEW v AS SELECT ';' AS a;\n\n;SELECT * /* ; */\nFROM v -- end;\n;"
    found = statements(text)
    assert [(each.text, each.line) for each in found] == [
        ("CREATE TEMP VIEW v AS SELECT ';' AS a", 2),
        ("SELECT * /* ; */\nFROM v", 4),
    ]
    assert found[1].in_its_line.splitlines()[3] == "SELECT * /* ; */"


def test_markers_are_bound_by_their_whole_names():
    text = (
        "SELECT :interval, :params.limit, ':params.limit', a::int, :params.limit.x, s:params FROM t "
        "WHERE d < :logical_date"
    )
    assert names_of_markers(text) == ("interval", "params.limit", "logical_date")
    given = {"interval": "2024-01-02", "params.limit": 3, "logical_date": datetime(2024, 1, 2)}
    assert with_arguments(text, given) == (
        "SELECT '2024-01-02', (3), ':params.limit', a::int, (3).x, s:params FROM t "
        "WHERE d < TIMESTAMP '2024-01-02 00:00:00'"
    )


ROW_BY_ROW = [
    "SELECT * FROM t",
    "select a, b + 1 as c from T as x where x.a > 3 and b in (1, 2)",
    "SELECT explode(items) FROM t x",
    "SELECT a -- FROM u\nFROM t WHERE a = 'GROUP BY';",
]
NOT_ROW_BY_ROW = [
    "SELECT DISTINCT a FROM t",
    "SELECT a FROM t GROUP BY a",
    "SELECT a FROM t WHERE a > 1 GROUP BY a",
    "SELECT a FROM t LIMIT 3",
    "SELECT a FROM t x ORDER BY a",
    "SELECT a FROM t, u",
    "SELECT a FROM t JOIN u USING (a)",
    "SELECT a FROM t WHERE a = (SELECT max(a) FROM t)",
    "SELECT sum(a) OVER (ORDER BY b) FROM t",
    "SELECT a FROM t UNION ALL SELECT a FROM t",
    "SELECT a FROM u",
    "SELECT a FROM t.u",
    "FROM t |> AGGREGATE sum(a)",
    "SELECT a FROM t |> LIMIT 3",
    "SELECT a FROM t TABLESAMPLE (10 ROWS)",
    "SELECT a FROM t x TABLESAMPLE (10 ROWS)",
    "SELECT TRANSFORM (a) USING 'cat' FROM t",
    "SELECT a FROM t LATERAL VIEW explode(b) x AS y",
    "SELECT extract(DAY FROM a) FROM t",
    "WITH u AS (SELECT * FROM t LIMIT 1) SELECT * FROM u",
    "VALUES (1)",
    "SELECT 1",
    "",
]


@pytest.mark.parametrize("text", ROW_BY_ROW)
def test_a_query_of_each_row_by_itself_is_seen_to_be_one(text):
    assert selects_row_by_row(text, "t")
    assert selects_row_by_row(with_views(text, {"t": "given_to_spark"}), "given_to_spark")


@pytest.mark.parametrize("text", NOT_ROW_BY_ROW)
def test_any_other_query_is_not(text):
    assert not selects_row_by_row(text, "t")
    assert not selects_row_by_row(with_views(text, {"t": "given_to_spark"}) if " t" in text else text, "given_to_spark")


def test_a_time_that_the_interval_has_not_is_refused_and_other_times_are_bound():
    context = StageContext("p", "s", "whole", None, (0,), 0, {"least": 3})
    values = bound_values(context, "SELECT :params.least")
    assert (values["params.least"], values["interval"]) == (3, "whole")
    with pytest.raises(InvalidInterval, match="has no :interval_end, which the query asks for"):
        bound_values(context, "SELECT * FROM t WHERE day < :interval_end")
    moment = datetime(2024, 1, 2)
    assert bound_values(replace(context, logical_date=moment), "SELECT :interval_start")["interval_start"] == moment
