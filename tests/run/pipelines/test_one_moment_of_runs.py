"""A run reads, in all of its regions and whenever it is resumed, what its first attempt saw."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject

from stagehold.errors import GateBlocked, SourceChanged

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOBS = """
from stagehold import stage

@stage
def first(ctx, source):
    return source

@stage
def second(ctx, source):
    return source.where("number >= 0")
"""
STAGES = {"first": {"source": NUMBERS, "gate": "own"}, "second": {"source": NUMBERS}}
LIMIT = "type: expect_column_values_to_be_between, column: number, max_value: {}"


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "moments"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS)
    made.write_suite(LIMIT.format(10))
    return made


def rows(project: SmallProject, run_id: str) -> dict[str, int]:
    found = project.run(project.pipeline("moments", STAGES), run_id)
    return {stage: sum(record.rows for record in records) for stage, records in found.items()}


def failed(project: SmallProject) -> None:
    with pytest.raises(GateBlocked):
        rows(project, "night")


def test_a_resume_reads_what_the_run_saw_and_says_what_it_does_not_see(project):
    failed(project)
    project.write_source(FILES, ROWS)  # one more file, before `second` has begun
    project.write_suite(LIMIT.format(10_000))
    assert rows(project, "night") == {"first": FILES * ROWS, "second": FILES * ROWS}
    with project.ledger() as ledger:
        told = [event.text for event in ledger.events.of_run("night") if "1 came, which it does not read" in event.text]
    assert len(told) == len(STAGES)
    assert rows(project, "morning") == {"first": (FILES + 1) * ROWS, "second": (FILES + 1) * ROWS}


def test_a_file_that_was_mended_is_read_and_one_that_is_gone_is_refused_with_the_way_out(project):
    failed(project)
    project.write_suite(LIMIT.format(10_000))
    project.write_source(0, ROWS - 1)
    (Path(project.settings.lake_uri) / "raw" / "part-3.parquet").unlink()
    with pytest.raises(SourceChanged, match=r"part-3.parquet was taken to be read, and is gone; all that a run reads"):
        rows(project, "night")
    assert rows(project, "morning") == dict.fromkeys(STAGES, FILES * ROWS - 1 - ROWS)
    assert rows(project, "night") == dict.fromkeys(STAGES, FILES * ROWS - 1 - ROWS)  # it follows the newer run
