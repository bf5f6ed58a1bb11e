"""Stages that are files of SQL: as exact as functions, in one wave or many, and killed or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject, values_of

from stagehold.errors import NotDeterministic, StageFailed, UndeclaredRead
from stagehold.model.context import StageContext
from stagehold.run.functions.stage_call import StageCaller
from stagehold.spec.loading.loader import load_pipeline

pytestmark = pytest.mark.spark

QUERIES = {
    "odd": "-- Row by row: braces and quotes of its own\nSELECT number, '{x}' AS text, :params.most AS most,\n"
    "  :interval AS day\nFROM source s\nWHERE s.number % 2 = 1 AND number < :params.most",
    "newest": "SELECT number, count(*) OVER () AS n FROM odd",
    "counted": "SELECT number % 10 AS digit, count(*) AS number, max(text) AS text\nFROM odd AS o\nGROUP BY 1",
    "joined": "WITH d AS (SELECT digit, number AS n FROM counted) SELECT o.number, n\n"
    "FROM Odd o JOIN d ON o.number % 10 = d.digit",
    "several": "CREATE OR REPLACE TEMP VIEW small AS SELECT * FROM odd WHERE number < 50;\n"
    "CREATE TEMP VIEW top AS SELECT max(number) AS number FROM small;\n"
    "SET spark.sql.ansi.enabled = false;\n\n"
    "SELECT number, CAST('x' AS INT) AS none, (SELECT number FROM top) AS most FROM small;",
}
STAGES: Mapping[str, Any] = {
    "odd": {"source": NUMBERS},
    "newest": {"inputs": {"odd": "forward"}},
    "counted": {"inputs": {"odd": {"exchange": "keyed", "key": "number"}}, "partitions": 1, "key": "digit"},
    "joined": {"inputs": {"odd": "gather", "counted": "gather"}},
    "several": {"inputs": {"odd": "forward"}},
}


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "queries"
    (folder / "sql").mkdir(parents=True)
    for name, text in QUERIES.items():
        (folder / "sql" / f"{name}.sql").write_text(text)
    return SmallProject.make(folder, spark_remote, "")


def stages(*names: str, **others: Any) -> dict[str, Any]:
    return {name: {"sql": f"sql/{name}.sql", **STAGES[name], **others.get(name, {})} for name in names}


def made(project: SmallProject, name: str, *names: str, **facts: Any) -> dict[int, list[int]]:
    return project.made(name, stages(*names), params={"most": 90}, **facts)


ODD = [number for number in range(FILES * ROWS) if number % 2 and number < 90]


@pytest.mark.parametrize("wave", ["1ms", "1h"])
def test_each_partition_has_what_the_query_makes_of_its_own_rows(project, wave):
    of_partition = {each: [number for number in ODD if number // ROWS == each] for each in range(FILES)}
    assert made(project, "rows", "odd", wave=wave) == of_partition
    assert made(project, "windows", "odd", "newest", wave=wave) == of_partition
    small = {each: [number for number in numbers if number < 50] for each, numbers in of_partition.items()}
    assert made(project, "several", "odd", "several", wave=wave) == small
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT count(*) FROM unnest(?) t(n) GROUP BY n % 10 ORDER BY 1", [ODD]).fetchall()
    assert made(project, "joined", "odd", "counted", wave=wave) == {0: [count for (count,) in rows]}
    assert made(project, "joined", "odd", "counted", "joined", wave=wave) == {0: ODD}


def test_a_query_of_each_row_is_computed_for_all_partitions_at_once(project, capsys):
    made(project, "rows", "odd", "newest", wave="1h")
    said = capsys.readouterr().out
    assert "called for each partition" not in said


def test_values_are_bound_and_other_ones_are_computed_again(project):
    for most in (10, 20):
        pipeline = project.pipeline("bound", stages("odd", odd={"params": {"most": most}}))
        assert count_of(project.run(pipeline, f"most {most}")) == most / 2


def test_another_query_is_computed_again_and_another_comment_is_not(project, capsys):
    pipeline, file = (
        project.pipeline("edited", stages("odd"), params={"most": 90}),
        Path(project.settings.project, "sql/odd.sql"),
    )
    project.run(pipeline, "first")
    capsys.readouterr()
    file.write_text(f"/* as it was */\n{QUERIES['odd']}\n;")
    project.run(pipeline, "second")
    assert f"odd: reuse {FILES} of {FILES} partitions" in capsys.readouterr().out
    file.write_text(QUERIES["odd"].replace("% 2 = 1", "% 2 = 0"))
    assert count_of(project.run(pipeline, "third")) == 45
    assert "the code of sql/odd.sql changed" in capsys.readouterr().out


def test_a_file_that_is_edited_while_an_attempt_goes_on_is_read_by_the_next_one(project, spark):
    stage = (pipeline := project.pipeline("edited_late", stages("odd"), params={"most": 90})).stage("odd")
    source = spark.range(4).withColumnRenamed("id", "number")
    context = StageContext("p", "odd", "i", None, (0,), 0, {"most": 3})
    caller = StageCaller(spark, pipeline, project.settings.project)
    before = caller.function(stage)
    Path(project.settings.project, "sql/odd.sql").write_text("SELECT number FROM source")
    assert caller.function(stage)(context, source=source).count() == before(context, source=source).count() == 1
    assert StageCaller(spark, pipeline, project.settings.project).function(stage)(context, source=source).count() == 4


def count_of(records: Mapping[str, Any]) -> int:
    return sum(len(values_of(record, "number")) for record in records["odd"])


WRONG = [
    ("SELECT number,\n  nmuber FROM source", StageFailed, r"sql/odd.sql:2.*nmuber|nmuber.*sql/odd.sql:2"),
    ("SELECT number\nFROM source\nWHERE WHERE", StageFailed, r"sql/odd.sql:3"),
    ("SELECT number FROM source JOIN marts.rates USING (number)", UndeclaredRead, r"marts.rates \(sql/odd.sql:1\)"),
    ("SELECT number,\n rand() AS r FROM source", NotDeterministic, r"sql/odd.sql:2"),
]


@pytest.mark.parametrize(("text", "error", "told"), WRONG)
def test_what_is_wrong_is_told_with_its_line(project, text, error, told):
    Path(project.settings.project, "sql/odd.sql").write_text(text)
    pipeline = project.pipeline("wrong", stages("odd"), determinism="error", reads="strict")
    with pytest.raises(error) as failed:
        project.run(pipeline, "first")
    assert re.search(told, str(failed.value).replace("\n", " ")), str(failed.value)


IN_A_FILE = """\
pipeline: inline
wave: 100ms
stages:
  odd:
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 4}
    output: {type: blocking}
    sql: |
      SELECT number
      FROM source WHERE number % 2 = 1
  halves:
    inputs: {odd: forward}
    sql: |
      -- of odd numbers
      CREATE TEMP VIEW few AS SELECT * FROM odd WHERE number < 50;

      SELECT number
      FROM few
