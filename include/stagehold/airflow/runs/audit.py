"""What people did to a run by Airflow's own pages and routes, from its audit log. Only for the api-server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.models.log import Log
from sqlalchemy import select

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_TASKS = 5  # tasks that are named; a resume of many tasks is one line

# Airflow names an event after the function of its route.
EVENTS = ("trigger_dag_run", "patch_dag_run", "clear_dag_run", "post_clear_task_instances", "patch_task_instance")


def deeds_of_people(dag_id: str, run_id: str, session: Session) -> Iterator[tuple[datetime, str]]:
    """When somebody marked, cleared or triggered the run or its tasks, and who; the oldest first.

    A request that changes many runs at once names none of them in Airflow's log, so it is not found.
    """
    query = select(Log).where(Log.dag_id == dag_id, Log.run_id == run_id, Log.event.in_(EVENTS)).order_by(Log.id)
    for log in session.scalars(query):
        deed = _deed(log, _sent(log.extra))
        if deed and log.dttm:
            yield log.dttm, f"{log.owner_display_name or log.owner or 'somebody'} {deed}, in Airflow"


def _deed(log: Log, sent: Mapping[str, Any]) -> str | None:
    """The change in words; None for a change of something else, such as a note."""
    match log.event:
        case "trigger_dag_run":
            return "triggered the run"
        case "clear_dag_run":
            return "cleared the run"
        case "post_clear_task_instances":
            return f"cleared {_tasks(sent.get('task_ids') or ())}"
        case "patch_dag_run" if sent.get("state"):
            return f"marked the run {sent['state']}"
        case "patch_task_instance" if sent.get("new_state"):
            return f"marked {log.task_id} {sent['new_state']}"
    return None


def _sent(extra: str | None) -> Mapping[str, Any]:
    try:
        sent = json.loads(extra or "{}")
    except ValueError:
        return {}
    return sent if isinstance(sent, dict) else {}


def _tasks(asked: Any) -> str:
    """Names of the tasks. Airflow accepts a name, or a name and the index of a mapped task."""
    names = list(dict.fromkeys(one if isinstance(one, str) else f"{one[0]}[{one[1]}]" for one in asked))
    if not names:
        return "all tasks"
    more = len(names) - MOST_TASKS
    return ", ".join(names[:MOST_TASKS]) + (f" and {more} more" if more > 0 else "")
