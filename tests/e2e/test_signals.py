"""Processes that are told to end in the middle of a wave, on a real Airflow with a real Spark: who asked for that?"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.signalled import STAGE, UNASKED, WAVE, assert_computed_once, ends, failures, in_second_wave
from tests.e2e.stack import RUN_SECONDS, Stack, parent_of, thaw, until

from stagehold.local.airflow_client import DagRun
from stagehold.local.local_services import airflow_health
from stagehold.model.states import ATTEMPT
from stagehold.run.faults import FaultAction, Point, inject

pytestmark = pytest.mark.e2e

AGAIN_SECONDS = 20
HEARTBEAT_SECONDS = 30  # a task's process asks Airflow every second or so whether it may go on


@pytest.fixture(scope="module")
def signalled(stack: Stack) -> Stack:
    return replace(stack, pipeline="signalled")


def hanging(stack: Stack, interval: str) -> DagRun:
    """A run whose task hangs when it has written its second wave, and published nothing of it."""
    fault = inject(stack.settings.home_path, Point.AFTER_WRITE, STAGE, 2, FaultAction.HANG, interval)
    run = stack.start(interval)
    until(lambda: not fault.exists(), "the task hangs")
    return run


def tell_to_end(pid: int) -> None:
    """As whoever ends a service does, again after a while: Airflow's handler raises, and what is raised is lost if the
    signal meets the garbage collector.
    """
    for _ in range(RUN_SECONDS // AGAIN_SECONDS):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        with suppress(AssertionError):
            until(lambda: not Path(f"/proc/{pid}").exists(), "it has ended", AGAIN_SECONDS)
            return


def ended(stack: Stack, run: DagRun) -> bool:
    return all(ATTEMPT.is_terminal(attempt.state) for attempt in stack.attempts(run))


@pytest.mark.parametrize("of_whom", [lambda task: task, parent_of], ids=["runner", "supervisor"])
def test_a_task_that_is_told_to_end_goes_on_by_itself(signalled: Stack, of_whom: Callable[[int], int], request):
    """As in a pod that is evicted, or on a machine that is drained."""
    interval = request.node.callspec.id
    run, task = in_second_wave(signalled, interval)
    os.kill(of_whom(task), signal.SIGTERM)
    thaw(task)
    signalled.finish(run)
    assert ends(signalled, run) == UNASKED
    assert "was told to end (SIGTERM), which nobody had asked for" in str(failures(signalled, run)[0])
    assert_computed_once(signalled, interval, [1] * WAVE + [2] * WAVE)


@pytest.mark.parametrize("service", ["scheduler", "api-server"])
def test_a_service_that_is_told_to_end_ends_no_task(signalled: Stack, service: str):
    run, task = in_second_wave(signalled, service)
    before = signalled.service(service).pid
    thaw(task)
    tell_to_end(before)
    until(lambda: signalled.service(service).pid != before, f"{service} was started again")
    until(lambda: airflow_health(signalled.settings), "Airflow answers")
    signalled.finish(run)
    assert_computed_once(signalled, service, [1] * 2 * WAVE)


def test_what_somebody_asked_for_is_told_apart(signalled: Stack):
    cleared, marked = hanging(signalled, "cleared"), hanging(signalled, "marked")
    signalled.airflow.clear(cleared)
    signalled.airflow.mark_failed(marked, STAGE)
    signalled.finish(marked, expected="failed")
    until(lambda: ended(signalled, marked), "the attempt has ended", HEARTBEAT_SECONDS)
    assert failures(signalled, marked) == ["cancelled in Airflow, where its task was set to failed"]
    signalled.finish(cleared)
    assert failures(signalled, cleared) == ["cancelled in Airflow, where its task was cleared", None]
    assert_computed_once(signalled, "cleared", [1] * WAVE + [2] * WAVE)
