"""A Spark server whose work runs in executors of their own, one of which is killed in the middle of a wave."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.run.busy import BusyJob, until
from tests.run.workbench import Workbench, ended

from stagehold.spark.server.server import running_server, spark_server
from stagehold.spark.session.sessions import open_session, release_session

pytestmark = pytest.mark.spark

MASTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    made = Workbench.make(tmp_path_factory.mktemp("cluster"), "")
    settings = replace(
        made.settings, spark_master=MASTER, spark_port=free_port(), spark_java_options=QUICK_JAVA, spark_memory="1g"
    )
    with _without_traces(), spark_server(settings):
        yield Workbench(settings)


@contextmanager
def _without_traces() -> Iterator[None]:
    """Workers of a local cluster keep their applications' folders in Spark's own."""
    spec = find_spec("pyspark")
    assert spec
    folder = Path(str(spec.origin)).parent / "work"
    before = set(folder.glob("app-*"))
    yield
    for left in set(folder.glob("app-*")) - before:
        shutil.rmtree(left, ignore_errors=True)


def executors(bench: Workbench) -> list[int]:
    server = running_server(bench.settings)
    assert server is not None
    found = subprocess.run(
        ["pgrep", "-s", str(server.pid), "-f", "CoarseGrainedExecutorBackend"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(pid) for pid in found.stdout.split()]


def number_of(executor: int) -> int:
    """A local cluster's executor works in a folder with its number."""
    return int(Path(f"/proc/{executor}/cwd").readlink().name)


def test_a_run_survives_an_executor_that_is_killed_in_the_middle_of_a_wave(bench: Workbench, tmp_path: Path) -> None:
    busy = BusyJob.put_into(bench, tmp_path)
    running = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r1", "--json")
    until(busy.works, 60)
    killed = max(executors(bench), key=number_of)  # the first one is needed by the next test
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in executors(bench), 20)
    busy.let_go()
    assert ended(running).counts == (0, 13)
    assert bench.published() == bench.expected()
    assert set(bench.epochs("numbers")) == {1}  # Spark repeated the lost tasks; the attempt did not notice


def test_an_executor_on_which_every_task_fails_is_left_out(bench: Workbench, tmp_path: Path) -> None:
    """It fails them so quickly that it would be given each of them again and again, until the query fails."""
    from pyspark.sql.functions import udf

    def unless_on_the_first(number):
        on_the_first = "0" in Path.cwd().parts
        with (tmp_path / "tasks").open("a") as tasks:
            tasks.write(f"{on_the_first}\n")
        if on_the_first:
            raise OSError(28, "No space left on device")
        time.sleep(0.2)
        return number

    name = str(uuid4())
    spark = open_session(bench.settings, name)
    until(lambda: len(executors(bench)) == 2, 20)
    rows = spark.range(0, 16, 1, 16).select(udf(unless_on_the_first, "long")("id").alias("id")).collect()
    release_session(bench.settings, name)
    tasks = (tmp_path / "tasks").read_text().split()
    assert (sorted(row.id for row in rows), tasks.count("False")) == (list(range(16)), 16)
    assert 2 <= tasks.count("True") <= 4  # two failures of each of two tasks at most
