"""What somebody may do with savepoints of a pipeline, and of which of its runs one can be made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState

MOST_RUNS = 20
BY_AIRFLOW = "airflow"


@dataclass(frozen=True)
class RunChoice:
    """A run of this DAG; ``run_id`` is Airflow's."""

    run_id: str
    interval: str
    state: RunState
    started_at: datetime


@dataclass(frozen=True)
class SavepointChoices:
    """``may_change``: make and dispose; ``may_restore``: start a run with one."""

    may_change: bool
    may_restore: bool
    runs: tuple[RunChoice, ...]


def run_choices(dag_id: str, pipeline: str, ledger: Ledger) -> tuple[RunChoice, ...]:
    """The newest first. Those of commands have no page and no route that makes one."""
    runs = ledger.runs.recent(MOST_RUNS, pipeline)
    return tuple(_choice(run, dag_id) for run in runs if run.launcher == BY_AIRFLOW and _is_of(run, dag_id))


def _is_of(run: Run, dag_id: str) -> bool:
    return run.run_id.startswith(f"{dag_id}/")


def _choice(run: Run, dag_id: str) -> RunChoice:
    return RunChoice(run.run_id.removeprefix(f"{dag_id}/"), run.interval, run.state, run.started_at)
