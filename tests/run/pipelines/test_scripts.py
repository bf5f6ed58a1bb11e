"""Stages that are scripts which nobody wrote for Stagehold, run as spark-submit runs them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject, values_of

from stagehold.errors import FunctionFailed, GateBlocked, StageContractBroken
from stagehold.run.here.trial import try_stage
from stagehold.run.planning.planning import RunRequest
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.spark

DAY = "2026-11-20"
HERE = Path.cwd()
BEGIN = """\
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.appName("old").master("local[4]").config("spark.executor.memory", "4g").getOrCreate()
source, output = sys.argv[1:3]
rows = spark.read.parquet(source)
"""
OLD_JOB = '''\
"""Doubles, as it has done each night."""
from __future__ import annotations

import argparse
import logging

from pyspark.sql import SparkSession
from pyspark.sql.functions import *
from pyspark.sql.types import LongType
from helpers import least

logging.basicConfig(level=logging.INFO)
RATE = 2


@udf(LongType())
def doubled(number):
    return RATE * number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--day", required=True)
    parser.add_argument("--numbers")
    parser.add_argument("--out")
    args = parser.parse_args()
    with SparkSession.builder.appName("old job").enableHiveSupport().getOrCreate() as spark:
        spark.conf.set("spark.sql.shuffle.partitions", 3)
        spark.read.format("csv").load(args.numbers + "/*.csv").createOrReplaceTempView("raw")
        rows = spark.sql(f"SELECT number FROM raw WHERE number >= {least()}").cache()
        print(f"{rows.count()} rows for {args.day}")
        made = rows.withColumn("number", doubled("number")).withColumn("day", lit(args.day))
        made.write.mode("overwrite").partitionBy("day").parquet(args.out)


if __name__ == "__main__":
    main()
'''
ARGS = ["--day", "${interval.start:%Y-%m-%d}", "--numbers", "${inputs.numbers}", "--out", "${output}"]
JOBS = "from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source):\n    return source\n"


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "scripts"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobs" / "helpers.py").write_text("def least():\n    return 10\n")
    return SmallProject.make(folder, spark_remote, JOBS)


def declared(
    project: SmallProject, text: str, args: Sequence[str] = ("${inputs.numbers}", "${output}"), **fields: Any
) -> Pipeline:
    Path(project.settings.project, "jobs", "old_job.py").write_text(text)
    stages = {
        "numbers": {"source": NUMBERS},
        "made": {"script": "jobs/old_job.py", "inputs": {"numbers": "gather"}, "args": list(args), **fields},
    }
    return project.pipeline("old", stages, schedule="@daily")


def run(project: SmallProject, text: str, run_id: str = "r", **facts: Any) -> list[int]:
    (record,) = project.run(declared(project, text, **facts), run_id, DAY)["made"]
    return values_of(record, "number")


ALL = list(range(FILES * ROWS))


def test_a_script_runs_as_it_is_and_its_rows_are_published(project, capsys):
    assert run(project, OLD_JOB, args=ARGS) == [2 * number for number in ALL if number >= 10]
    assert f"90 rows for {DAY}" in capsys.readouterr().out
    lake = Path(project.settings.lake_uri)
    assert [path for path in lake.rglob("script*") if path.is_file()] == []


def test_what_is_finished_is_reused_until_script_helper_argument_or_input_changes(project, capsys):
    run(project, OLD_JOB, args=ARGS)
    helper = Path(project.settings.project, "jobs", "helpers.py")
    faster = OLD_JOB.replace("RATE = 2", "RATE = 3")
    changes = [
        (lambda: OLD_JOB + "# the same\n", ARGS, "reuse"),
        (
            lambda: helper.write_text("def least():\n    return 20\n") and OLD_JOB,
            ARGS,
            "the code of jobs/old_job.py changed",
        ),
        (lambda: faster, ARGS, "the code of jobs/old_job.py changed"),
        (lambda: faster, [ARGS[0], "2026-01-01", *ARGS[2:]], "the settings of the stage changed"),
        (lambda: project.write_source(1, ROWS + 1) or faster, ARGS, "numbers"),
    ]
    for number, (change, args, why) in enumerate(changes):
        text = change()
        capsys.readouterr()
        run(project, text, f"change {number}", args=args)
        said = capsys.readouterr().out
        assert why in said, said
        assert ("rows for" in said) == (why != "reuse")


@pytest.mark.parametrize(
    "ending",
    [
        "rows.write.parquet(output)\nspark.stop()\nsys.exit(0)",
        'rows.write.format("delta").save(output)\nraise SystemExit',
        'rows.write.orc(output, compression="zlib")',
        'rows.write.format("avro").save(output)',
        'rows.write.mode("append").save(output)\nspark.table("numbers").where("number < 0").write.mode("append")'
        ".parquet(output)",
        'rows.createOrReplaceTempView("v")\nspark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")\n'
        'spark.sql("SELECT * FROM v").write.parquet(output)\nspark.conf.set("spark.sql.session.timeZone", "UTC")',
        "from pyspark.sql.types import *\n"
        'again = spark.read.schema(StructType([StructField("number", IntegerType())])).parquet(source)\n'
        'assert again.dtypes == [("number", "int")]\nagain.write.parquet(output)',
    ],
    ids=["stops and exits", "Delta", "ORC", "Avro", "appends", "views and settings", "a schema of its own"],
)
def test_ways_to_write_and_to_end(project, ending):
    assert run(project, BEGIN + ending) == ALL


CLASSIC = """
import json, logging, os
from pathlib import Path
from pyspark import SparkFiles