"""


def run_text(project: SmallProject, text: str, run_id: str) -> dict[str, list[tuple[str, int]]]:
    """Which run made how many rows of each partition."""
    file = Path(project.settings.project) / "inline.yaml"
    file.write_text(text)
    pipeline = load_pipeline(file, project=file.parent, suites=file.parent)
    found = project.run(pipeline, run_id)
    return {stage: [(record.run_id, record.rows) for record in records] for stage, records in found.items()}


def test_a_query_in_the_file_of_its_pipeline_is_computed_and_reused_as_one_in_a_file(project):
    odd, halves = [("first", 12), ("first", 13)] * 2, [("first", 12), ("first", 13), ("first", 0), ("first", 0)]
    assert run_text(project, IN_A_FILE, "first") == {"odd": odd, "halves": halves}
    moved = IN_A_FILE.replace("SELECT number\n      FROM source", "SELECT  number -- n\n\n      FROM source")
    assert run_text(project, f"# moved\n{moved}", "second") == {"odd": odd, "halves": halves}
    found = run_text(project, IN_A_FILE.replace("< 50", "< 20"), "third")
    assert found == {"odd": odd, "halves": [("third", rows) for rows in (10, 0, 0, 0)]}


def test_what_spark_says_of_it_is_told_with_the_line_of_the_pipeline(project):
    text = IN_A_FILE.replace("SELECT number\n      FROM few", "SELECT nmber\n      FROM few")
    with pytest.raises(StageFailed, match="nmber") as failed:
        run_text(project, text, "first")
    assert failed.value.place == f"inline.yaml:{text.splitlines().index('      SELECT nmber') + 1}"
