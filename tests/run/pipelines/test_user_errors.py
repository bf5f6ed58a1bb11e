"""What a stage's author did wrong, or the data he was given: said once, in three lines, with his own file and line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import utils as pyspark_errors
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import FunctionFailed, StageFailed
from stagehold.ledger import Ledger
from stagehold.model.records import Attempt, FailureClass
from stagehold.run.delivery.wave import WavePlace, place_of
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.spark

JOBS = """
from pyspark import SparkContext
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from stagehold import stage


class BadInput(Exception):
    pass


def refuse(number):
    raise BadInput(f"no such number: {number}")


def call_away(number):
    raise ConnectionRefusedError(111, "Connection refused")


@stage
def in_worker(ctx, source):
    return source.select(F.udf(lambda number: refuse(number), LongType())("number").alias("number"))


@stage
def in_groups(ctx, source):
    return source.groupBy("number").applyInPandas(lambda pdf: refuse(int(pdf.number[0])), "number long")


@stage
def on_the_way(ctx, source):
    return refuse(7)


@stage
def unknown_column(ctx, source):
    return source.select(
        F.col("nobody"),
    )


@stage
def no_number(ctx, source):
    text = F.concat(F.lit("x"), F.col("number"))
    return source.select(text.cast("int").alias("number"))


@stage
def told(ctx, source):
    return source.select(F.raise_error(F.lit("this must not be")).cast("long").alias("number"))


@stage
def over_an_rdd(ctx, source):
    return source.rdd.map(lambda row: row).toDF()


@stage
def with_a_context(ctx, source):
    source.sparkSession.sparkContext.parallelize([1])
    return source


@stage
def makes_a_context(ctx, source):
    SparkContext.getOrCreate()
    return source


@stage
def in_the_jvm(ctx, source):
    return source.select(source.sparkSession._jvm.functions.col("number"))


@stage
def in_a_new_session(ctx, source):
    return source.sparkSession.newSession().table("numbers")


@stage
def of_no_rows(ctx, source):
    return source.sparkSession.createDataFrame(source.where("false").collect())


@stage
def stops(ctx, source):
    source.sparkSession.stop()
    return source


@stage
def table(ctx, source):
    return source


@stage
def remote(ctx, source):
    return source.select(F.udf(call_away, LongType())("number").alias("number"))
"""


@dataclass(frozen=True)
class Failed:
    """A run that failed: what it raised, its attempts, and what was kept of the first one's failure."""

    error: BaseException
    attempts: tuple[Attempt, ...]
    trace: str


def fail(project: SmallProject, stage: str, source=NUMBERS, **facts) -> Failed:
    pipeline = project.pipeline(stage, {stage: {"source": source}}, **facts)
    with pytest.raises(StageFailed) as raised:
        run_locally(RunRequest(pipeline, stage, "i", {}), project.settings, print)
    with Ledger.open(project.settings.ledger_url) as ledger:
        attempts, traces = ledger.attempts.of_run(stage), ledger.events.traces(stage)
    return Failed(raised.value, attempts, traces[attempts[0].attempt_id])


def line_of(text: str) -> int:
    """The only line of the jobs that has ``text``."""
    (number,) = (number for number, line in enumerate(JOBS.splitlines(), 1) if text in line)
    return number


@pytest.fixture
def project(tmp_path, spark_remote):
    folder = tmp_path / f"errors_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    return SmallProject.make(folder, spark_remote, JOBS)


