"""A foreign project on a live Airflow: a pipeline that follows another's table, a script, and a group in a DAG of one's
own, each backfilled and resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.e2e.driven_airflow import DrivenAirflow
from tests.e2e.stack import RUN_SECONDS, Stack, until

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.local.control import start_supervisor, stop_supervisor
from stagehold.model.records import PartitionRecord
from stagehold.settings import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PAST = [str(datetime.now(UTC).date() - timedelta(days=back)) for back in (4, 3)]
NIGHTLY = """\
schedule: "@daily"
restart: {strategy: none}
wave: 100ms
stages:
  first:
    job: jobs.work:first
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 2}
    output: {type: blocking}
"""
FILES: Mapping[str, str] = {
    "jobs/work.py": """\
from stagehold import stage


@stage
def first(ctx, source):
    return source


@stage
def second(ctx, first):
    return first.where("number % 2 = 0")


@stage
def third(ctx, first):
    return first.limit(5)
""",
    "jobs/old_job.py": """\
import sys

from pyspark.sql import SparkSession, functions as F

source, output, day = sys.argv[1:]
rows = SparkSession.builder.appName("old").getOrCreate().read.parquet(source)
rows.withColumn("day", F.lit(day)).write.mode("overwrite").parquet(output)
""",
    "include/pipelines/leading.yaml": """\
pipeline: leading
schedule: "@daily"
wave: 100ms
stages:
  first:
    job: jobs.work:first
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 2}
    output: {type: blocking_persistent, table: marts.leading}
""",
    "include/pipelines/following.yaml": """\
pipeline: following
schedule: {assets: marts.leading}
wave: 100ms
stages:
  first:
    job: jobs.work:first
    source: {kind: delta, path: "${lake}/marts/leading", where: "_interval = '${interval}'", splits: 1}
    output: {type: blocking_persistent, table: marts.following}
""",
    "include/pipelines/scripted.yaml": f"pipeline: scripted\n{NIGHTLY}"
    """\
  made:
    script: jobs/old_job.py
    args: ["${inputs.first}", "${output}", "${interval.start:%Y-%m-%d}"]
    inputs: {first: gather}
    output: {type: blocking_persistent, table: marts.scripted}
""",
    "include/pipelines/grouped.yaml": f"pipeline: grouped\n{NIGHTLY}"
    """\
  second:
    job: jobs.work:second
    inputs: {first: forward}
    output: {type: blocking_persistent, table: marts.grouped}
""",
    **{
        f"include/pipelines/{name}.yaml": f"pipeline: {name}\n{NIGHTLY}"
        f"""\
  last:
    job: jobs.work:{job}
    inputs: {{first: gather}}
    output: {{type: blocking_persistent, table: marts.{name}}}
"""
        for name, job in {"paid": "second", "shipped": "third"}.items()
    },
    "dags/own.py": """\
import stagehold
from airflow.sdk import DAG, task

stagehold.dags("..")

with DAG("mine", schedule="@daily", catchup=False):

    @task
    def ingest(): ...

    @task
    def tell(): ...

    ingest() >> stagehold.task_group("grouped") >> tell()

with DAG("both", schedule="@daily", catchup=False):
    stagehold.task_group("paid") >> stagehold.task_group("shipped")
