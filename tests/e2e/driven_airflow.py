"""A client of a real Airflow that also does and sees what people do and see on Airflow's own pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from stagehold.local.airflow_client import AirflowClient, DagRun, path_of_dag, path_of_run, wait_for


@dataclass(frozen=True)
class TaskTry:
    """The newest try of a task in a run; ``state`` is empty before it is scheduled."""

    task_id: str
    state: str
    number: int
    started_at: datetime | None
    ended_at: datetime | None


class DrivenAirflow(AirflowClient):
    """Airflow by its public API, with all that only tests and measures need of it."""

    def tasks(self, dag_id: str, run_id: str) -> Mapping[str, TaskTry]:
        """The newest try of each task, by task id."""
        found = self._send("GET", f"{path_of_run(dag_id, run_id)}/taskInstances")["task_instances"]
        return {task["task_id"]: _task_try(task) for task in found}

    def wait(self, run: DagRun, seconds: float) -> DagRun:
        """Wait until the run has succeeded or failed; raises NotInTime when it does neither within ``seconds``."""
        wait_for(f"run {run.run_id} to end", seconds, lambda: self.run(run.dag_id, run.run_id).ended)
        return self.run(run.dag_id, run.run_id)

    def log_text(self, run: DagRun, task_id: str, number: int) -> str:
        """The log of one try, one event per line."""
        path = f"{path_of_run(run.dag_id, run.run_id)}/taskInstances/{quote(task_id, safe='')}/logs/{number}"
        content = self._send("GET", f"{path}?full_content=true")["content"]
        return "\n".join(str(line.get("event", line)) if isinstance(line, dict) else str(line) for line in content)

    def clear(
        self, run: DagRun, task_ids: Sequence[str] = (), *, downstream: bool = True, only_failed: bool = False
    ) -> tuple[str, ...]:
        """Have tasks of the run, or all, run again; gives the ids of those that were cleared."""
        body: dict[str, Any] = {
            "dag_run_id": run.run_id,
            "dry_run": False,
            "only_failed": only_failed,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        if task_ids:
            body["task_ids"] = list(task_ids)
        cleared = self._send("POST", f"{path_of_dag(run.dag_id)}/clearTaskInstances", body)["task_instances"]
        return tuple(task["task_id"] for task in cleared)

    def mark_failed(self, run: DagRun, task_id: str) -> None:
        """What "mark as failed" does in the UI: a task that is running is stopped."""
        task = f"{path_of_run(run.dag_id, run.run_id)}/taskInstances/{quote(task_id, safe='')}"
        self._send("PATCH", task, {"new_state": "failed"})


def _task_try(answer: Mapping[str, Any]) -> TaskTry:
    return TaskTry(
        task_id=answer["task_id"],
        state=answer["state"] or "",
        number=answer["try_number"],
        started_at=_moment(answer["start_date"]),
        ended_at=_moment(answer["end_date"]),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
