from __future__ import annotations

from stagehold.code.stage_code import calls_of

JOBS = '''\
from pyspark.sql import functions as F
from helpers import draws

TABLE = "limit 3"


def orders(ctx, source):
    rows = (
        source.where(F.col("a") > 1)
        .withColumn("r", F.rand())
        .limit(5)  # stagehold: deterministic
    )
    query = F.expr("""
        uuid() || CURRENT_DATE
    """)
    return draws(rows, F.sum(
        "a",
    ))  # stagehold: deterministic


def unused(ctx, source):
    return source.sample(0.1)
'''
HELPERS = "def draws(rows, total):\n    return rows.sample(0.5)\n"


def project(folder):
    (folder / "jobs.py").write_text(JOBS)
    (folder / "helpers.py").write_text(HELPERS)
    return folder


def found(folder, *names):
    return [
        (call.name, call.place, call.silenced)
        for call in calls_of("jobs:orders", project(folder))
        if call.name in names
    ]


def test_a_call_is_found_at_its_own_line_of_a_chain(tmp_path):
    assert found(tmp_path, "rand", "where") == [("where", "jobs.py:9", False), ("rand", "jobs.py:10", False)]


def test_helpers_are_followed_and_what_is_not_reached_is_left_out(tmp_path):
    assert found(tmp_path, "sample") == [("sample", "helpers.py:2", False)]


def test_functions_in_texts_of_sql_are_found_in_their_lines(tmp_path):
    assert found(tmp_path, "uuid", "current_date") == [
        ("current_date", "jobs.py:14", False),
        ("uuid", "jobs.py:14", False),
    ]


def test_the_comment_counts_for_every_line_of_its_call(tmp_path):
    assert found(tmp_path, "limit", "sum") == [("limit", "jobs.py:11", True), ("sum", "jobs.py:16", True)]


def test_code_that_cannot_be_followed_is_searched_as_far_as_it_can(tmp_path):
    (tmp_path / "dynamic.py").write_text("def orders(ctx, source):\n    eval('1')\n    return source.limit(1)\n")
    assert [call.place for call in calls_of("dynamic:orders", tmp_path) if call.name == "limit"] == ["dynamic.py:3"]
    assert calls_of("missing:orders", tmp_path) == ()


def test_a_call_has_its_line_as_text(tmp_path):
    (call,) = (call for call in calls_of("jobs:orders", project(tmp_path)) if call.name == "rand")
    assert call.text == '.withColumn("r", F.rand())'