""",
}
BREAKS = {
    "jobs/work.py": ("    return first.where", "    raise ValueError\n    return first.where"),
    "jobs/old_job.py": ("rows = ", "raise ValueError\nrows = "),
}
DAGS = ("leading", "following", "scripted", "mine", "both")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(text)
    settings = Settings(
        home=str(folder / "home"),
        project=str(folder),
        pipelines=str(folder / "include" / "pipelines"),
        suites=str(folder / "include" / "suites"),
        spark_port=free_port(),
        airflow_port=free_port(),
        spark_java_options=QUICK_JAVA,
    )
    raw = Path(settings.lake_uri, "raw")
    raw.mkdir(parents=True)
    for number in range(2):
        pq.write_table(pa.table({"number": pa.array(range(10 * number, 10 * number + 10))}), raw / f"{number}.parquet")
    start_supervisor(settings, print)
    try:
        with DrivenAirflow.local(settings) as airflow:
            for name in DAGS:
                airflow.await_dag(name)
            yield Stack(settings, airflow)
    finally:
        stop_supervisor(settings)


def records(own: Stack, pipeline: str, interval: str) -> Mapping[str, tuple[PartitionRecord, ...]]:
    with Ledger.open(own.settings.ledger_url) as ledger:
        return ledger.partitions.newest_of(pipeline, interval)


def computed(own: Stack, run: DagRun, place: str = "") -> list[tuple[str, int]]:
    """What its attempts recorded of each partition, however often."""
    with Ledger.open(own.settings.ledger_url) as ledger:
        made = ledger.partitions.of_run(f"{place or run.dag_id}/{run.run_id}")
    return sorted((record.cell.stage, record.partition) for record in made)


def backfilled(own: Stack, place: str) -> dict[str, DagRun]:
    """The runs of two days, which never ran, at their end."""
    dag_id, _, _ = place.partition("~")
    wanted = {"first": PAST[0], "last": PAST[1], "stages": (), "only": None, "restore_from_stage": None}
    path = f"/stagehold/api/dags/{place}/backfill"
    plan: dict[str, Any] = own.airflow._send("GET", f"{path}?first={PAST[0]}&last={PAST[1]}")
    own.airflow.backfill(place, {**wanted, "max_active": 1, "token": plan["token"]})
    runs = {day: DagRun(dag_id, f"backfill__{day}T00:00:00+00:00", "") for day in PAST}
    return {day: own.airflow.wait(run, RUN_SECONDS) for day, run in runs.items()}


def test_a_pipeline_that_follows_a_table_runs_the_interval_that_is_new_by_itself(own: Stack) -> None:
    own.finish(own.airflow.trigger("leading", conf={"interval": PAST[0]}))
    path = "/api/v2/dags/following/dagRuns"
    until(lambda: own.airflow._send("GET", path)["dag_runs"], "the follower is started")
    (found,) = own.airflow._send("GET", path)["dag_runs"]
    assert found["run_type"] == "asset_triggered"
    own.finish(DagRun("following", found["dag_run_id"], ""))
    (record,) = records(own, "following", PAST[0])["first"]
    assert record.rows == 20


@pytest.mark.parametrize(
    ("dag_id", "pipeline", "last"), [("scripted", "scripted", "made"), ("mine", "grouped", "second")]
)
def test_what_is_backfilled_and_fails_is_resumed_where_it_stands(
    own: Stack, dag_id: str, pipeline: str, last: str
) -> None:
    for name, (text, broken) in BREAKS.items():
        Path(own.settings.project, name).write_text(FILES[name].replace(text, broken))
    failed = backfilled(own, dag_id)
    assert {day: run.state for day, run in failed.items()} == dict.fromkeys(PAST, "failed")
    made = {day: computed(own, run) for day, run in failed.items()}
    assert made == {day: [("first", 0), ("first", 1)] for day in PAST}
    for name in BREAKS:
        Path(own.settings.project, name).write_text(FILES[name])
    for day, run in failed.items():
        own.airflow.resume(dag_id, run.run_id)
        assert own.airflow.wait(run, RUN_SECONDS).state == "success"
        assert [stage for stage, _ in computed(own, run)].count("first") == 2
        found = records(own, pipeline, day)
        assert sum(record.rows for record in found[last]) == (20 if last == "made" else 10)
    plan = own.airflow._send("GET", f"/stagehold/api/dags/{dag_id}/backfill?first={PAST[0]}&last={PAST[1]}")
    assert plan["runs"] == 0


def test_two_pipelines_of_a_dag_are_computed_resumed_and_backfilled_each_by_itself(own: Stack) -> None:
    work = Path(own.settings.project, "jobs/work.py")
    work.write_text(
        FILES["jobs/work.py"].replace("    return first.limit", "    raise ValueError\n    return first.limit")
    )
    run = own.airflow.wait(own.airflow.trigger("both", conf={"interval": "2026-11-20"}), RUN_SECONDS)
    paid, shipped = f"both~paid/{run.run_id}", f"both~shipped/{run.run_id}"
    assert run.state == "failed"
    assert computed(own, run, "both~paid") == [("first", 0), ("first", 1), ("last", 0)]
    assert computed(own, run, "both~shipped") == [("first", 0), ("first", 1)]
    with Ledger.open(own.settings.ledger_url) as ledger:
        assert (ledger.runs.get(paid).state, ledger.runs.get(shipped).state) == ("finished", "failed")
    grid = own.airflow.grid("both~shipped", run.run_id)
    assert (grid["pipeline"], [stage["consumable"] for stage in grid["stages"]]) == ("shipped", [2, 0])

    work.write_text(FILES["jobs/work.py"])
    resumed = own.command("resume", shipped)
    assert resumed.returncode == 0, resumed.stderr
    assert "shipped.last" in resumed.stdout
    assert own.airflow.wait(run, RUN_SECONDS).state == "success"
    tries = {name: task.number for name, task in own.airflow.tasks("both", run.run_id).items()}
    assert tries == {"paid.first": 1, "paid.last": 1, "shipped.first": 1, "shipped.last": 2}
    assert sum(record.rows for record in records(own, "shipped", "2026-11-20")["last"]) == 5
    with Ledger.open(own.settings.ledger_url) as ledger:
        assert ledger.runs.get(shipped).state == "finished"

    for day, dated in backfilled(own, "both~paid").items():
        assert dated.state == "success"
        assert sum(record.rows for record in records(own, "paid", day)["last"]) == 10
        assert records(own, "shipped", day) == {}
        assert computed(own, dated, "both~shipped") == []
