"""Which states of Airflow's task say that somebody asked for its end; all others are named here."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.airflow

RUN, TASK = "scheduled__1", "orders"
UNASKED = {
    "running",  # nobody has touched it: an evicted pod, a drained machine, heartbeats that failed
    "up_for_retry",  # Airflow heard nothing of it for too long, and tries again
    "scheduled",  # ... and is about to
    "queued",
    None,
    "upstream_failed",  # the rest is never the state of a task that works
    "up_for_reschedule",
    "deferred",
    "awaiting_input",
}


@pytest.fixture(scope="module")
def asked_end():
    from stagehold.airflow.context.asked_end import asked_end

    return asked_end


def instance(answer, map_index=-1):
    """A task instance whose state Airflow answers so."""

    def get_task_states(dag_id, map_index, task_ids, run_ids):
        assert (dag_id, task_ids, run_ids) == ("sales", [TASK], [RUN])
        name = TASK if map_index < 0 else f"{TASK}_{map_index}"
        return answer(name)

    return SimpleNamespace(
        dag_id="sales", run_id=RUN, task_id=TASK, map_index=map_index, get_task_states=get_task_states
    )


def in_state(state, map_index=-1):
    return instance(lambda name: {RUN: {name: state}}, map_index)


def test_every_state_of_airflow_tells_whether_somebody_asked_for_the_end(asked_end):
    from airflow.sdk import TaskInstanceState

    asked = {state.value for state in TaskInstanceState if asked_end(in_state(state.value))}
    assert asked == {"failed", "success", "skipped", "restarting", "removed"}
    assert {state.value for state in TaskInstanceState} | {None} == asked | UNASKED
    assert asked_end(in_state(None)) is None


@pytest.mark.parametrize("map_index", [-1, 3])
def test_it_is_said_what_was_asked(asked_end, map_index):
    assert asked_end(in_state("failed", map_index)) == "in Airflow, where its task was set to failed"
    assert asked_end(in_state("restarting", map_index)) == "in Airflow, where its task was cleared"


def test_a_task_that_is_there_no_more_was_deleted_by_somebody(asked_end):
    assert asked_end(instance(lambda name: {})) == "in Airflow, where its task was deleted"


def test_an_airflow_that_does_not_answer_was_not_asked_by_anybody(asked_end):
    """Its api-server is away, which is why it tells the task to end; and it kills what is left after five seconds."""
    told = threading.Event()
    assert asked_end(instance(lambda name: told.wait()), patience=0.2) is None
    told.set()

    def refuse(name):
        raise ConnectionError(name)

    assert asked_end(instance(refuse)) is None
