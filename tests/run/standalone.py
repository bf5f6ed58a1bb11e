"""A standalone cluster of pyspark's own master and workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import free_port
from tests.run.busy import until

from stagehold.settings import Settings
from stagehold.spark.server.configuration import SPARKS_OPTIONS, scala_version, spark_home
from stagehold.spark.server.java import java_home

DAEMON = "org.apache.spark.deploy"
WORKERS = 2


@dataclass
class Cluster:
    """A master and its workers, each in a folder of its own. ``begun`` counts those that are lost, too."""

    master: str
    folder: Path
    started: ExitStack
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    begun: int = 0

    def add_worker(self) -> None:
        self.begun += 1
        given = ("--work-dir", str(self.folder / f"{self.begun}"), "--cores", "1", "--memory", "1g", "--port", "0")
        self.workers.append(self.started.enter_context(daemon(self.folder, "worker.Worker", *given, self.master)))

    def await_workers(self) -> None:
        until(lambda: log_of(self.folder, "master.Master").count("Registering worker") >= self.begun, 60)

    def lose_worker(self) -> None:
        """Kill a worker with all that it has started, as the loss of its machine does."""
        lost = self.workers.pop()
        os.killpg(lost.pid, signal.SIGKILL)
        lost.wait()


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    port = free_port()
    with ExitStack() as started:
        started.enter_context(daemon(folder, "master.Master", "--port", str(port)))
        until(lambda: listens(port), 60)
        cluster = Cluster(f"spark://127.0.0.1:{port}", folder, started)
        for _ in range(WORKERS):
            cluster.add_worker()
        cluster.await_workers()
        yield cluster


@contextmanager
def daemon(folder: Path, name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    home = java_home(Settings())
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(home),
        "SPARK_SCALA_VERSION": scala_version(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }
    command = [str(home / "bin" / "java"), "-cp", f"{spark_home()}/jars/*", "-Xmx256m", *SPARKS_OPTIONS]
    command += [f"{DAEMON}.{name}", "--host", "127.0.0.1", "--webui-port", "0", *words]
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def log_of(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(errors="replace")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
