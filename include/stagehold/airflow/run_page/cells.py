"""The partitions of a stage as the run page shows them, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.airflow.run_page.attempts import at_work, failed
from stagehold.airflow.run_page.facts import RunFacts
from stagehold.model.records import Attempt, PartitionRecord
from stagehold.model.standing import CellState, PartitionState
from stagehold.plan.resume.decisions import Action, Decision
from stagehold.plan.resume.waiving import is_waived
from stagehold.plan.split.shares import share_of
from stagehold.plan.waves.skew import skew_text, skewed
from stagehold.run.attempt.restored_data import WAVE as WAVE_OF_PUTTING
from stagehold.spec.pipeline import Stage


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
    seconds: float | None = None
    epoch: int | None = None
    wave: int | None = None
    version: int | None = None
    run_id: str | None = None
    recorded_at: datetime | None = None
    skew: str | None = None
    restored: bool = False
    waived: bool = False


def stage_cells(stage: Stage, region: str, facts: RunFacts) -> tuple[PartitionCell, ...]:
    """All partitions of the stage, in order."""
    records = {record.partition: record for record in facts.recorded.get(stage.id, ())}
    skew = {partition: skew_text(found) for partition, found in skewed(list(records.values())).items()}
    put, words = _put(facts), facts.waivers.get(stage.name, ())
    working, given_up = at_work(region, facts), failed(region, facts)
    made = []
    for one in facts.plan.of(stage.name):
        found = one.record if one.restored else records.get(one.partition)
        waived = found is not None and bool(found.refused) and is_waived(found, words)
        restored = one.restored or (found is not None and (found.attempt_id, found.wave) in put)
        state = _state(one, found, working, given_up, restored=restored, waived=waived)
        made.append(_cell(one, found, state, skew.get(one.partition), restored=restored, waived=waived))
    return tuple(made)


def _state(
    decision: Decision,
    record: PartitionRecord | None,
    working: Sequence[Attempt],
    given_up: Sequence[Attempt],
    *,
    restored: bool,
    waived: bool,
) -> CellState:
    if decision.action.computes and _has(working, decision.partition):
        return CellState.RUNNING
    if decision.action is Action.REUSE and (record is None or not record.state.counts_as_done):
        return CellState.UNNEEDED
    if decision.action is Action.HEAL:
        return CellState.LOST
    if record is None or record.state is PartitionState.DAMAGED:
        return CellState.FAILED if _has(given_up, decision.partition) else CellState.WAITING
    return _recorded_state(decision, record.state, restored=restored, waived=waived)


def _recorded_state(decision: Decision, state: PartitionState, *, restored: bool, waived: bool) -> CellState:
    match state:
        case PartitionState.BLOCKED:
            return CellState.ADMITTED if waived and decision.action is Action.JUDGE else CellState.BLOCKED
        case PartitionState.HELD:
            return CellState.HELD
        case PartitionState.RELEASED:
            return CellState.RELEASED
    if decision.outstays:
        return CellState.BLOCKED
    if decision.action is not Action.REUSE:
        return CellState.STALE
    if waived:
        return CellState.WAIVED
    return CellState.RESTORED if restored else CellState.CONSUMABLE


def _cell(
    decision: Decision,
    record: PartitionRecord | None,
    state: CellState,
    skew: str | None,
    *,
    restored: bool,
    waived: bool,
) -> PartitionCell:
    if record is None:
        return PartitionCell(decision.partition, state, decision.action, str(decision.reason))
    return PartitionCell(
        partition=decision.partition,
        state=state,
        action=decision.action,
        reason=str(decision.reason),
        rows=record.rows,
        bytes=record.bytes,
        seconds=record.seconds,
        epoch=record.epoch,
        wave=record.wave,
        version=record.version,
        run_id=record.run_id,
        recorded_at=record.recorded_at,
        skew=skew,
        restored=restored,
        waived=waived,
    )


def _put(facts: RunFacts) -> frozenset[tuple[str, int]]:
    """Attempts, each with the wave, that put what the run begins with in its place."""
    restore = facts.dag_run.request.restore
    if restore is None or restore.snapshot is None:
        return frozenset()
    own = (one for one in facts.attempts if one.restore == restore.identity)
    return frozenset((one.attempt_id, WAVE_OF_PUTTING) for one in own)


def _has(attempts: Sequence[Attempt], partition: int) -> bool:
    shares = [share_of(attempt) for attempt in attempts]
    return any(share is None or partition in share for share in shares)
