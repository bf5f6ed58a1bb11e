"""A worker of Celery that is told to end, or is lost, in the middle of a wave, and another one in its place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.deployed import CELERY, HAS_CELERY, Deployed, Kind, Shape, deployed
from tests.e2e.signalled import (
    FINISHED,
    SIGNALLED,
    UNASKED,
    WAVE,
    assert_computed_once,
    ends,
    failures,
    in_second_wave,
)
from tests.e2e.stack import RUN_SECONDS, Stack, thaw, until
from tests.postgres import PROGRAMS

from stagehold.local.airflow_client import DagRun
from stagehold.local.demo.sample import make_sample
from stagehold.model.records import AttemptState, FailureClass
from stagehold.spark.processes import session_members

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not HAS_CELERY, reason="this machine has no redis-server, or no provider of Celery"),
    pytest.mark.skipif(not PROGRAMS, reason="this machine has no PostgreSQL"),
]

LOST = (AttemptState.FAILED, FailureClass.ENVIRONMENT, "worker_lost")
SHAPE = Shape({"signalled": SIGNALLED}, executor=CELERY, schedulers=1, workers=1, silent_seconds=30)


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, Stack]]:
    folder = tmp_path_factory.mktemp("celery")
    make_sample(folder / "home" / "lake", 0.01)
    with deployed(folder, SHAPE) as (airflow, client):
        yield airflow, Stack(airflow.settings, client, "signalled", root=os.getpid())


def ended(airflow: Deployed) -> int:
    """With which code the worker has ended; another one takes its place."""
    worker = airflow.process(Kind.WORKER)
    code = worker.wait(RUN_SECONDS)
    airflow.start(Kind.WORKER)
    return code


def finish(stack: Stack, run: DagRun, interval: str, epochs: list[int]) -> None:
    """Nobody does anything."""
    stack.finish(run)
    assert_computed_once(stack, interval, epochs)


def test_a_worker_whose_main_process_is_told_to_end_lets_its_task_end(celery: tuple[Deployed, Stack]) -> None:
    """As by `kill`."""
    airflow, stack = celery
    run, task = in_second_wave(stack, "main")
    airflow.process(Kind.WORKER).terminate()
    thaw(task)
    assert ended(airflow) == 0
    finish(stack, run, "main", [1] * 2 * WAVE)
    assert ends(stack, run) == [FINISHED]


def test_a_task_of_a_worker_all_of_whose_processes_are_told_to_end_goes_on_by_itself(
    celery: tuple[Deployed, Stack],
) -> None:
    """As by systemd, and in a container that passes signals on."""
    airflow, stack = celery
    run, task = in_second_wave(stack, "all")
    for pid in session_members(airflow.process(Kind.WORKER).pid):
        os.kill(pid, signal.SIGTERM)
    thaw(task)
    ended(airflow)
    finish(stack, run, "all", [1] * WAVE + [2] * WAVE)
    assert ends(stack, run) == UNASKED, failures(stack, run)


def test_a_task_of_a_worker_that_is_lost_goes_on_on_another_one_by_itself(celery: tuple[Deployed, Stack]) -> None:
    """As with its machine."""
    airflow, stack = celery
    run, task = in_second_wave(stack, "lost")
    airflow.kill(Kind.WORKER)
    until(lambda: not Path(f"/proc/{task}").exists(), "its task has ended")
    ended(airflow)
    finish(stack, run, "lost", [1] * WAVE + [2] * WAVE)
    assert ends(stack, run) == [LOST, FINISHED], failures(stack, run)
