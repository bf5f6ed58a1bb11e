"""What `stagehold status RUN` shows. It reads ledger and lake alone, so it works for pipelines whose file is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import typer

from stagehold.cli.common.lease_texts import COLUMNS, lease_cells, lease_document, state_of_run
from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.errors import StageholdError
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Attempt, AttemptState, Event, GateResult, Restore, Run
from stagehold.model.standing import Standing, together
from stagehold.model.states import LOST
from stagehold.run.intervals.interval_standings import stage_standings, standing_on_record, states_in_run
from stagehold.run.lease.held_leases import held_leases
from stagehold.run.lease.lost_attempts import Loss, losses, run_loss
from stagehold.run.upkeep.run_archive import RunReport, StageCount, report_of
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline

SHOWN_EVENTS = 10
Losses = Mapping[str, Loss]  # by attempt
States = Mapping[str, AttemptState]  # by stage id


def show_run(run_id: str, ledger: Ledger, settings: Settings, *, as_json: bool, trace: bool) -> None:
    report = report_of(run_id, ledger, settings.lake_uri)
    lost, held = losses(report.attempts, ledger), held_leases(ledger, report.run.pipeline, run_id)
    killed = run_loss(report.run, ledger)
    standing, states = _standing(report.run, ledger, settings)
    report = _with_declared(report, states)
    if as_json:
        document = _document(report, standing, states, lost)
        document["run"]["lost"] = asdict(killed) if killed else None
        print_document({**document, "leases": [lease_document(lease) for lease in held]})
        return
    if held:
        print_table("At work now", COLUMNS, map(lease_cells, held))
    _print_report(report, standing, states, lost, killed)
    for attempt, text in report.traces.items() if trace else ():
        typer.echo(f"\nTrace of attempt {attempt}:\n{text}")


def _standing(run: Run, ledger: Ledger, settings: Settings) -> tuple[Standing, States]:
    """How the interval of the run stands now, and what each stage is in the run, if anybody knows the stages."""
    try:
        pipeline = find_pipeline(run.pipeline, settings)
        stages = stage_standings(pipeline, run.interval, ledger)
    except StageholdError:  # it is gone from the project, or cannot be loaded
        return standing_on_record(run.pipeline, run.interval, ledger), {}
    return together(stages.values()), states_in_run(pipeline, run.run_id, run.interval, ledger)


def _with_declared(report: RunReport, states: States) -> RunReport:
    """The report with its stages as they are declared, also those of which nothing is on record."""
    known = {count.stage: count for count in report.stages}
    declared = {stage: known.pop(stage, StageCount(stage, 0, 0, 0, 0, 0, 0)) for stage in states}
    return replace(report, stages=(*declared.values(), *known.values()))


def _document(report: RunReport, standing: Standing, states: States, lost: Losses) -> dict[str, Any]:
    return {
        "run": asdict(report.run),
        "interval": {
            "state": standing.state if standing.declared else None,
            "whole": standing.whole,
            "partitions": standing.total,
            "text": str(standing),
        },
        "restores": [asdict(restore) for restore in report.restores],
        "stages": [_stage_document(stage, states) for stage in report.stages],
        "attempts": [
            {
                **asdict(attempt),
                "trace": report.traces.get(attempt.attempt_id),
                "lost": asdict(lost[attempt.attempt_id]) if attempt.attempt_id in lost else None,
            }
            for attempt in report.attempts
        ],
        "history": [asdict(transition) for transition in report.history],
        "gate_failures": [_failure_document(failure) for failure in report.failures],
        "events": [asdict(event) for event in report.events],
    }


def _stage_document(stage: StageCount, states: States) -> dict[str, Any]:
    facts = asdict(stage)
    counters = dict(facts.pop("counted"))
    return {**facts, "state": states.get(stage.stage), "counters": counters}


def _failure_document(failure: GateResult) -> dict[str, Any]:
    facts = asdict(failure)
    del facts["configuration"], facts["result"]  # which `stagehold gates` has
    return {"stage": facts.pop("cell")["stage"], "scope": "stage" if failure.is_of_stage else "partition", **facts}


def _print_report(report: RunReport, standing: Standing, states: States, lost: Losses, killed: Loss | None) -> None:
    run = report.run
    ended = f", ended {moment(run.ended_at)}" if run.ended_at else ""
    typer.echo(
        f"{run.run_id}: {run.pipeline} for {run.interval}, {state_of_run(run, killed)}, by {run.launcher}, started "
        f"{moment(run.started_at)}{ended} (UTC)"
    )
    if standing.total:
        whole = f"; it is {'whole' if standing.whole else 'not whole'}" if standing.declared else ""
        typer.echo(f"{run.interval}: {standing}{whole}")
    for title, columns, rows in _tables(report, states, lost):
        if rows:
            print_table(title, columns, rows)
    typer.echo(
        f"`stagehold plan {run.pipeline} --interval {run.interval}` shows what a run would reuse now, and "
        "what it would run."
    )
    if killed:
        typer.echo(f"`stagehold resume {run.run_id}` goes on with it.")


def _tables(
    report: RunReport, states: States, lost: Losses
) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Title, columns and rows of each."""
    asked = ("from", "asked", "all there")
    yield "Restores that were asked for", asked, [*map(_restore_cells, report.restores)]
    counted = ("stage", "state", "consumable", "of this run", "blocked", "held", "released", "rows", "size")
    yield "Stages", counted, [_stage_cells(stage, states) for stage in report.stages]
    of_author = [(stage.stage, name, f"{count:,}") for stage in report.stages for name, count in stage.counted]
    yield "Counters", ("stage", "counter", "count"), of_author
    tried = ("region", "epoch", "state", "started", "ended", "failure")
    yield "Attempts", tried, [_attempt_cells(attempt, lost.get(attempt.attempt_id)) for attempt in report.attempts]
    yield "History of states", ("time", "of", "from", "to", "event"), [*_history_cells(report)]
    judged = ("stage", "partition", "suite", "expectation", "observed")
    yield "Failed gates", judged, [*map(_failure_cells, report.failures)]
    newest = report.events[-SHOWN_EVENTS:]
    yield f"Last {SHOWN_EVENTS} events", ("time", "what", "where", "text"), [*map(_event_cells, newest)]


