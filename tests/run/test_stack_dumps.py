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

from stagehold.run.environment import python_environment
from stagehold.run.python_daemon import STACKS
from stagehold.run.stack_dumps import _catches, _said_by
from stagehold.settings import Settings


@pytest.fixture
def daemon(tmp_path):
    command = [sys.executable, "-m", "stagehold.run.python_daemon", "pyspark.worker"]
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
        assert _catches(worker, signal.SIGUSR1)
        for _ in range(2):
            said = _said_by([worker], signal.SIGUSR1, tmp_path / "stacks").decode()
            assert "in worker" in said
            assert "most recent call first" in said
        os.kill(worker, signal.SIGKILL)


def test_a_process_that_would_not_survive_the_question_is_not_asked():
    with subprocess.Popen(["sleep", "60"]) as other:
        assert not _catches(other.pid, signal.SIGUSR1)
        other.kill()
    assert not _catches(0, signal.SIGUSR1)
