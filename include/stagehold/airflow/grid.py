"""What the run page shows: stages by partitions, what happened, and what a resume would do.
Pure; `api` gathers the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from stagehold.airflow.gates.unmet import GateFailure, gate_failures
from stagehold.airflow.restores.told import RestoredFrom
from stagehold.airflow.resume import ACTIVE_RUN_STATES, SUCCESS, TaskToClear, tasks_to_clear
from stagehold.errors import StageholdError
from stagehold.model.records import Attempt, AttemptState, GateResult, PartitionRecord, PartitionState, Waiver
from stagehold.model.states import ATTEMPT
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan
from stagehold.plan.resume.explanation import explain
from stagehold.plan.resume.waiving import is_waived
from stagehold.plan.split.regions import Region
from stagehold.plan.split.shares import newest_covering, share_of
from stagehold.plan.waves.skew import skew_text, skewed
from stagehold.run.attempt.putting import WAVE as WAVE_OF_PUTTING
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from stagehold.airflow.dag_runs import StageholdDagRun

NOT_ALLOWED = (
    "You may see this run but not clear its tasks, so you cannot resume it. Ask somebody who may edit the DAG."
)
SHOWN_FIRST = ("failed", "upstream_failed", "running", "up_for_retry")


class CellState(StrEnum):
    """What a partition is now: its recorded state, or one of three words for having no usable record."""

    CONSUMABLE = PartitionState.CONSUMABLE.value
    BLOCKED = PartitionState.BLOCKED.value
    RELEASED = PartitionState.RELEASED.value
    MISSING = "missing"
    RUNNING = "running"
    UNNEEDED = "unneeded"  # no reader runs that would have it stored


@dataclass(frozen=True)
class PartitionCell:
    """One partition. The fields after ``reason`` are None without a record; ``run_id`` is the run that computed it.

    ``skew`` says how much larger than the stage's others it is, None unless that is much. One that is ``restored`` is
    that of the checkpoint which the run begins with, whether or not the run has put it in its place yet. One that is
    ``waived`` does not meet what its gate asks for, and somebody said that it may be read all the same.
    """

    partition: int
    state: CellState
    action: Action
    reason: str
    rows: int | None = None
    bytes: int | None = None
    epoch: int | None = None
    wave: int | None = None
    version: int | None = None
    run_id: str | None = None
    recorded_at: datetime | None = None
    skew: str | None = None
    restored: bool = False
    waived: bool = False


@dataclass(frozen=True)
class ActionGroup:
    """Partitions of a stage that share what will happen to them and why."""

    action: Action
    reason: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class StageRow:
    """One stage. ``stored`` is False for outputs that are computed along, which have no partitions to look at.
    ``partitions`` are all but the unneeded ones.
    """

    name: str
    region: str
    job: str
    gate: str | None
    table: str | None
    stored: bool
    task_state: str | None
    consumable: int
    partitions: int
    cells: tuple[PartitionCell, ...]
    groups: tuple[ActionGroup, ...]


@dataclass(frozen=True)
class AttemptLine:
    """One attempt; ``region`` says its share, too; ``failure`` is the text for the user, None unless it failed.

    ``cause`` is the class of the failure and the rule that gave it; ``trace`` is its whole story, where one was kept.
    ``labels`` are what failure enrichers say of it.
    """

    region: str
    epoch: int
    state: AttemptState
    started_at: datetime
    ended_at: datetime | None
    failure: str | None
    cause: str | None
    trace: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class ResumePreview:
    """What the Resume button would do; ``refusal`` says why it cannot, None when it can.

    Those ``along`` are computed with their readers and not stored, and not counted in ``run``; of those that are
    reused, so many are to be ``restored``. Of those to ``judge`` the data is there, and read by their gate.
    """

    refusal: str | None
    tasks: tuple[TaskToClear, ...]
    reuse: int
    run: int
    along: int
    restored: int = 0
    judge: int = 0


@dataclass(frozen=True)
class RunGrid:
    """Everything on the page of one run. ``may_change`` says whether its reader may resume it or waive something,
    ``unmet`` how many verdicts of its gates say no, of whatever severity.
    """

    dag_id: str
    run_id: str
    pipeline: str
    interval: str
    state: str
    active: bool
    headline: str
    consumable: int
    released: int
    partitions: int
    stages: tuple[StageRow, ...]
    attempts: tuple[AttemptLine, ...]
    failures: tuple[AttemptLine, ...]
    gate_failures: tuple[GateFailure, ...]
    resume: ResumePreview
    restore: RestoredFrom | None
    may_change: bool
    unmet: int


@dataclass(frozen=True)
class RunFacts:
    """What Airflow, the ledger and the planner say of one run;
    ``refusal`` is why nothing of it can be run, if nothing can. ``gate_failures`` are by stage id, and ``waivers``,
    those that hold now, by the names of stages.
    """

    dag_run: StageholdDagRun
    regions: tuple[Region, ...]
    plan: ResumePlan
    recorded: Mapping[str, tuple[PartitionRecord, ...]]
    attempts: Sequence[Attempt]
    traces: Mapping[str, str]
    gate_failures: Mapping[str, Sequence[GateResult]]
    may_resume: bool
    refusal: StageholdError | None = None
    restore: RestoredFrom | None = None
    waivers: Mapping[str, Sequence[Waiver]] = field(default_factory=dict)


def run_grid(facts: RunFacts) -> RunGrid:
    """Lay the facts out as the page shows them."""
    dag_run, pipeline = facts.dag_run, facts.dag_run.request.pipeline
    rows = tuple(_stage_row(stage, facts) for stage in pipeline.stages)
    stored = [row for row in rows if row.stored]
    consumable, partitions = sum(row.consumable for row in stored), sum(row.partitions for row in stored)
    released = sum(cell.state is CellState.RELEASED for row in stored for cell in row.cells)
    return RunGrid(
        dag_id=dag_run.dag_id,
        run_id=dag_run.run_id,
        pipeline=pipeline.name,
        interval=dag_run.request.interval,
        state=dag_run.state,
        active=dag_run.state in ACTIVE_RUN_STATES,
        headline=_headline(facts, consumable, partitions, released),
        consumable=consumable,
        released=released,
        partitions=partitions,
        stages=rows,
        attempts=tuple(_attempt_line(attempt, attempt.failure, facts) for attempt in facts.attempts),
        failures=tuple(
            _attempt_line(attempt, failure, facts)
            for attempt in _newest(facts.attempts)
            if (failure := _failure(attempt, facts))
        ),
        gate_failures=tuple(_gate_failures(facts)),
        resume=resume_preview(facts),
        restore=facts.restore,
        may_change=facts.may_resume,
        unmet=sum(map(len, facts.gate_failures.values())),
    )


def resume_preview(facts: RunFacts) -> ResumePreview:
    """The resume as it would be carried out now, or why it is refused."""
    refusal = None if facts.may_resume else NOT_ALLOWED
    tasks: tuple[TaskToClear, ...] = ()
    try:
        tasks = clear_set(facts)
    except StageholdError as error:
        refusal = str(error)
    tally = facts.plan.tally
    restored = sum(one.restored and one.action is Action.REUSE for one in facts.plan.decisions)
    return ResumePreview(
        refusal=refusal,
        tasks=tasks,
        reuse=tally.reuse,
        run=tally.run,
        along=tally.along,
        restored=restored,
        judge=tally.judge,
    )


def clear_set(facts: RunFacts) -> tuple[TaskToClear, ...]:
    """:raises StageholdError: when nothing can be resumed now, not even by somebody who may."""
    dag_run = facts.dag_run
    if facts.refusal and dag_run.state not in ACTIVE_RUN_STATES:
        raise facts.refusal
    return tasks_to_clear(
        f"{dag_run.dag_id} {dag_run.run_id}", dag_run.state, regions=facts.regions, tasks=dag_run.tasks, plan=facts.plan
    )


def _stage_row(stage: Stage, facts: RunFacts) -> StageRow:
    region = next(region.name for region in facts.regions if stage.name in region.stages)
    running = _running(region, facts)
    records = {record.partition: record for record in facts.recorded.get(stage.id, ())}
    decisions = facts.plan.of(stage.name)
    skew = {partition: skew_text(found) for partition, found in skewed(list(records.values())).items()}
    put, words = _put(facts), facts.waivers.get(stage.name, ())
    cells = tuple(
        _cell(
            one,
            found := one.record if one.restored else records.get(one.partition),
            skew.get(one.partition),
            running=_has(running, one.partition),
            restored=one.restored or (found is not None and (found.attempt_id, found.wave) in put),
            waived=found is not None and bool(found.refused) and is_waived(found, words),
        )
        for one in decisions
    )
    return StageRow(
        name=stage.name,
        region=region,
        job=stage.job,
        gate=stage.gate,
        table=stage.output.table,
        stored=stage.name not in facts.plan.unstored,
        task_state=_task_state([task.state for task in facts.dag_run.tasks if task.region == region]),
        consumable=sum(cell.state is CellState.CONSUMABLE and cell.action is Action.REUSE for cell in cells),
        partitions=sum(cell.state is not CellState.UNNEEDED for cell in cells),
        cells=cells,
        groups=_groups(stage, facts.plan),
    )


def _put(facts: RunFacts) -> frozenset[tuple[str, int]]:
    """Attempts, each with the wave, that put what the run begins with in its place."""
    restore = facts.dag_run.request.restore
    if restore is None or restore.snapshot is None:
        return frozenset()
    own = (one for one in facts.attempts if one.restore == restore.identity)
    return frozenset((one.attempt_id, WAVE_OF_PUTTING) for one in own)


def _newest(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The newest attempt of each region, or of each of its partitions."""
    regions = dict.fromkeys(attempt.region for attempt in attempts)
    return tuple(
        found
        for region in regions
        for found in newest_covering((one for one in attempts if one.region == region), None)
    )


