"""A project that keeps its code in `src`, as many packages do: a function with a helper, a UDF on Spark's workers, a
script, and the fixture `stages` of its tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

from stagehold.code.project_archive import whole_archive
from stagehold.model.records import PartitionRecord
from stagehold.settings import load_settings
from stagehold.spark.session.project_modules import as_active, send_archive
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline
from stagehold.testing.stage_tests import StageTests

pytestmark = pytest.mark.spark

FILES = {
    "src/mypackage/__init__.py": "",
    "src/mypackage/etl.py": """
from pyspark.sql import functions as F

from mypackage.names import name
from stagehold import stage


@F.udf("string")
def named(number):
    return name(number)


@stage
def clean(ctx, source):
    return source.where("number < 3").withColumn("name", named("number"))
""",
    "src/mypackage/names.py": "def name(number):\n    return f'number {number}'\n",
    "src/report.py": """
import sys

from pyspark.sql import SparkSession

from mypackage.names import name

spark = SparkSession.builder.getOrCreate()
spark.read.parquet(sys.argv[1]).selectExpr(f"name = '{name(0)}' AS first").write.parquet(sys.argv[2])
""",
    "include/pipelines/shop.yaml": """
pipeline: shop
stages:
  clean:
    job: mypackage.etl:clean
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 1}
  report: {script: src/report.py, inputs: {clean: gather}, args: ["${inputs.clean}", "${output}"]}
""",
}


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "shop"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return SmallProject.make(folder, spark_remote, "")


@pytest.fixture
def pipeline(project: SmallProject) -> Pipeline:
    return find_pipeline("shop", load_settings({}, project.settings.project))


def values(records: tuple[PartitionRecord, ...], column: str) -> Iterator[object]:
    for record in records:
        for file in record.files:
            yield from pq.read_table(Path(record.table) / file.path)[column].to_pylist()


def test_code_in_src_runs_and_a_changed_helper_makes_its_stages_stale(project: SmallProject, pipeline: Pipeline):
    first = project.run(pipeline, "first")
    assert sorted(values(first["clean"], "name")) == ["number 0", "number 1", "number 2"]
    assert sorted(values(first["report"], "first")) == [False, False, True]
    assert project.run(pipeline, "again") == first
    helper = Path(project.settings.project, "src/mypackage/names.py")
    helper.write_text("def name(number):\n    return f'no. {number}'\n")
    second = project.run(pipeline, "second")
    assert sorted(values(second["clean"], "name")) == ["no. 0", "no. 1", "no. 2"]
    assert sorted(values(second["report"], "first")) == [False, False, True]


def test_a_stage_of_src_is_called_with_the_rows_of_a_test(spark, project: SmallProject):
    settings = load_settings({}, project.settings.project)
    send_archive(spark, whole_archive(Path(settings.project)))  # as `local_spark` does
    with as_active(spark):
        StageTests(spark, settings).run("clean", [{"number": 1}]).assert_rows([{"name": "number 1"}])