sc = spark.sparkContext
sc.setLogLevel("ERROR")
sc.setJobGroup("nightly", "the job of each night")
sc.addPyFile("dependencies.zip")
prefix = f"<{sc.getConf().get('spark.app.name')} {sc.applicationId}>"
assert sc.getConf().get("spark.no.such.setting", "none") == "none"
assert (sc.version, sc.appName) == (spark.version, "stagehold"), (sc.version, sc.appName)
log4j = sc._jvm.org.apache.log4j
log4j.LogManager.getLogger("org").setLevel(log4j.Level.ERROR)
spark._jvm.org.apache.log4j.LogManager.getLogger(prefix).warn("it has begun")
(config,) = [name for name in os.listdir(SparkFiles.getRootDirectory()) if name.endswith("config.json")]
rates = sc.broadcast(json.loads(Path(SparkFiles.get(config)).read_text()))
os.environ["JAVA_HOME"] = "C:/Java"
os.chdir("/")
worth = F.udf(lambda number: rates.value["rate"] * number, "long")
rows.withColumn("number", worth("number")).write.parquet(output)
sc.stop()
"""


def test_what_spark_submit_gives_beside_a_session_is_there(project, caplog, capsys):
    folder = Path(project.settings.project)
    (folder / "etl_config.json").write_text('{"rate": 3}')
    text, facts = BEGIN + CLASSIC, {"files": "etl_config.json"}
    before = dict(os.environ)
    assert run(project, text, **facts) == [3 * number for number in ALL]
    assert any(record.name.startswith("<stagehold ") and "it has begun" in record.message for record in caplog.records)
    assert (dict(os.environ), Path.cwd()) == (before, HERE)
    assert "does not declare" not in capsys.readouterr().out
    (folder / "etl_config.json").write_text('{"rate": 4}')
    assert run(project, text, "again", **facts) == [4 * number for number in ALL]


FAILS = {
    "writes nothing": ("pass", "its script wrote nothing to ${output}"),
    "writes CSV": ("rows.write.csv(output)", "neither Parquet, ORC, Avro nor Delta"),
    "writes beside it": ('rows.write.parquet(output + "_2")', "at jobs/old_job.py:6"),
    "writes a table": ('rows.write.saveAsTable("made")', "writes made (`saveAsTable` at jobs/old_job.py:6)"),
    "raises": (
        "rows.write.parquet(output)\nraise ValueError('no rates')",
        "ValueError: no rates\n  at jobs/old_job.py:7",
    ),
    "exits with 1": ("rows.write.parquet(output)\nsys.exit(1)", "the script ended with 1; it was given"),
    "exits with a text": ("rows.write.parquet(output)\nsys.exit('no rates')", "jobs/old_job.py:7"),
    "RDD": ("print(rows.rdd.first())", "rdd: functions run in Spark Connect, which has no RDDs"),
    "line of an RDD": ("print(rows.rdd.first())", "jobs/old_job.py:6"),
    "sparkContext": ("spark.sparkContext.textFile('x')", "sparkContext: functions run in Spark Connect"),
    "the JVM": ("spark._jvm.java.lang.System.exit(1)", "_jvm: functions run in Spark Connect"),
    "sent files": (
        "from pyspark import SparkFiles\nSparkFiles.get('x')",
        "declare them as `files: [configs/etl.json]`",
    ),
    "gets a SparkContext": (
        "from pyspark import SparkContext\nsc = SparkContext.getOrCreate()",
        "SparkContext: functions run in Spark Connect",
    ),
    "makes a SparkContext": (
        "from pyspark import SparkContext\nsc = SparkContext('local', 'old')",
        "jobs/old_job.py:7",
    ),
    "JVM": ("spark._jvm.java.lang.System", "no JVM in this process"),
    "part of an input": ('spark.read.parquet(source + "/day=1")', "is an input of the stage, which is no folder"),
    "wrong arguments": (
        "import argparse\nargparse.ArgumentParser().parse_args()",
        "the script ended with 2; it was given",
    ),
}


@pytest.mark.parametrize("case", FAILS)
def test_what_goes_wrong_is_told_with_its_line_and_nothing_is_published(project, case):
    ending, told = FAILS[case]
    with pytest.raises((FunctionFailed, StageContractBroken)) as caught:
        run(project, BEGIN + ending)
    assert told in str(caught.value)
    pipeline = declared(project, BEGIN + ending)
    assert project.records(pipeline, DAY).get("made", ()) == ()


def test_a_script_may_write_elsewhere_where_effects_are_allowed(project, tmp_path):
    text = f"{BEGIN}rows.limit(1).write.parquet('{tmp_path}/aside')\nrows.write.parquet(output)"
    assert run(project, text, effects="allowed") == ALL
    assert list((tmp_path / "aside").glob("*.parquet"))


def test_no_reader_sees_what_the_gate_refuses_and_a_mended_script_is_judged_anew(project):
    project.write_suite("type: expect_column_values_to_be_between, column: number, max_value: 98")
    good = BEGIN + 'rows.where("number < 99").write.parquet(output)'
    table = {"output": {"type": "blocking_persistent", "table": "marts.made"}, "gate": "own"}
    with pytest.raises(GateBlocked):
        run(project, BEGIN + "rows.write.parquet(output)", **table)
    assert run(project, good, "mended", **table) == ALL[:-1]


def test_it_is_tried_without_anything_left_of_it(project):
    pipeline = declared(project, OLD_JOB, args=ARGS)
    trial = try_stage(RunRequest(pipeline, "try", DAY, {}), "made", 0, project.settings, print, most=3)
    assert (trial.count, trial.columns) == (90, ("number", "day"))
    left = [path for path in Path(project.settings.lake_uri, "stages").rglob("*") if path.is_file()]
    assert left == []
