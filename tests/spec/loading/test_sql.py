"""What a stage may say of its file of SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagehold.code.side_reads import side_reads
from stagehold.code.sql_job import shown_job
from stagehold.code.stage_code import calls_of, code_fingerprint
from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline, load_pipeline
from stagehold.spec.pipeline import Pipeline

SOURCE = {"kind": "parquet", "path": "x", "splits": 2}
GOOD = "SELECT n FROM source"


def build(folder: Path, text: str = GOOD, **fields: Any) -> Pipeline:
    (folder / "sql").mkdir()
    (folder / "sql" / "orders.sql").write_text(text)
    stage = {"sql": "sql/orders.sql", "source": SOURCE, **fields}
    return build_pipeline(
        {"pipeline": "small", "params": {"most": 3}, "stages": {"orders": stage}}, project=folder, suites=folder
    )


def test_a_file_of_sql_is_a_job(tmp_path):
    text = "-- All of them\nSELECT n, :interval, :params.most, :params.least FROM source;"
    stage = build(tmp_path, text, params={"least": 1}).stage("orders")
    assert (stage.job, stage.frames) == ("sql/orders.sql:query", ("source",))


def test_a_module_of_python_may_be_called_sql_and_a_file_of_sql_lie_at_the_top(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "sql.py").write_text("def orders(ctx, source):\n    return source\n")
    (tmp_path / "jobs.sql").write_text(GOOD)
    stages = {"python": {"job": "jobs.sql:orders", "source": SOURCE}, "query": {"sql": "jobs.sql", "source": SOURCE}}
    pipeline = build_pipeline({"pipeline": "small", "stages": stages}, project=tmp_path, suites=tmp_path)
    jobs = [pipeline.stage(name).job for name in stages]
    assert jobs == ["jobs.sql:orders", "./jobs.sql:query"]
    assert [shown_job(job) for job in jobs] == ["jobs.sql:orders", "jobs.sql"]
    assert [[*code_fingerprint(job, tmp_path).files] for job in jobs] == [["jobs/sql.py"], ["jobs.sql"]]


REFUSED = [
    pytest.param(GOOD, {"sql": "sql/order.sql"}, "'sql/order.sql', which is not there", "did you mean sql/orders.sql?"),
    pytest.param(GOOD, {"sql": "../x.sql"}, "'../x.sql'", "a file of SQL below the project, such as sql/clean.sql"),
    pytest.param(GOOD, {"sql": "/x.sql"}, "'/x.sql'", "a file of SQL below the project"),
    pytest.param(GOOD, {"sql": "SELECT 1"}, "'SELECT 1'", "a query itself may stand in a pipeline's file below"),
    pytest.param(GOOD, {"sql": "sql/orders"}, "'sql/orders'", "or a query, such as SELECT * FROM source"),
    pytest.param(GOOD, {"job": "work:orders"}, "beside the job work:orders", "one of job, sql, script"),
    pytest.param("-- nothing\n;", {}, "without a statement", "a query"),
    pytest.param(
        f"{GOOD};\nSET a = 1", {}, "SET at the end of sql/orders.sql, line 2", "a query as the last statement"
    ),
    pytest.param(f"INSERT INTO t\n{GOOD};\n{GOOD}", {}, "INSERT in sql/orders.sql, line 1", "`effects: allowed`"),
    pytest.param("SELECT :intervall FROM source", {}, ":intervall in", "did you mean interval?"),
    pytest.param("SELECT :params.x FROM source", {}, ":params.x in", "params.most"),
    pytest.param("SELECT ? FROM source", {}, "? in sql/orders.sql", "behind a colon: interval"),
    pytest.param("SELECT n FROM orders", {}, "which does not name source", "a query of source"),
    pytest.param("SELECT n,\n  sum(n)\nFROM source GROUP BY n", {}, "'sum(n)' in sql/orders.sql, line 2", "`AS sum_n`"),
    pytest.param("SELECT n AS `n of a` FROM source", {}, "'n of a' in sql/orders.sql, line 1", "`AS n_of_a`"),
    pytest.param(
        GOOD,
        {"state": {"totals": {"key": "n", "columns": {"n": "bigint"}}}},
        "beside `state`",
        "a function of Python",
    ),
]


@pytest.mark.parametrize(("text", "fields", "given", "allowed"), REFUSED)
def test_what_cannot_be_run_is_told_with_its_field_and_what_is_allowed(tmp_path, text, fields, given, allowed):
    with pytest.raises(InvalidSpec) as refused:
        build(tmp_path, text, **fields)
    said = str(refused.value)
    assert "stages.orders.sql" in said
    assert given in said
    assert allowed in said


def test_a_stage_that_may_write_may_do_so_in_sql(tmp_path):
    assert build(tmp_path, f"INSERT INTO t {GOOD};\n{GOOD}", effects="allowed").stage("orders").job


def test_a_stage_needs_a_job_or_sql(tmp_path):
    with pytest.raises(InvalidSpec, match=r"stages.orders.job.*module:function"):
        build(tmp_path, sql=None)


IN_A_FILE = """\
pipeline: small
params: {most: 3}
stages:
  orders:
    source: {kind: parquet, path: x, splits: 2}
    sql: |
      -- All that are small

      SELECT n
      FROM source WHERE n < :params.most
  sums: {inputs: {orders: gather}, sql: "SELECT sum(n) AS n FROM orders"}
