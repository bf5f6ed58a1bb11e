"""A run whose interval had taken of a Delta table what somebody then compacted and vacuumed, on a real Spark server."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.run.small_project import INTERVAL, SmallProject

from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.sources.attempt_sources import Listing

pytestmark = pytest.mark.spark

JOBS = "from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source):\n    return source\n"
SOURCE = {"kind": "delta", "path": "${lake}/table", "splits": 2, "incremental": True}
OUTPUT = {"type": "blocking_persistent", "table": "marts.numbers"}


def test_a_run_reads_the_rows_from_the_files_that_hold_them_now(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    uri = f"{project.settings.lake_uri}/table"
    for day in ("mon", "tue"):
        for number in range(2):
            write_deltalake(uri, pa.table({"n": [number], "day": [day]}), mode="append", partition_by=["day"])
    pipeline = project.pipeline("copies", {"numbers": {"source": SOURCE, "output": OUTPUT}})
    with project.ledger() as ledger:  # an attempt that dies right behind this
        sources = IntervalView(RunRequest(pipeline, "dead", INTERVAL, {}), ledger, project.settings).sources
        sources.settle(pipeline.stage("numbers"), Listing.OF_RUN)
    DeltaTable(uri).optimize.compact()
    DeltaTable(uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert sum(record.rows for record in project.run(pipeline, "run", INTERVAL)["numbers"]) == 4
    rows = DeltaTable(f"{project.settings.lake_uri}/marts/numbers").to_pyarrow_table().to_pylist()
    assert sorted((row["day"], row["n"]) for row in rows) == [("mon", 0), ("mon", 1), ("tue", 0), ("tue", 1)]
    assert {number.run_id for number in project.run(pipeline, "again", INTERVAL)["numbers"]} == {"run"}