def _running(region: str, facts: RunFacts) -> tuple[Attempt, ...]:
    """An attempt that died without a word stays unended in the ledger; it only counts while Airflow's run is active."""
    if facts.dag_run.state not in ACTIVE_RUN_STATES:
        return ()
    return tuple(
        attempt
        for attempt in _newest(facts.attempts)
        if attempt.region == region and attempt.began and not ATTEMPT.is_terminal(attempt.state)
    )


def _has(attempts: Sequence[Attempt], partition: int) -> bool:
    shares = [share_of(attempt) for attempt in attempts]
    return any(share is None or partition in share for share in shares)


def _task_state(states: Sequence[str | None]) -> str | None:
    """One state for a region's task or for all instances of it: the worst, and success only when all have it."""
    return next(
        (state for state in (*SHOWN_FIRST, *states) if state in states and state != SUCCESS),
        states[0] if states else None,
    )


def _failure(attempt: Attempt, facts: RunFacts) -> str | None:
    """Why a region's newest attempt did not finish, if it did not."""
    if attempt.state in (AttemptState.FAILED, AttemptState.CANCELED):
        return attempt.failure or "The attempt left no reason; its task log may have more."
    if attempt.state is AttemptState.FINISHED or facts.dag_run.state in ACTIVE_RUN_STATES:
        return None
    return (
        "The attempt ended without a word: its process was killed or its machine was lost. What it had committed "
        "is kept."
    )


