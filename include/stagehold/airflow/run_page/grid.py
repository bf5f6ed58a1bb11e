"""All that the page of a run shows, put together. Pure; `facts` gathers what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.looked import AS_RECORDED, Looked
from stagehold.airflow.gates.unmet import GateFailure, gate_failures
from stagehold.airflow.restores.told import RestoredFrom
from stagehold.airflow.run_page.attempts import AttemptLine, attempt_lines, failure_lines
from stagehold.airflow.run_page.cells import PartitionCell
from stagehold.airflow.run_page.facts import RunFacts
from stagehold.airflow.run_page.origins import Origins, origins
from stagehold.airflow.run_page.preview import ResumePreview, resume_preview
from stagehold.airflow.run_page.stages import ShownStage, StageRow, failing_first, shown_stages
from stagehold.airflow.runs.clearing import ACTIVE_RUN_STATES, SUCCESS
from stagehold.errors import RunStillActive
from stagehold.model.records import Event, RunState
from stagehold.model.standing import CellState, DeclaredStage, Standing, together
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.spec.pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from stagehold.airflow.runs.dag_runs import StageholdDagRun

NOT_ALLOWED = (
    "You may see this run but not clear its tasks, so you cannot resume it. Ask somebody who may edit the DAG."
)
NOT_PLANNED = "What a resume would do is being worked out."


@dataclass(frozen=True)
class Resumed:
    """Who pressed Resume last, and when."""

    by: str
    at: datetime

    @staticmethod
    def of(event: Event | None) -> Resumed | None:
        return Resumed(event.subject, event.recorded_at) if event else None


@dataclass(frozen=True)
class RunGrid:
    """Everything on the page of one run. ``stale`` partitions are consumable as well, and run again. ``may_change``
    says whether its reader may resume it or waive something, ``unmet`` how many verdicts of its gates say no, of
    whatever severity. ``whole`` is said of what is on record, whether or not it runs again. Of a run with very many
    partitions the first answer is not ``planned``: it has no stages, and no word about a resume; nor is one of a run
    whose lake cannot be looked into, which ``looked`` says.
    """

    dag_id: str
    run_id: str
    pipeline: str
    interval: str
    state: str
    ledger_state: RunState | None
    active: bool
    headline: str
    consumable: int
    stale: int
    released: int
    partitions: int
    whole: bool
    origins: Origins
    planned: bool
    stages: tuple[StageRow, ...]
    attempts: tuple[AttemptLine, ...]
    failures: tuple[AttemptLine, ...]
    gate_failures: tuple[GateFailure, ...]
    resume: ResumePreview
    resumed: Resumed | None
    restore: RestoredFrom | None
    may_change: bool
    unmet: int
    looked: Looked


@dataclass(frozen=True)
class LaidOut:
    """A page, and the cells of all its stages by their names, of which the page may have strips only."""

    grid: RunGrid
    cells: Mapping[str, tuple[PartitionCell, ...]]


def laid_out(facts: RunFacts) -> LaidOut:
    """As somebody sees it who may resume the run."""
    shown = shown_stages(facts)
    return LaidOut(_grid(facts, shown), {one.row.name: one.cells for one in shown})


def run_grid(facts: RunFacts) -> RunGrid:
    return laid_out(facts).grid


def seen_by(grid: RunGrid, dag_run: StageholdDagRun, *, may_resume: bool) -> RunGrid:
    """The same for this reader. If the run was resumed since the page was made, that is said; if it has ended since,
    the page stays as it was until it is made anew, as nothing else in it is about a run that has ended.
    """
    told = grid
    if not grid.active or dag_run.state in ACTIVE_RUN_STATES:
        told = _with_state(grid, dag_run)
    if may_resume:
        return told
    refusal = told.resume.refusal or NOT_ALLOWED
    return replace(told, may_change=False, resume=replace(told.resume, refusal=refusal))


def _with_state(grid: RunGrid, dag_run: StageholdDagRun) -> RunGrid:
    state, active = dag_run.state, dag_run.state in ACTIVE_RUN_STATES
    refusal = grid.resume.refusal
    if active and refusal is None:
        refusal = str(RunStillActive(f"{dag_run.dag_id} {dag_run.run_id}", state))
    resume = replace(grid.resume, refusal=refusal)
    return replace(grid, state=state, active=active, headline=_headline(dag_run, grid), resume=resume)


def unplanned(dag_run: StageholdDagRun, standing: Standing, looked: Looked = AS_RECORDED) -> RunGrid:
    """What the ledger's counts alone can say."""
    grid = RunGrid(
        dag_id=dag_run.dag_id,
        run_id=dag_run.run_id,
        pipeline=dag_run.request.pipeline.name,
        interval=dag_run.request.interval,
        state=dag_run.state,
        ledger_state=None,
        active=dag_run.state in ACTIVE_RUN_STATES,
        headline="",
        consumable=standing.consumable,
        stale=0,
        released=standing.released,
        partitions=standing.total,
        whole=standing.whole,
        origins=origins((), dag_run.request.run_id),
        planned=False,
        stages=(),
        attempts=(),
        failures=(),
        gate_failures=(),
        resume=ResumePreview(looked.problem or NOT_PLANNED, (), 0, 0, 0),
        resumed=None,
        restore=None,
        may_change=True,
        unmet=0,
        looked=looked,
    )
    return replace(grid, headline=_headline(dag_run, grid))


