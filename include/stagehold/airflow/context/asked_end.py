"""Whether somebody asked Airflow for the end of a task that is told to end. Its state tells: while nobody asked, the
task is still running, or Airflow will try it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any

from airflow.sdk import TaskInstanceState

ASK_SECONDS = 2.0  # of the five seconds after which Airflow kills the task

# Each state that a running task gets when somebody asks for its end; a task is skipped if its run took too long.
ASKED: Mapping[TaskInstanceState, str] = {
    TaskInstanceState.FAILED: "in Airflow, where its task was set to failed",
    TaskInstanceState.SUCCESS: "in Airflow, where its task was set to success",
    TaskInstanceState.SKIPPED: "in Airflow, where its task was skipped, as of a run that takes longer than it may",
    TaskInstanceState.RESTARTING: "in Airflow, where its task was cleared",
    TaskInstanceState.REMOVED: "in Airflow, where its DAG has no such task any more",
}
DELETED = "in Airflow, where its task was deleted"


def asked_end(task_instance: Any, patience: float = ASK_SECONDS) -> str | None:
    """Who asked for the end of the task, in words; None if nobody did, or Airflow does not answer in time. In that case
    Airflow itself is in trouble, and told the task to end for that reason.
    """
    answer: Future[str | None] = Future()
    Thread(target=_ask, args=(task_instance, answer), daemon=True).start()
    try:
        return answer.result(patience)
    except Exception:  # noqa: BLE001 - whatever keeps it from answering
        return None


def _ask(task_instance: Any, answer: Future[str | None]) -> None:
    try:
        answer.set_result(_asked(task_instance))
    except Exception as error:  # noqa: BLE001 - for whoever waits
        answer.set_exception(error)


def _asked(task_instance: Any) -> str | None:
    states = task_instance.get_task_states(
        dag_id=task_instance.dag_id,
        map_index=task_instance.map_index,
        task_ids=[task_instance.task_id],
        run_ids=[task_instance.run_id],
    )
    found = list(states.get(task_instance.run_id, {}).values())
    if not found:
        return DELETED
    return ASKED.get(TaskInstanceState(found[0])) if found[0] else None