def _cell(
    decision: Decision,
    record: PartitionRecord | None,
    skew: str | None,
    *,
    running: bool,
    restored: bool,
    waived: bool,
) -> PartitionCell:
    state = _cell_state(decision, record, running=running)
    if record is None:
        return PartitionCell(decision.partition, state, decision.action, str(decision.reason))
    return PartitionCell(
        partition=decision.partition,
        state=state,
        action=decision.action,
        reason=str(decision.reason),
        rows=record.rows,
        bytes=record.bytes,
        epoch=record.epoch,
        wave=record.wave,
        version=record.version,
        run_id=record.run_id,
        recorded_at=record.recorded_at,
        skew=skew,
        restored=restored,
        waived=waived,
    )


def _cell_state(decision: Decision, record: PartitionRecord | None, *, running: bool) -> CellState:
    if decision.action.computes and running:
        return CellState.RUNNING
    if decision.action is Action.REUSE and (record is None or not record.state.passed):
        return CellState.UNNEEDED
    if record is None or record.state is PartitionState.DAMAGED or decision.action is Action.HEAL:
        return CellState.MISSING
    return CellState(record.state.value)


def _groups(stage: Stage, plan: ResumePlan) -> tuple[ActionGroup, ...]:
    return tuple(ActionGroup(line.action, line.reason, line.partitions) for line in explain(plan, [stage.name]))


def _headline(facts: RunFacts, consumable: int, partitions: int, released: int) -> str:
    failed = [task.name for task in facts.dag_run.tasks if task.state == "failed"]
    tally = f"{consumable} of {partitions} partitions are consumable"
    if released:
        tally += f", {released} released"
    if facts.dag_run.state in ACTIVE_RUN_STATES:
        return f"Running: {tally}"
    if failed:
        return f"Failed at {', '.join(failed)}: {tally}"
    return f"{facts.dag_run.state.capitalize()}: {tally}"


def _attempt_line(attempt: Attempt, failure: str | None, facts: RunFacts) -> AttemptLine:
    return AttemptLine(
        region=attempt.subject,
        epoch=attempt.epoch,
        state=attempt.state,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        failure=failure,
        cause=attempt.cause,
        trace=facts.traces.get(attempt.attempt_id),
        labels=attempt.labels,
    )


def _gate_failures(facts: RunFacts) -> Iterator[GateFailure]:
    for stage in facts.dag_run.request.pipeline.stages:
        records, failed = facts.recorded.get(stage.id, ()), facts.gate_failures.get(stage.id, ())
        words, outdated = facts.waivers.get(stage.name, ()), _computed(stage, facts.plan)
        yield from gate_failures(stage.name, stage.gate, records, failed, words, outdated)


def _computed(stage: Stage, plan: ResumePlan) -> frozenset[int]:
    return frozenset(one.partition for one in plan.of(stage.name) if one.action.computes)