def _ordered(restore: Restore) -> str:
    """What a run was told to do."""
    order = restore.work_order
    if order is None:
        return ""
    told = f"{', '.join(order.anew)} once more" if order.anew else ", ".join(order.stages) or "nothing"
    return f"{told}, for backfill {order.backfill}" if order.backfill else told


def _unsettled(restore: Restore) -> str:
    return "not looked for yet" if restore.snapshot is None else "nothing: there was no checkpoint"


def _restore_cells(restore: Restore) -> tuple[str, ...]:
    return (
        restore.stage or restore.snapshot or _ordered(restore) or _unsettled(restore),
        moment(restore.requested_at),
        moment(restore.fulfilled_at) or ("" if restore.work_order else "not yet"),
    )


def _stage_cells(stage: StageCount, states: States) -> tuple[str, ...]:
    from rich.filesize import decimal

    counts = (stage.consumable, stage.made_by_run, stage.blocked, stage.held, stage.released, stage.rows)
    return stage.stage, states.get(stage.stage, ""), *map(str, counts), decimal(stage.bytes)


def _attempt_cells(attempt: Attempt, loss: Loss | None) -> tuple[str, ...]:
    failure = ": ".join(text for text in (attempt.cause, attempt.failure) if text)
    failure = "\n".join((failure, *(f"{key}: {label}" for key, label in attempt.labels.items())))
    epoch = str(attempt.epoch) if attempt.began else "not begun"
    state, ended = (f"{LOST}, {loss}", loss.at) if loss else (attempt.state, attempt.ended_at)
    return attempt.subject, epoch, state, moment(attempt.started_at), moment(ended), failure


def _history_cells(report: RunReport) -> Iterator[tuple[str, ...]]:
    names = report.attempt_names
    for transition in report.history:
        of = "run" if transition.attempt_id is None else names.get(transition.attempt_id, transition.attempt_id)
        yield moment(transition.recorded_at), of, transition.before or "", transition.after, transition.event or ""


def _failure_cells(failure: GateResult) -> tuple[str, ...]:
    return (
        failure.cell.stage,
        str(PartitionSet([failure.partition])),
        failure.suite,
        failure.expectation,
        failure.observed,
    )


def _event_cells(event: Event) -> tuple[str, ...]:
    return moment(event.recorded_at), event.kind, event.subject, event.text