def _grid(facts: RunFacts, shown: tuple[ShownStage, ...]) -> RunGrid:
    dag_run, pipeline = facts.dag_run, facts.dag_run.request.pipeline
    stored = [one.row for one in shown if one.row.stored]
    grid = RunGrid(
        dag_id=dag_run.dag_id,
        run_id=dag_run.run_id,
        pipeline=pipeline.name,
        interval=dag_run.request.interval,
        state=dag_run.state,
        ledger_state=facts.ledger_state,
        active=dag_run.state in ACTIVE_RUN_STATES,
        headline="",
        consumable=sum(row.consumable for row in stored),
        stale=sum(row.counts.get(CellState.STALE, 0) for row in stored),
        released=sum(row.counts.get(CellState.RELEASED, 0) for row in stored),
        partitions=sum(row.partitions for row in stored),
        whole=_standing(facts).whole,
        origins=origins((cell for one in shown if one.row.stored for cell in one.cells), dag_run.request.run_id),
        planned=True,
        stages=failing_first([one.row for one in shown]),
        attempts=attempt_lines(facts),
        failures=failure_lines(facts),
        gate_failures=tuple(_gate_failures(facts)),
        resume=resume_preview(facts),
        resumed=Resumed.of(facts.resumed),
        restore=facts.restore,
        may_change=True,
        unmet=sum(map(len, facts.gate_failures.values())),
        looked=facts.looked,
    )
    return replace(grid, headline=_headline(dag_run, grid))


def _standing(facts: RunFacts) -> Standing:
    """What is on record, of as many partitions as the plan knows, without what is gone though it was not released."""
    pipeline = facts.dag_run.request.pipeline
    return together(_stage_standing(one, pipeline, facts) for one in pipeline.stages if one.output.type.stored)


def _stage_standing(stage: Stage, pipeline: Pipeline, facts: RunFacts) -> Standing:
    decisions = facts.plan.of(stage.name)
    healed = {one.partition for one in decisions if one.action is Action.HEAL}
    records = (one for one in facts.recorded.get(stage.id, ()) if one.partition < len(decisions))
    there = (one for one in records if one.partition not in healed or not one.state.readable)
    declared = DeclaredStage(stage.id, len(decisions), pipeline.is_result(stage))
    return Standing.of(declared, Counter(one.state for one in there))


def _headline(dag_run: StageholdDagRun, grid: RunGrid) -> str:
    failed = [task.name for task in dag_run.tasks if task.state == "failed"]
    how = "Cancelled" if grid.ledger_state is RunState.CANCELED else "Failed"
    tally = f"{grid.consumable} of {grid.partitions} partitions are consumable"
    if grid.stale:
        tally += f", {grid.stale} more will run again"
    if grid.released:
        tally += f", {grid.released} released"
    if dag_run.state in ACTIVE_RUN_STATES:
        return f"Running: {tally}"
    if grid.ledger_state is RunState.SUSPENDED:
        return f"Suspended: {tally}"
    if failed:
        return f"{how} at {', '.join(failed)}: {tally}"
    if dag_run.state == SUCCESS and not grid.whole:
        return f"Success, but not whole: {tally}"
    return f"{dag_run.state.capitalize()}: {tally}"


def _gate_failures(facts: RunFacts) -> Iterator[GateFailure]:
    for stage in facts.dag_run.request.pipeline.stages:
        records, failed = facts.recorded.get(stage.id, ()), facts.gate_failures.get(stage.id, ())
        words, outdated = facts.waivers.get(stage.name, ()), _computed(stage, facts.plan)
        yield from gate_failures(stage.name, stage.gate, records, failed, words, outdated)


def _computed(stage: Stage, plan: ResumePlan) -> frozenset[int]:
    return frozenset(one.partition for one in plan.of(stage.name) if one.action.computes)
