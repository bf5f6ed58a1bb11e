"""Puts together everything that the page of a run shows. Pure: `run_reading` gathers the facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked
from stagehold.airflow.run_page.gate_failures import gate_failures
from stagehold.airflow.run_page.gate_responses import GateFailure
from stagehold.airflow.run_page.packed_cells import PackedCells
from stagehold.airflow.run_page.run_facts import ResumeFacts, RunFacts, attempt_lines, failure_lines
from stagehold.airflow.run_page.run_responses import (
    HistoryLine,
    Origins,
    PartitionCell,
    Resumed,
    ResumePreview,
    Reused,
    RunGrid,
    RunHistory,
    StageRow,
)
from stagehold.airflow.run_page.stage_cells import failing_first, shown_stages
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES, SUCCESS, TaskToClear, tasks_to_clear
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import RunStillActive
from stagehold.model.choices import Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import WHOLE, RunState
from stagehold.model.standing import CellState, DeclaredStage, Standing, together
from stagehold.model.states import Transition
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan
from stagehold.run.planning.restoring import what_was_released
from stagehold.run.upkeep.run_archive import RunReport
from stagehold.spec.pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from stagehold.airflow.runs.dag_runs import StageholdDagRun

NOT_ALLOWED = (
    "You may see this run but not clear its tasks, so you cannot resume it. Ask somebody who may edit the DAG."
)
NOT_PLANNED = "What a resume would do is being worked out."
MOST_RUNS = 5  # other runs that are named
MOST_UNTOLD = 20  # reports that could not be sent, the newest ones
MOST_LINES = 500  # of a run's history: the newest

RunPage = tuple[RunGrid, Mapping[str, PackedCells]]


def run_page(facts: RunFacts) -> RunPage:
    """The grid for a reader who may resume the run, and the cells of all its stages by their names; for some stages the
    grid has strips only.
    """
    shown = shown_stages(facts)
    return _grid(facts, shown), {row.name: PackedCells(cells) for row, cells in shown}


def seen_by(
    grid: RunGrid, dag_run: StageholdDagRun, *, may_resume: bool, may_waive: bool, may_stop: bool = False
) -> RunGrid:
    """The grid for this reader. If the run was resumed since the page was made, the grid says so. If the run has ended
    since, the page stays as it was until it is made anew, since all else in it is about a run that goes on.
    """
    told = grid
    if not grid.active or dag_run.state in ACTIVE_RUN_STATES:
        told = _with_state(grid, dag_run)
    told = told.model_copy(update={"may_stop": may_stop and dag_run.state in ACTIVE_RUN_STATES})
    if may_resume:
        return told.model_copy(update={"may_waive": may_waive})
    return told.model_copy(update={"may_change": False, "resume": refused_to_readers(told.resume)})


def refused_to_readers(preview: ResumePreview) -> ResumePreview:
    """The preview for a reader who may not resume the run."""
    return preview.model_copy(update={"refusal": preview.refusal or NOT_ALLOWED})


def _with_state(grid: RunGrid, dag_run: StageholdDagRun) -> RunGrid:
    state, active = dag_run.state, dag_run.state in ACTIVE_RUN_STATES
    refusal = grid.resume.refusal
    if active and refusal is None:
        refusal = str(RunStillActive(f"{dag_run.place} {dag_run.run_id}", state))
    resume = grid.resume.model_copy(update={"refusal": refusal})
    changed = {"state": state, "active": active, "headline": _headline(dag_run, grid), "resume": resume}
    return grid.model_copy(update=changed)


def unplanned(dag_run: StageholdDagRun, standing: Standing, looked: Looked = AS_RECORDED) -> RunGrid:
    """The grid that follows from the ledger's counts alone."""
    grid = RunGrid(
        dag_id=dag_run.place.dag_id,
        place=str(dag_run.place),
        places={name: str(place) for name, place in dag_run.places.items()},
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
        resume=ResumePreview(refusal=looked.problem or NOT_PLANNED, tasks=(), reuse=0, run=0, along=0),
        resumed=None,
        restore=None,
        may_change=True,
        may_waive=False,
        may_stop=False,
        unmet=0,
        looked=looked,
    )
    return grid.model_copy(update={"headline": _headline(dag_run, grid)})


def _grid(facts: RunFacts, shown: Sequence[tuple[StageRow, Sequence[PartitionCell]]]) -> RunGrid:
    dag_run, pipeline = facts.dag_run, facts.dag_run.request.pipeline
    stored = [row for row, _ in shown if row.stored]
    grid = RunGrid(
        dag_id=dag_run.place.dag_id,
        place=str(dag_run.place),
        places={name: str(place) for name, place in dag_run.places.items()},
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
        origins=origins((cell for row, cells in shown if row.stored for cell in cells), dag_run.request.run_id),
        planned=True,
        stages=failing_first([row for row, _ in shown]),
        attempts=attempt_lines(facts),
        failures=failure_lines(facts),
        gate_failures=tuple(_gate_failures(facts)),
        resume=resume_preview(facts),
        resumed=Resumed(by=facts.resumed.subject, at=facts.resumed.recorded_at) if facts.resumed else None,
        restore=facts.restore,
        may_change=True,
        may_waive=False,
        may_stop=False,
        unmet=sum(map(len, facts.gate_failures.values())),
        looked=facts.looked,
        untold=tuple(
            HistoryLine(at=one.recorded_at, of=one.subject, text=one.text) for one in facts.untold[-MOST_UNTOLD:]
        ),
    )
    return grid.model_copy(update={"headline": _headline(dag_run, grid)})


