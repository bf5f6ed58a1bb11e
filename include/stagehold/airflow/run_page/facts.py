"""What the page of a run is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagehold.airflow.answering.looked import AS_RECORDED, Looked
from stagehold.airflow.restores.told import RestoredFrom
from stagehold.airflow.runs.clearing import ACTIVE_RUN_STATES
from stagehold.errors import StageholdError
from stagehold.model.records import Attempt, Event, GateResult, PartitionRecord, RunState, Waiver
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import Region

if TYPE_CHECKING:
    from stagehold.airflow.runs.dag_runs import StageholdDagRun

RESUMED = "resumed"  # the kind of the event that says who pressed Resume; its subject is the user


@dataclass(frozen=True)
class RunFacts:
    """What Airflow, the ledger and the planner say of one run;
    ``refusal`` is why nothing of it can be run, if nothing can. ``gate_failures`` are by stage id, and ``waivers``,
    those that hold now, by the names of stages. ``resumed`` is when somebody pressed Resume last. ``ledger_state`` is
    the run's in the ledger, which tells suspended and cancelled runs from failed ones; None before it has begun.
    """

    dag_run: StageholdDagRun
    regions: tuple[Region, ...]
    plan: ResumePlan
    recorded: Mapping[str, tuple[PartitionRecord, ...]]
    attempts: Sequence[Attempt]
    traces: Mapping[str, str]
    gate_failures: Mapping[str, Sequence[GateResult]]
    refusal: StageholdError | None = None
    restore: RestoredFrom | None = None
    waivers: Mapping[str, Sequence[Waiver]] = field(default_factory=dict)
    resumed: Event | None = None
    ledger_state: RunState | None = None
    looked: Looked = AS_RECORDED

    @property
    def suspended(self) -> bool:
        """Whether somebody stopped it behind its waves, so that nothing of it failed."""
        return self.dag_run.state not in ACTIVE_RUN_STATES and self.ledger_state is RunState.SUSPENDED
