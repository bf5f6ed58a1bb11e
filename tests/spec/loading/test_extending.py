"""What a stage that extends another one, or a template, has, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.code.project import read_sql
from stagehold.code.stage_code import code_fingerprint
from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import load_pipeline
from stagehold.spec.pipeline import Exchange, Pipeline

FILE = """\
pipeline: sales
templates:
  lake:
    source: {kind: parquet, path: "${lake}/orders/*.parquet", splits: 4}
    params: {least: 1, country: de}
    spark: {"spark.sql.ansi.enabled": false}
  eager: {extends: lake, determinism: error, gate: none}
stages:
  orders: {extends: eager, job: "work:orders", gate: checked, uid: old_orders}
  returns:
    extends: orders
    source: {path: "${lake}/returns/*.parquet"}
    params: {least: 2}
  totals: {job: "work:totals", inputs: {orders: {exchange: keyed, key: id}}, partitions: 2}
  by_day: {extends: totals, inputs: {returns: forward}, partitions: 4}
  asked:
    extends: totals
    sql: |
      SELECT id
      FROM orders
  asked_too: {extends: asked, partitions: 3}
"""
JOBS = "from stagehold import stage\n@stage\ndef orders(ctx, source): ...\n@stage\ndef totals(ctx, **frames): ...\n"


@pytest.fixture
def load(tmp_path: Path):
    (tmp_path / "work.py").write_text(JOBS)
    for name in ("checked", "none"):
        (tmp_path / f"{name}.yaml").write_text(f"suite: {name}\nexpectations: []\n")
    (tmp_path / "sales").mkdir()

    def load(*edits: tuple[str, str]) -> Pipeline:
        text = FILE
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "sales" / "sales.yaml").write_text(text)
        return load_pipeline(tmp_path / "sales" / "sales.yaml", project=tmp_path, suites=tmp_path)

    return load


def test_a_stage_has_what_it_extends_but_for_what_it_says_itself(load):
    stages = {stage.name: stage for stage in load().stages}
    orders, returns = stages["orders"], stages["returns"]
    assert (orders.source.path, orders.source.splits) == ("${lake}/orders/*.parquet", 4)
    assert (orders.determinism, orders.gate, orders.id) == ("error", "checked", "old_orders")
    assert (returns.job, returns.id, returns.gate) == ("work:orders", "returns", "checked")
    assert (returns.source.path, returns.source.splits) == ("${lake}/returns/*.parquet", 4)
    assert returns.params == {"least": 2, "country": "de"}
    assert returns.spark == {"spark.sql.ansi.enabled": "false"}


def test_inputs_and_jobs_are_taken_over_whole(load):
    by_day = load().stage("by_day")
    assert [(edge.stage, edge.exchange) for edge in by_day.inputs] == [("returns", Exchange.FORWARD)]
    with pytest.raises(InvalidSpec, match="one of job, sql, script"):
        load(("    sql: |\n", "    job: work:totals\n    sql: |\n"))


def test_a_query_that_is_taken_over_is_the_same_code_with_the_lines_of_where_it_is_written(load, tmp_path):
    asked, too = (load().stage(name) for name in ("asked", "asked_too"))
    texts = [read_sql(stage.job.removesuffix(":query"), tmp_path) for stage in (asked, too)]
    assert texts[0] == texts[1]
    assert texts[0].lstrip("\n") == "SELECT id\nFROM orders\n"
    assert texts[0].count("\n", 0, texts[0].index("SELECT")) == FILE[: FILE.index("SELECT")].count("\n")
    assert [code_fingerprint(stage.job, tmp_path).value is not None for stage in (asked, too)] == [True, True]
    assert too.partitions == 3


MISTAKES = [
    # an edit, the line, its field, what is said
    (("extends: eager,", "extends: eagr,"), 9, "stages.orders.extends", "'eagr'; allowed: a stage of this file"),
    (("extends: eager,", "extends: eagr,"), 9, "stages.orders.extends", "(did you mean eager?)"),
    (("extends: eager,", "extends: [eager],"), 9, "stages.orders.extends", "['eager']"),
    (("extends: eager,", "extends: returns,"), 11, "stages.returns.extends", "returns extends orders extends returns"),
    (("  lake:\n", "  lake:\n    extends: lake\n"), 4, "templates.lake.extends", "no circle: lake extends lake"),
    (("  lake:\n", "  totals: {}\n  lake:\n"), 3, "templates.totals", "a name that no stage has"),
    (("splits: 4", "splits: none"), 4, "templates.lake.source.splits", "'none'; allowed: a whole number"),
    (("splits: 4", "splitz: 4"), 4, "templates.lake.source.splitz", "did you mean splits?"),
    (("determinism: error", "determinism: 7"), 7, "templates.eager.determinism", "7; allowed:"),
    (
        ('path: "${lake}/orders/*.parquet"', 'path: "${home}/x"'),
        *(4, "stages.orders.source.path", "(written in templates.lake, which orders extends on line 9)"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "line", "field", "text"), MISTAKES)
def test_a_mistake_is_told_where_it_is_written_and_with_who_takes_it_over(load, edit, line, field, text):
    with pytest.raises(InvalidSpec) as refused:
        load(edit)
    found = [problem for problem in refused.value.problems if problem.field == field]
    assert [problem.line for problem in found][:1] == [line]
    assert any(text in f"{problem.given}; allowed: {problem.allowed}" for problem in found)


def test_a_shape_that_is_wrong_is_told_once_where_it_is_written(load):
    with pytest.raises(InvalidSpec) as refused:
        load(("splits: 4", "splits: none"))
    assert [problem.field for problem in refused.value.problems] == ["templates.lake.source.splits"]


def test_what_is_wrong_with_a_stage_alone_is_told_of_each_that_takes_it_over(load):
    with pytest.raises(InvalidSpec) as refused:
        load(("work:totals", "work:totels"))
    assert [(problem.line, problem.field) for problem in refused.value.problems] == [(14, "stages.totals.job")]
