"""A whole pipeline whose lake is in an object store, by the command line,
on a Spark server that Stagehold configured itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port
from tests.run.workbench import NOWHERE, Workbench, ended, killed

from stagehold.lake.commit.delta_log import storage_options
from stagehold.lake.store.files import files_at
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.server.server import spark_server

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path: Path, s3_lake: str) -> Iterator[Workbench]:
    """The toy pipeline with its lake in a bucket;
    one stage is committed by delta-spark, all others are staged, one in tiny files.
    """
    made = Workbench.make(tmp_path, NOWHERE)
    spec = Path(made.settings.pipelines) / "toy.yaml"
    text = spec.read_text().replace(
        "    gate: by_colour\n", "    gate: by_colour\n    output: {committer: delta_spark}\n"
    )
    spec.write_text(text.replace("splits: 4}\n", "splits: 4}\n    output: {file_bytes: 1kb}\n"))
    settings = replace(
        made.settings,
        lake=s3_lake,
        spark_remote="",
        spark_port=free_port(),
        spark_memory="1g",
        spark_java_options=QUICK_JAVA,
    )
    Workbench(settings).upload("numbers")
    with spark_server(settings):
        yield Workbench(replace(settings, only_spark_writer=True, sweep_after_seconds=0))


def data_files(table: str) -> set[str]:
    return {path for path in files_at(table).sizes("_data") if path.endswith(".parquet")}


def test_a_pipeline_in_a_bucket_survives_crashes_and_leaves_nothing_behind(bench, tmp_path):
    refused = bench.run(settings=replace(bench.settings, only_spark_writer=False))
    assert refused.code == 1
    assert "set STAGEHOLD_ONLY_SPARK_WRITER=true" in refused.err
    bench.inject(Point.BEFORE_PUBLISH, "by_colour", 1, FaultAction.KILL)
    assert killed(bench.run())
    bench.inject(Point.AFTER_PUBLISH, "by_colour", 1, FaultAction.KILL)
    assert killed(bench.run())
    for file in bench.settings.home_path.glob("ledger.db*"):
        file.unlink()
    rebuilt = ended(bench.command("reconcile", settings=bench.without_spark()))
    assert "adopted from the table's log" in rebuilt.out, rebuilt.err
    resumed = bench.run()
    assert resumed.counts == (4 + 4 + 2, 2 + 1)
    rows = DeltaTable(
        f"{bench.settings.lake}/marts/summary", storage_options=storage_options(bench.settings.lake)
    ).to_pyarrow_table()
    assert (
        sorted(zip(*(rows[name].to_pylist() for name in ("colour", "total", "numbers")), strict=True))
        == bench.expected()
    )
    for stage in ("numbers", "by_wave", "by_colour", "summary"):
        records = bench.records(stage)
        recorded = {file.path for record in records for file in record.files}
        assert data_files(records[0].table) == {path for path in recorded if path.startswith("_data/")}, stage
        assert recorded <= set(files_at(records[0].table).facts("")), stage
    # a wave learns from the one before
    assert [len(record.files) for record in bench.records("numbers")] == [1, 1, 2, 2]
    assert bench.run(settings=bench.without_spark()).counts == (13, 0)
    assert "AWS" not in (tmp_path / "home" / "spark" / "conf" / "spark-defaults.conf").read_text()
    assert (
        os.environ["AWS_SECRET_ACCESS_KEY"]
        not in (tmp_path / "home" / "spark" / "conf" / "spark-defaults.conf").read_text()
    )
