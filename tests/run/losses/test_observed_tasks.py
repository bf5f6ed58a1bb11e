"""What a query observes while it writes a wave counts each row once, whatever becomes of its tasks."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle
from tests.conftest import QUICK_JAVA, free_port
from tests.run.losses.test_executor_loss import MASTER, _without_traces

from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.measure import StagedContent, measure, observing
from stagehold.lake.store.location import TableLocation
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.sessions import open_session, release_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SPECULATION = (
    "-Dspark.speculation=true -Dspark.speculation.interval=100ms -Dspark.speculation.quantile=0.5 "
    "-Dspark.speculation.multiplier=1.1 -Dspark.speculation.minTaskRuntime=500ms"
)
PARTITIONS, ROWS, UNLUCKY = 4, 4000, 2
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not know this module
Accident = Callable[[Path], None]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for each test: where tasks and executors failed before, soon nothing runs any more."""
    settings = Settings(
        home=str(tmp_path_factory.mktemp("observed")),
        spark_master=MASTER,
        spark_port=free_port(),
        spark_java_options=f"{QUICK_JAVA} {SPECULATION}",
        spark_memory="1g",
    )
    with _without_traces(), spark_server(settings):
        yield open_session(settings, "8e0ab1f4-0000-4000-8000-000000000001")
        release_session(settings, "8e0ab1f4-0000-4000-8000-000000000001")


def raised(_: Path) -> None:
    raise RuntimeError("an accident")


def worker_killed(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def executor_killed(_: Path) -> None:
    """The Java process whose Python this is, and with it what it had written for others to read."""
    pid = os.getpid()
    while "java" not in Path(f"/proc/{pid}/comm").read_text():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    time.sleep(10)


def slow(again: Path) -> None:
    """Goes on once another task has done the same, which Spark starts since this one is slow."""
    until = time.monotonic() + 60
    while not again.exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def with_accident(frame: DataFrame, marks: Path, accident: Accident) -> DataFrame:
    """The frame, in whose task of the unlucky partition something happens at the first try, behind its last row."""

    def passed_on(batches: Iterator[Any]) -> Iterator[Any]:
        unlucky = False
        for batch in batches:
            unlucky = unlucky or bool((batch["_partition"] == UNLUCKY).any())
            yield batch
        if not unlucky:
            return
        try:
            (marks / "first").touch(exist_ok=False)
        except FileExistsError:
            (marks / "again").touch()
            return
        accident(marks / "again")

    return frame.mapInPandas(passed_on, frame.schema)


@pytest.mark.parametrize("accident", [raised, worker_killed, executor_killed, slow])
def test_rows_of_tasks_that_fail_are_lost_or_run_twice_are_observed_once(
    cluster: SparkSession, tmp_path: Path, accident: Accident
) -> None:
    from pyspark.sql.connect.observation import Observation

    frame = cluster.range(0, ROWS, 1, 3).selectExpr("id", f"CAST(id % {PARTITIONS} AS int) AS _partition")
    schema, partitions, observation = frame.schema, tuple(range(PARTITIONS)), Observation("all")
    files = WaveFiles(TableLocation("s", str(tmp_path / "lake"), "cell", None), "attempt", 1, partitions)
    observed = partial(observing, schema=schema, partitions=partitions, name=observation)
    (tmp_path / "marks").mkdir()
    staged = stage_frame(frame, files, lambda cut: with_accident(observed(cut), tmp_path / "marks", accident))
    assert (tmp_path / "marks" / "again").exists(), "the task was tried twice"
    rows, *values = observation.get.values()
    assert rows == ROWS
    assert StagedContent(staged, schema).observed(values, partitions) == measure(cluster, staged, schema, partitions)


def test_above_a_shuffle_that_is_computed_again_rows_would_be_observed_twice(
    cluster: SparkSession, tmp_path: Path
) -> None:
    """So what is observed has to be in the tasks that write: Spark adds up all tasks of a stage before the last one."""
    from pyspark.sql import functions as F
    from pyspark.sql.connect.observation import Observation

    observation = Observation("below")
    frame = cluster.range(0, ROWS, 1, 3).selectExpr("id", f"CAST(id % {PARTITIONS} AS int) AS _partition")
    below = frame.observe(observation, F.count(F.lit(1)).alias("rows"))
    (tmp_path / "marks").mkdir()
    cut = below.repartition(PARTITIONS, "_partition")
    with_accident(cut, tmp_path / "marks", executor_killed).write.parquet(str(tmp_path / "lake"))
    assert (tmp_path / "marks" / "again").exists()
    assert cluster.read.parquet(str(tmp_path / "lake")).count() == ROWS
    assert observation.get["rows"] > ROWS
