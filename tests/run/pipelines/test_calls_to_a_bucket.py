"""How many calls to an object store a partition and a wave cost: most stores take 20 to 50 ms for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port
from tests.lake.slow_store import Proxy, counted_store
from tests.run.workbench import NOWHERE, Workbench, ended

from stagehold.lake.commit.delta_log import storage_options
from stagehold.lake.store import files
from stagehold.lake.store.location import REMEMBERS_FILES
from stagehold.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.server_check import server_facts

pytestmark = pytest.mark.spark

FEW, MANY = 8, 40
OTHER = f"other-{uuid4()}"  # a bucket that is read as Hadoop reads one by itself
STAGES = 2
JOBS = """
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def kept(ctx, numbers):
    return numbers
"""
PIPELINE = """
pipeline: {name}
wave: 10min
stages:
  numbers:
    job: counted_jobs:numbers
    source: {{kind: parquet, path: "${{lake}}/raw/{name}/*.parquet", splits: {partitions}}}
  kept:
    job: counted_jobs:kept
    inputs: {{numbers: {{exchange: keyed, key: number}}}}
    key: number
    partitions: {partitions}
"""


@pytest.fixture
def store(s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with counted_store(s3_endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        files._s3.cache_clear()
        yield proxy


@pytest.fixture
def bench(tmp_path: Path, s3_lake: str, store: Proxy) -> Iterator[Workbench]:
    project = tmp_path / "project"
    (project / "pipelines").mkdir(parents=True)
    (project / "suites").mkdir()
    (project / "counted_jobs.py").write_text(JOBS)
    for name, partitions in {"few": FEW, "many": MANY}.items():
        (project / "pipelines" / f"{name}.yaml").write_text(PIPELINE.format(name=name, partitions=partitions))
        _upload_rows(f"{s3_lake}/raw/{name}", partitions, tmp_path)
    settings = replace(
        Workbench.of(tmp_path, NOWHERE).settings,
        lake=s3_lake,
        spark_remote="",
        spark_port=free_port(),
        spark_memory="1g",
        spark_java_options=QUICK_JAVA,
        only_spark_writer=True,
        spark_conf=json.dumps({f"spark.hadoop.{REMEMBERS_FILES}".replace("s3a.", f"s3a.bucket.{OTHER}."): "86400000"}),
    )
    with spark_server(settings):
        yield Workbench(settings)


def _upload_rows(folder: str, partitions: int, temporary: Path, rows: int = 9) -> None:
    bucket, _, prefix = folder.removeprefix("s3://").partition("/")
    for number in range(partitions):
        pq.write_table(pa.table({"number": range(number * rows, (number + 1) * rows)}), temporary / "rows.parquet")
        boto3.client("s3").upload_file(str(temporary / "rows.parquet"), bucket, f"{prefix}/{number:03}.parquet")


def calls_of(bench: Workbench, store: Proxy, name: str, interval: str = "2026-11-20") -> list[tuple[str, str]]:
    store.calls.clear()
    run = ended(bench.command("run", name, "--interval", interval, "--json"), 300)
    assert run.code == 0, run.err
    return list(store.calls)


def test_a_partition_costs_at_most_21_calls_and_none_is_renamed(bench, store):
    """Each file is read to be measured, and once more by each wave of its reader. A rename would double the calls, and
    so would asking for each file before it is opened. Partitions that share no task would cost eight calls more.
    """
    calls_of(bench, store, "few", "2026-11-19")  # what only the first run of a server asks
    few, many = (calls_of(bench, store, name) for name in ("few", "many"))
    assert (len(many) - len(few)) / (STAGES * (MANY - FEW)) <= 21
    assert not [path for method, path in many if method == "DELETE" and path.endswith(".parquet")]
    assert sum(method == "POST" and path.endswith("?uploads") for method, path in many) == STAGES * MANY


def test_files_that_are_written_anew_are_read_as_they_are_now(bench, store, tmp_path):
    lake = bench.settings.lake_uri
    for rows in (9, 1, 900):
        _upload_rows(f"{lake}/raw/few", FEW, tmp_path, rows)
        run = ended(bench.command("run", "few", "--interval", "2026-11-20", "--json"), 300)
        assert run.code == 0, run.err
        (table,) = (record.table for record in newest(bench, "kept")[:1])
        published = DeltaTable(table, storage_options=storage_options(table)).to_pyarrow_table()
        assert sorted(published["number"].to_pylist()) == list(range(FEW * rows))


def test_a_server_that_remembers_files_of_a_bucket_is_found_out(bench, store):
    boto3.client("s3").create_bucket(Bucket=OTHER)
    *well, last = server_facts(replace(bench.settings, lake=f"s3://{OTHER}/lake"))
    assert all(fact.well for fact in [*well, *server_facts(bench.settings)])
    assert last.what == "changed files"
    assert "CANNOT_READ_FILE_FOOTER" in last.said
    assert f"spark.hadoop.{REMEMBERS_FILES}=1" in last.change


def newest(bench: Workbench, stage: str) -> tuple[PartitionRecord, ...]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.partitions.newest_of("few", "2026-11-20")[stage]
