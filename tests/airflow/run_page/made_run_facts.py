"""Facts of a run with one stage, made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from tests.plan.resume.situations import DECISIONS

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.run_page.run_facts import RunFacts
from stagehold.airflow.run_page.run_grid import run_page
from stagehold.airflow.run_page.run_responses import RunGrid
from stagehold.airflow.runs.task_clearing import DagTask
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import (
    Attempt,
    AttemptState,
    Cell,
    PartitionRecord,
)
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline, Stage

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
KEY = ComputeKey("code", "settings", "environment", "params", "inputs")
RUN = "pipe/manual"


def record(partition: int, state: PartitionState = PartitionState.CONSUMABLE, **changes: Any) -> PartitionRecord:
    made = PartitionRecord(
        cell=Cell("pipe", "joined-uid", "day"),
        partition=partition,
        state=state,
        run_id=RUN,
        attempt_id="attempt",
        epoch=3,
        wave=1,
        table="table",
        version=7,
        files=(),
        rows=11,
        fingerprint="",
        compute_key=str(KEY),
        recorded_at=NOW,
    )
    return replace(made, **changes)


def run_grid(made: RunFacts) -> RunGrid:
    grid, _ = run_page(made)
    return grid


def attempt(epoch: int, state: AttemptState, failure: str | None = None) -> Attempt:
    return Attempt(f"attempt-{epoch}", RUN, "pipe", "day", "joined", epoch, state, NOW, failure=failure)


def facts(actions: list[Action], records: list[PartitionRecord], run_state: str = "failed", **changes: Any) -> RunFacts:
    stage = Stage(
        name="joined",
        uid="joined-uid",
        job="jobs.x:joined",
        partitions=len(actions),
        max_parallelism=128,
        gate="joined",
    )
    decisions = tuple(
        DECISIONS[action]("joined", index, because(f"because {action}"), KEY) for index, action in enumerate(actions)
    )
    dag_run = SimpleNamespace(
        place=DagPlace("pipe"),
        places={"pipe": DagPlace("pipe")},
        run_id="manual",
        state=run_state,
        tasks=(DagTask("joined", "joined", run_state),),
        request=SimpleNamespace(
            pipeline=Pipeline(name="pipe", file="pipe.yaml", stages=(stage,)), interval="day", run_id=RUN, restore=None
        ),
    )
    made = RunFacts(
        dag_run=dag_run,  # type: ignore[arg-type]
        regions=(Region("joined", ("joined",), ()),),
        plan=ResumePlan(decisions, {"joined": decisions}),
        recorded={"joined-uid": tuple(records)},
        attempts=(),
        traces={},
        gate_failures={},
    )
    return replace(made, **changes)


REUSE, RUN_IT, HEAL, BLOCKED = Action.REUSE, Action.RUN, Action.HEAL, Action.BLOCKED
