"""How often a function is called, and what its module may do at its top."""

from __future__ import annotations

import pytest
from tests.run.small_project import NUMBERS, SmallProject, numbers

from stagehold.errors import StageContractBroken

pytestmark = pytest.mark.spark

CALLS = """
from pathlib import Path

from stagehold import stage


def note(partition):
    with Path(__file__).with_name("noted").open("a") as file:
        file.write(f"{partition} ")


@stage
def counted_calls(ctx, source):
    note(ctx.partitions[0])
    return source.limit(source.count())
"""

TOPS = {
    "spark.conf.set('spark.sql.ansi.enabled', 'false')": "Declare it with `spark:`",
    "spark.sql('SET TIME ZONE \"Asia/Tokyo\"')": "Declare it with `spark:`",
    "spark.range(3).createOrReplaceTempView('t')": "Do that in the stage function",
    "spark.range(3).write.parquet('/tmp/nowhere')": "Return the frame",
    "spark.udf.register('f', lambda n: n, 'long'); spark.udf.register('f', lambda n: -n, 'long')": "Register it in the",
    "spark.udf.register('f', lambda n: n + 1, 'long'); spark.range(3).count()": "",
    "spark.conf.set('spark.sql.shuffle.partitions', 3); spark.udf.register('f', lambda n: n + 1, 'long')": "",
}


def test_a_function_that_asks_is_called_twice_for_the_first_partition_and_once_for_each_other(tmp_path, spark_remote):
    folder = tmp_path / "calls_of_function"
    folder.mkdir()
    project = SmallProject.make(folder, spark_remote, CALLS)
    project.made("counted_calls", {"counted_calls": {"source": NUMBERS}}, wave="1h")
    assert (folder / "noted").read_text().split() == ["0", "0", "1", "2", "3"]


@pytest.mark.parametrize("place", range(len(TOPS)))
def test_what_a_module_does_at_its_top_is_for_all_stages_or_refused(tmp_path, spark_remote, place):
    line, refusal = list(TOPS.items())[place]
    folder = tmp_path / f"top_{place}"
    folder.mkdir()
    jobs = f"""
from pyspark.sql import SparkSession

from stagehold import stage

spark = SparkSession.builder.getOrCreate()
{line}


@stage
def top(ctx, source):
    return source.selectExpr("f(number) AS number")
"""
    project = SmallProject.make(folder, spark_remote, jobs)
    if refusal:
        with pytest.raises(StageContractBroken, match=refusal) as raised:
            project.made("top", {"top": {"source": NUMBERS}})
        assert f"{folder.name}.py:7)" in str(raised.value)
    else:
        assert project.made("top", {"top": {"source": NUMBERS}})[0] == [row + 1 for row in numbers(0)]