# stage, rule, how the first line begins, the line that is to blame, what only the trace has
TABLE = [
    ("in_worker", "user_function", "BadInput: no such number: ", "raise BadInput", "lambda"),
    ("in_groups", "user_function", "BadInput: no such number: ", "raise BadInput", "lambda"),
    ("on_the_way", "user_function", "BadInput: no such number: 7", "raise BadInput", "on_the_way"),
    ("unknown_column", "user_query", "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", 'F.col("nobody")', "CheckAnalysis.scala"),
    ("no_number", "user_data", "[CAST_INVALID_INPUT] The value 'x", 'text.cast("int")', "JVM stacktrace"),
    ("over_an_rdd", "user_query", "rdd: functions run in Spark Connect, which has no RDDs", "source.rdd", "rdd"),
    ("with_a_context", "user_query", "sparkContext: functions run in Spark Connect", "parallelize", "sparkContext"),
    ("makes_a_context", "user_function", "SparkContext: functions run in Spark Connect", "SparkContext.get", "REMOTE"),
    ("in_the_jvm", "user_query", "_jvm: functions run in Spark Connect", "_jvm.functions", "JVM_ATTRIBUTE"),
    ("in_a_new_session", "user_query", "newSession: functions run in Spark Connect", "newSession", "JVM_ATTRIBUTE"),
    ("stops", "user_function", "StopRefused: the Spark session is its attempt's", "Session.stop()", "Take the line"),
    ("of_no_rows", "user_query", "a partition may have no rows, from which no types", "createData", "EMPTY_SCHEMA"),
    ("told", "user_data", "[USER_RAISED_EXCEPTION] this must not be", "def told", "JVM stacktrace"),
]


def test_the_wave_in_which_it_happened_travels_with_the_error(project):
    assert place_of(fail(project, "in_worker").error) == WavePlace("in_worker", 1, (0, 1))
    assert place_of(fail(project, "unknown_column").error) is None  # refused before the first wave


@pytest.mark.parametrize(("stage", "rule", "problem", "blamed", "traced"), TABLE, ids=[row[0] for row in TABLE])
def test_an_error_of_the_authors_is_told_in_three_lines_and_not_tried_again(
    project, stage, rule, problem, blamed, traced
):
    failed = fail(project, stage)
    first, second, third = str(failed.error).splitlines()
    module = Path(project.settings.project).name
    assert problem in first
    assert second.strip().split(", in ")[0] == f"at {module}.py:{line_of(blamed)}"
    assert third.startswith(f"Stage {stage}, partition(s) 0")
    (attempt,) = failed.attempts
    assert (attempt.failure_class, attempt.failure_rule) == (FailureClass.NON_RECOVERABLE, rule)
    assert attempt.failure == str(failed.error)
    assert traced in failed.trace


def test_the_line_is_found_where_a_module_made_columns_before_there_was_a_session(project, monkeypatch):
    """pyspark looks once in a process whether it is to note lines: at the first column, session or not."""
    monkeypatch.setattr(pyspark_errors, "_enable_debugging_cache", False)
    _, second, _ = str(fail(project, "unknown_column").error).splitlines()
    assert second.endswith(f".py:{line_of('nobody')}")


def test_a_malformed_value_of_a_csv_file_is_told_with_the_file(project):
    path = Path(project.settings.lake_uri) / "csv" / "bad.csv"
    path.parent.mkdir(parents=True)
    path.write_text("1\ntwo\n")
    failed = fail(project, "table", {"kind": "csv", "path": "${lake}/csv/*.csv", "schema": "number long", "splits": 1})
    first, _, _ = str(failed.error).splitlines()
    assert "bad.csv" in first
    assert "MALFORMED_RECORD" in first
    assert [attempt.failure_rule for attempt in failed.attempts] == ["user_data"]


def test_a_service_that_does_not_answer_a_function_is_tried_again(project):
    failed = fail(project, "remote", restart={"strategy": "fixed-delay", "attempts": 1, "delay": "0s"})
    assert isinstance(failed.error, FunctionFailed)
    assert str(failed.error).startswith("ConnectionRefusedError: [Errno 111] Connection refused\n  at ")
    assert [(attempt.failure_class, attempt.failure_rule) for attempt in failed.attempts] == [
        (FailureClass.ENVIRONMENT, "connection")
    ] * 2
