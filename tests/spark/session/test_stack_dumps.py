"""The stacks of Spark's Python workers, without Spark: its daemon forks a worker for whoever connects to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from pyspark.serializers import read_int

from stagehold.settings import Settings
from stagehold.spark.processes import catches, python_environment
from stagehold.spark.server.python_daemon import STACKS
from stagehold.spark.session.watchdog import stacks_logged


@pytest.fixture
def daemon(tmp_path):
    command = [sys.executable, "-m", "stagehold.spark.server.python_daemon", "pyspark.worker"]
    environment = {
        **python_environment(Settings(home=str(tmp_path))),
        "PYTHON_WORKER_FACTORY_SECRET": "x",
        STACKS: str(tmp_path / "stacks"),
    }
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_a_worker_says_what_it_does_when_it_is_asked_and_lives_on(daemon, tmp_path):
    port = read_int(daemon.stdout)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        worker = read_int(connection.makefile("rb"))
        time.sleep(0.5)
        assert catches(worker, signal.SIGUSR1)
        for _ in range(2):
            said = stacks_logged([worker], signal.SIGUSR1, tmp_path / "stacks", 0.2).decode()
            assert "in worker" in said
            assert "most recent call first" in said
        os.kill(worker, signal.SIGKILL)


def test_a_process_that_would_not_survive_the_question_is_not_asked():
    with subprocess.Popen(["sleep", "60"]) as other:
        assert not catches(other.pid, signal.SIGUSR1)
        other.kill()
    assert not catches(0, signal.SIGUSR1)