"""


def load(folder: Path, text: str, below: str = "pipelines") -> Pipeline:
    (folder / below).mkdir(exist_ok=True)
    (folder / below / "small.yaml").write_text(text)
    return load_pipeline(folder / below / "small.yaml", project=folder, suites=folder)


def code(folder: Path, text: str) -> list[str | None]:
    pipeline = load(folder, text)
    return [code_fingerprint(stage.job, folder).value for stage in pipeline.stages]


def test_a_query_may_stand_in_the_file_of_its_pipeline(tmp_path):
    jobs = [stage.job for stage in load(tmp_path, IN_A_FILE).stages]
    assert jobs == ["pipelines/small.yaml/orders.sql:query", "pipelines/small.yaml/sums.sql:query"]
    assert shown_job(jobs[0]) == "the sql of orders in pipelines/small.yaml"
    found = code_fingerprint(jobs[0], tmp_path)
    assert found.files == ("pipelines/small.yaml",)
    assert found.value


def test_the_file_may_lie_at_the_top_of_the_project(tmp_path):
    job = load(tmp_path, IN_A_FILE, ".").stage("orders").job
    assert shown_job(job) == "the sql of orders in small.yaml"
    assert code_fingerprint(job, tmp_path).value


def test_white_space_comments_and_the_place_in_the_file_change_no_code_and_words_do(tmp_path):
    before = code(tmp_path, IN_A_FILE)
    moved = IN_A_FILE.replace("pipeline:", "# a comment\n\npipeline:").replace("    sql: |", "    sql: |2\n")
    assert code(tmp_path, moved.replace("SELECT n\n", "select n  -- as ever\n").replace("select", "SELECT")) == before
    assert [*map(str.__eq__, before, code(tmp_path, IN_A_FILE.replace("n < :", "n <= :")))] == [False, True]


@pytest.mark.parametrize(
    ("edit", "given"),
    [
        ("SELECT n => SELECT n, count(*)", "'count(*)' in pipelines/small.yaml, line 9"),
        ("-- All that are small => SET a = b; INSERT INTO t SELECT 1;", "INSERT in pipelines/small.yaml, line 7"),
        (":params.most => :params.mots", ":params.mots in pipelines/small.yaml"),
        ("FROM source => FROM sources", "pipelines/small.yaml, which does not name source"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_the_lines_of_the_pipeline(tmp_path, edit, given):
    old, new = edit.split(" => ")
    with pytest.raises(InvalidSpec) as refused:
        load(tmp_path, IN_A_FILE.replace(old, new))
    (problem,) = refused.value.problems
    assert (problem.line, problem.field) == (6, "stages.orders.sql")
    assert given in problem.given


def test_a_file_that_is_not_below_the_project_has_no_query(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "small.yaml").write_text(IN_A_FILE)
    with pytest.raises(InvalidSpec, match="may stand in a pipeline's file below"):
        load_pipeline(tmp_path / "small.yaml", project=tmp_path / "project", suites=tmp_path)


def test_calls_and_reads_of_a_query_are_found_in_the_lines_of_the_pipeline(tmp_path):
    text = IN_A_FILE.replace("SELECT n\n", "SELECT n, rand() AS r\n").replace("FROM source", "FROM source, marts.rates")
    job = load(tmp_path, text).stage("orders").job
    assert [call.place for call in calls_of(job, tmp_path) if call.name == "rand"] == ["pipelines/small.yaml:9"]
    assert [(read.name, read.place) for read in side_reads(job, tmp_path, ["source"])] == [
        ("marts.rates", "pipelines/small.yaml:10")
    ]


VARIABLE = "SELECT n FROM source -- of ${vars.none}\nWHERE country = '${vars.country}'"


def test_a_variable_in_a_query_is_refused_with_the_parameter_to_bind(tmp_path):
    with pytest.raises(InvalidSpec) as refused:
        build(tmp_path, VARIABLE)
    said = str(refused.value)
    assert said.count("stages.orders.sql") == 1  # that in a comment is none
    assert "${vars.country} in sql/orders.sql, line 2; allowed: :params.country, a value that is bound" in said
    assert "`params: {country: ${vars.country}}` of the stage" in said


def test_a_variable_in_a_query_of_the_pipelines_own_file_is_refused_with_its_line(tmp_path):
    lines = (
        "pipeline: small",
        "vars: {country: de}",
        "stages:",
        "  orders:",
        "    sql: |",
        "      SELECT n FROM source",
    )
    source = '    source: {kind: parquet, path: "x", splits: 2}'
    (tmp_path / "small.yaml").write_text("\n".join((*lines, "      WHERE c = ${vars.country}", source)))
    with pytest.raises(InvalidSpec, match=r"\$\{vars.country\} in small.yaml, line 7; allowed: :params.country"):
        load_pipeline(tmp_path / "small.yaml", project=tmp_path, suites=tmp_path)
