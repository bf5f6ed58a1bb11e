"""What the Resume button would do."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.airflow.run_page.facts import RunFacts
from stagehold.airflow.runs.clearing import ACTIVE_RUN_STATES, TaskToClear, tasks_to_clear
from stagehold.errors import StageholdError
from stagehold.plan.resume.decisions import Action, Decision


@dataclass(frozen=True)
class ResumePreview:
    """What the Resume button would do; ``refusal`` says why it cannot, None when it can.

    Those ``along`` are computed with their readers and not stored, and not counted in ``run``; of those that are
    reused, so many are to be ``restored``. Of those to ``judge`` the data is there, and read by their gate. So many to
    ``retract`` leave their tables, since a waiver has ended. Of those to
    run, so many are consumable now and run ``again``. What is reused took ``saved_seconds`` when it was computed.
    """

    refusal: str | None
    tasks: tuple[TaskToClear, ...]
    reuse: int
    run: int
    along: int
    restored: int = 0
    judge: int = 0
    retract: int = 0
    again: int = 0
    saved_seconds: float = 0.0


def resume_preview(facts: RunFacts) -> ResumePreview:
    """The resume as it would be carried out now by somebody who may, or why it is refused."""
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
    )


def clear_set(facts: RunFacts) -> tuple[TaskToClear, ...]:
    """:raises StageholdError: when nothing can be resumed now, not even by somebody who may."""
    dag_run = facts.dag_run
    if facts.refusal and dag_run.state not in ACTIVE_RUN_STATES:
        raise facts.refusal
    return tasks_to_clear(
        f"{dag_run.dag_id} {dag_run.run_id}", dag_run.state, regions=facts.regions, tasks=dag_run.tasks, plan=facts.plan
    )


def _runs_again(decision: Decision) -> bool:
    record = decision.record
    return decision.action is Action.RUN and record is not None and record.state.readable
