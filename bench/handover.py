"""What it costs to go from one stage to the next: this pipeline against a chain of SparkSubmitOperator tasks.

Ten small stages, so that nearly all time is hand-over, as two DAGs of one Airflow that run in turns. Both read and
write Delta tables; the stages of both call the same functions. The Spark provider is fetched without its dependencies
for the time of the measurement. ``python handover.py [PAIRS]`` writes results/handover.json.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.e2e.driven_airflow import DrivenAirflow

from stagehold.local.control import start_supervisor, stop_supervisor
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.java import jar_paths, java_home

RESULTS = Path(__file__).parent / "results" / "handover.json"
STAGES, PARTITIONS, ROWS = 10, 2, 10_000
OURS, THEIRS = "handover", "submit_chain"
RUN_SECONDS = 900
JOB = """

@stage
def stage_{number}(ctx: StageContext, {given}: DataFrame) -> DataFrame:
    return {given}.select("id", (F.col("id") % {number}).alias("value"))
"""
HEADER = """from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from stagehold import StageContext, stage
"""
SUBMITTED = """import sys
from pyspark.sql import SparkSession
import handover_jobs
from stagehold import StageContext

number, given, read, written = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.format("parquet" if number == 1 else "delta").load(read)
context = StageContext("submit_chain", f"stage_{number}", "now", None, (), 0)
made = getattr(handover_jobs, f"stage_{number}")(context, **{given: frame})
made.write.format("delta").mode("overwrite").save(written)
spark.stop()
"""
DAG = """from datetime import timedelta
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

with DAG(dag_id={dag!r}, schedule=None, catchup=False):
    before = None
    for number in range(1, {stages} + 1):
        given = "source" if number == 1 else f"stage_{{number - 1}}"
        read = {raw!r} if number == 1 else f"{out}/stage_{{number - 1}}"
        task = SparkSubmitOperator(
            task_id=f"stage_{{number}}", application={script!r}, conn_id="spark_here", jars={jars!r},
            application_args=[str(number), given, read, f"{out}/stage_{{number}}"],
            conf={conf!r}, env_vars={env!r},
        )
        if before is not None:
            before >> task
        before = task
"""


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        settings = write_project(Path(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [fetch_provider(Path(folder)), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        start_supervisor(settings, print)
        try:
            with DrivenAirflow.local(settings) as airflow:
                measured = measure(airflow, pairs)
        finally:
            stop_supervisor(settings)
    show(measured)


def measure(airflow: DrivenAirflow, pairs: int) -> dict[str, list[float]]:
    airflow._send(
        "POST", "/api/v2/connections", {"connection_id": "spark_here", "conn_type": "spark", "host": "local[2]"}
    )
    for dag in (OURS, THEIRS):
        airflow.await_dag(dag)
    seconds_of(airflow, OURS, "warm-up")
    found: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for number in range(pairs):
        for dag in found:
            found[dag].append(seconds_of(airflow, dag, f"i{number}"))
        print({dag: round(seconds[-1], 1) for dag, seconds in found.items()}, flush=True)
    return found


def seconds_of(airflow: DrivenAirflow, dag: str, interval: str) -> float:
    began = time.perf_counter()
    ended = airflow.wait(airflow.trigger(dag, conf={"interval": interval} if dag == OURS else {}), RUN_SECONDS)
    if ended.state != "success":
        raise RuntimeError(f"{dag} ended as {ended.state}")
    return time.perf_counter() - began


def write_project(folder: Path) -> Settings:
    from stagehold.settings import PROJECT

    given = ["source", *(f"stage_{number}" for number in range(1, STAGES))]
    (folder / "handover_jobs.py").write_text(
        HEADER + "".join(JOB.format(number=number, given=name) for number, name in enumerate(given, start=1))
    )
    (folder / "submitted.py").write_text(SUBMITTED)
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / f"{OURS}.yaml").write_text("\n".join(pipeline_lines(given)) + "\n")
    shutil.copytree(PROJECT / "plugins", folder / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "dags").mkdir()
    shutil.copy(PROJECT / "dags" / "stagehold_pipelines.py", folder / "dags")
    settings = load_settings()
    (folder / "dags" / "submit_chain.py").write_text(chain(folder, settings))
    write_rows(folder / "home" / "lake" / "raw")
    places = {
        "home": f"{folder}/home",
        "project": str(folder),
        "pipelines": f"{folder}/pipelines",
        "suites": f"{folder}/suites",
    }
    return Settings(**places, cache=settings.cache, spark_port=15115, airflow_port=18115)


def pipeline_lines(given: Sequence[str]) -> list[str]:
    lines = [f"pipeline: {OURS}", "stages:"]
    for number, name in enumerate(given, start=1):
        lines += [f"  stage_{number}:", f"    job: handover_jobs:stage_{number}", "    output: {type: blocking}"]
        source = f'    source: {{kind: parquet, path: "${{lake}}/raw/*.parquet", splits: {PARTITIONS}}}'
        lines.append(source if number == 1 else f"    inputs: {{{name}: forward}}")
    return lines


def chain(folder: Path, settings: Settings) -> str:
    confs = {
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    python_path = os.pathsep.join([str(folder), *sys.path])
    environment = {"PYTHONPATH": python_path, "JAVA_HOME": str(java_home(settings)), "PYSPARK_PYTHON": sys.executable}
    return DAG.format(
        dag=THEIRS,
        stages=STAGES,
        raw=f"{folder}/home/lake/raw",
        out=f"{folder}/submitted",
        script=f"{folder}/submitted.py",
        jars=",".join(map(str, jar_paths(settings))),
        conf=confs,
        env=environment,
    )


def write_rows(raw: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    raw.mkdir(parents=True)
    for part in range(PARTITIONS):
        pq.write_table(
            pa.table({"id": pa.array(range(part * ROWS, (part + 1) * ROWS), pa.int64())}), raw / f"{part}.parquet"
        )


def fetch_provider(folder: Path) -> str:
    target = str(folder / "provider")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        target,
        "apache-airflow-providers-apache-spark",
    ]
    subprocess.run(command, check=True)
    return target


def show(measured: dict[str, list[float]]) -> None:
    ratios = [theirs / ours for ours, theirs in zip(measured[OURS], measured[THEIRS], strict=True)]
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("apache-airflow", "pyspark", "delta-spark", "deltalake")}
    facts |= {
        "stages": STAGES,
        "partitions": PARTITIONS,
        "rows": ROWS * PARTITIONS,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.write_text(json.dumps(facts | {"seconds": measured, "ratios": ratios}, indent=2) + "\n")
    for dag, seconds in measured.items():
        print(f"{dag:14} median {statistics.median(seconds):6.1f} s for {STAGES} stages")
    print(
        f"{OURS} is {statistics.median(ratios):.1f} times cheaper "
        f"({', '.join(f'{ratio:.1f}' for ratio in sorted(ratios))})"
    )


if __name__ == "__main__":
    main()
