"""A project whose sources are relative, run from another folder than its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

pytestmark = pytest.mark.spark

JOBS = """
from stagehold import stage


@stage
def numbers(ctx, source):
    return source
"""


def test_a_run_from_elsewhere_reads_the_projects_files_and_finds_what_one_from_there_left(
    tmp_path, spark_remote, monkeypatch
):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    for folder, rows in (("side", 3), ("elsewhere/side", 50)):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"number": pa.array(range(rows), pa.int64())}), tmp_path / folder / "a.parquet")
    source = {"kind": "parquet", "path": "side/*.parquet", "splits": 1}
    pipeline = project.pipeline("sided", {"numbers": {"source": source}})
    monkeypatch.chdir(tmp_path)
    (from_there,) = project.run(pipeline, "first")["numbers"]
    monkeypatch.chdir(tmp_path / "elsewhere")
    (from_elsewhere,) = project.run(pipeline, "second")["numbers"]
    assert from_there.rows == 3
    assert from_elsewhere == from_there
    (computed,) = project.run(pipeline, "third", interval="another")["numbers"]
    assert (computed.rows, computed.fingerprint) == (3, from_there.fingerprint)