def _standing(facts: RunFacts) -> Standing:
    """How the stage stands on record, of as many partitions as the plan has, without partitions that are gone though
    they were not released.
    """
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
        waivers, outdated = facts.waivers.get(stage.name, ()), _computed(stage, facts.plan)
        past = facts.past_waivers.get(stage.name, ())
        yield from gate_failures(stage.name, stage.gate, records, failed, waivers, outdated, past)


def _computed(stage: Stage, plan: ResumePlan) -> frozenset[int]:
    return frozenset(one.partition for one in plan.of(stage.name) if one.action.computes)


def origins(cells: Iterable[PartitionCell], run_id: str) -> Origins:
    """Where the partitions that are done come from.

    :param run_id: the ledger's id of the run of this page.
    """
    done = [cell for cell in cells if cell.run_id and (cell.state.readable or cell.state is CellState.RELEASED)]
    spared = [cell for cell in done if cell.restored or cell.run_id != run_id]
    runs = Counter(cell.run_id for cell in spared if cell.run_id and not cell.restored).most_common()
    return Origins(
        computed=len(done) - len(spared),
        restored=sum(cell.restored for cell in spared),
        reused=tuple(Reused(run_id=run_id, partitions=count) for run_id, count in runs[:MOST_RUNS]),
        others=sum(count for _, count in runs[MOST_RUNS:]),
        saved_seconds=sum(cell.seconds or 0.0 for cell in spared),
    )


def resume_preview(facts: ResumeFacts) -> ResumePreview:
    """The resume as it would be carried out now for a user who may, or why it is refused."""
    refusal: str | None = None
    tasks: tuple[TaskToClear, ...] = ()
    try:
        tasks = clear_set(facts)
    except StageholdError as error:
        refusal = str(error)
    tally, decisions = facts.plan.counts, facts.plan.decisions
    return ResumePreview(
        refusal=refusal,
        tasks=tasks,
        reuse=tally.reuse,
        run=tally.run,
        along=tally.along,
        restored=sum(one.restored and one.action is Action.REUSE for one in decisions),
        judge=tally.judge,
        retract=tally.retract,
        again=sum(_runs_again(one) for one in decisions),
        saved_seconds=sum(one.reused.seconds or 0.0 for one in decisions if one.reused),
        released=what_was_released(facts.dag_run.request, facts.plan),
    )


def clear_set(facts: ResumeFacts) -> tuple[TaskToClear, ...]:
    """The tasks that a resume clears.

    :raises StageholdError: nothing can be resumed now, whatever rights the user has.
    """
    dag_run = facts.dag_run
    if facts.refusal and dag_run.state not in ACTIVE_RUN_STATES:
        raise facts.refusal
    return tasks_to_clear(
        f"{dag_run.place} {dag_run.run_id}", dag_run.state, regions=facts.regions, tasks=dag_run.tasks, plan=facts.plan
    )


def _runs_again(decision: Decision) -> bool:
    record = decision.record
    return decision.action is Action.RUN and record is not None and record.state.readable


def run_history(
    report: RunReport | None,
    deeds: Iterable[tuple[datetime, str]],
    *,
    words: Iterable[HistoryLine] = (),
    archived: bool = False,
) -> RunHistory:
    """The record of the run, if it has begun, and what people did to it in Airflow.

    :param words: waivers of the data of its interval.
    """
    own = (*_changes(report), *_events(report)) if report else ()
    by_people = (HistoryLine(at=at, of="run", text=text) for at, text in deeds)
    lines = sorted((*own, *by_people, *words), key=lambda line: line.at)
    earlier = max(0, len(lines) - MOST_LINES)
    return RunHistory(lines=tuple(lines[-MOST_LINES:]), earlier=earlier, archived=archived)


def waiver_lines(pipeline: Pipeline, said: Iterable[Waiver]) -> Iterator[HistoryLine]:
    """A line for each time that somebody recorded a waiver or took one back, however many partitions it was about."""
    alike: dict[Waiver, list[int]] = {}
    for one in said:
        alike.setdefault(replace(one, partition=WHOLE, fingerprint=""), []).append(one.partition)
    names = {stage.id: stage.name for stage in pipeline.stages}
    for word, partitions in alike.items():
        of = f"{names.get(word.stage, word.stage)}[{PartitionSet(partitions)}]"
        yield HistoryLine(at=word.recorded_at, of=of, text=_waiver_text(word))


def _waiver_text(word: Waiver) -> str:
    if word.until is not None and word.until <= word.recorded_at:
        return f"{word.waived_by} took back what was waived of {word.expectation}: {word.reason}"
    end = f"until {word.until:%Y-%m-%d %H:%M} (UTC)" if word.until else "for ever"
    return f"{word.waived_by} waived {word.expectation} {end}: {word.reason}"


def _changes(report: RunReport) -> Iterator[HistoryLine]:
    names = report.attempt_names
    for one in report.history:
        of = "run" if one.attempt_id is None else names.get(one.attempt_id, one.attempt_id)
        yield HistoryLine(at=one.recorded_at, of=of, text=_change(one))


def _change(one: Transition) -> str:
    return str(one.after) if one.before is None else f"{one.before} to {one.after}: {one.event}"


def _events(report: RunReport) -> Iterator[HistoryLine]:
    for one in report.events:
        yield HistoryLine(at=one.recorded_at, of=one.subject, text=f"{one.kind}: {one.text}")
