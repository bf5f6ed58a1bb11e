"""Code that cannot be compared, as that of a function which looks for files beside its own: what it gives is another
thing each time as far as anybody knows, so other data of other input is no fault of it.
"""

from __future__ import annotations

import pytest
from tests.run.small_project import FILES, NUMBERS, SmallProject, values_of

pytestmark = pytest.mark.spark

JOBS = """
from pathlib import Path
from pyspark.sql import functions as F
from stagehold import stage

ADDED = 0

@stage
def numbers(ctx, source):
    return source

@stage
def beside(ctx, numbers):
    return numbers.withColumn("number", F.col("number") + F.lit(ADDED + (0 if Path(__file__).exists() else 1000)))

@stage
def doubled(ctx, beside):
    return beside.withColumn("number", F.col("number") * 2)
"""
STAGES = {
    "numbers": {"source": NUMBERS},
    "beside": {"inputs": {"numbers": "forward"}},
    "doubled": {"inputs": {"beside": "gather"}},
}


@pytest.mark.parametrize("output", ["pipelined", "blocking"])
def test_other_input_and_other_code_of_it_give_other_data(tmp_path, spark_remote, output):
    folder = tmp_path / f"unknown_{output}"
    folder.mkdir()
    project = SmallProject.make(folder, spark_remote, JOBS)
    stages = {**STAGES, "beside": {**STAGES["beside"], "output": {"type": output}}}
    pipeline = project.pipeline("unknown", stages)
    assert numbers_of(project.run(pipeline, "first")) == doubles(25)
    project.write_source(FILES - 1, 30)
    assert numbers_of(project.run(pipeline, "other input")) == doubles(25, last=range(90, 120))
    module = folder / f"{folder.name}.py"
    module.write_text(JOBS.replace("ADDED = 0", "ADDED = 1"))
    assert numbers_of(project.run(pipeline, "other code")) == doubles(25, last=range(90, 120), added=1)
    assert numbers_of(project.run(pipeline, "again")) == doubles(25, last=range(90, 120), added=1)


def numbers_of(records) -> list[int]:
    return sorted(number for record in records["doubled"] for number in values_of(record, "number"))


def doubles(rows: int, last: range | None = None, added: int = 0) -> list[int]:
    numbers = [*range((FILES - 1) * rows), *(last or range((FILES - 1) * rows, FILES * rows))]
    return sorted(2 * (number + added) for number in numbers)
