"""The stages of a run as its page shows them: partition by partition, or as a strip of parts if there are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from stagehold.airflow.run_page.run_facts import RunFacts, at_work, failed
from stagehold.airflow.run_page.run_responses import ActionGroup, Pace, PartitionCell, StageRow, StripPart
from stagehold.airflow.runs.task_clearing import SUCCESS
from stagehold.code.sql_job import shown_job
from stagehold.model.records import Attempt, AttemptState, PartitionRecord
from stagehold.model.standing import CellState, PartitionState, counted_in_all
from stagehold.plan.resume.decisions import Action, Decision
from stagehold.plan.resume.plan_summary import explain
from stagehold.plan.resume.waiving import is_waived
from stagehold.plan.split.exchange_forms import forms_into
from stagehold.plan.split.partition_counts import with_counts
from stagehold.plan.split.shares import share_of
from stagehold.plan.split.stage_states import stage_states
from stagehold.plan.waves.skew import skew_text, skewed
from stagehold.run.attempt.restored_data import WAVE as WAVE_OF_PUTTING
from stagehold.spec.pipeline import Stage

MOST_CELLS = 100  # of a stage that are shown one by one; and parts of a strip
SHOWN_FIRST = ("failed", "upstream_failed", "running", "up_for_retry")


def shown_stages(facts: RunFacts) -> Sequence[tuple[StageRow, tuple[PartitionCell, ...]]]:
    """A row for each stage, in the order of the pipeline, and all its cells; the row may have a strip only."""
    states = _states(facts)
    return tuple(_shown(stage, states[stage.id], facts) for stage in facts.dag_run.request.pipeline.stages)


def _states(facts: RunFacts) -> Mapping[str, AttemptState]:
    """Of as many partitions as the plan has, which knows what was decided for the interval."""
    pipeline = facts.dag_run.request.pipeline
    planned = {stage.id: len(facts.plan.of(stage.name)) or stage.partitions for stage in pipeline.stages}
    counted = with_counts(pipeline, planned).pipeline
    return stage_states(counted, facts.dag_run.request.run_id, facts.attempts, facts.recorded, facts.lost)


def failing_first(rows: Sequence[StageRow]) -> tuple[StageRow, ...]:
    """The rows. If any stage is too long to be seen at a glance, rows with failed or blocked partitions come first."""
    if not any(row.strip for row in rows):
        return tuple(rows)
    return tuple(sorted(rows, key=lambda row: not (row.counts.get(CellState.FAILED) or row.blocked)))


def _shown(stage: Stage, state: AttemptState, facts: RunFacts) -> tuple[StageRow, tuple[PartitionCell, ...]]:
    region = next(region.name for region in facts.regions if stage.name in region.stages)
    cells = stage_cells(stage, region, facts)
    counts, many = Counter(cell.state for cell in cells), len(cells) > MOST_CELLS
    row = StageRow(
        name=stage.name,
        state=state,
        region=region,
        job=shown_job(stage.job),
        gate=stage.gate,
        table=stage.output.table,
        stored=stage.name not in facts.plan.unstored,
        reads=tuple(map(str, forms_into(stage, facts.dag_run.request.pipeline))),
        task_state=_task_state([task.state for task in facts.dag_run.tasks if task.region == region]),
        consumable=sum(count for state, count in counts.items() if state.readable),
        partitions=len(cells) - counts[CellState.UNNEEDED],
        blocked=sum(cell.action is Action.BLOCKED for cell in cells),
        counts=counts,
        cells=() if many else cells,
        strip=tuple(_strip(cells)) if many else (),
        groups=_groups(stage, facts),
        pace=_pace(stage, region, cells, facts),
        counters=dict(counted_in_all(facts.recorded.get(stage.id, ()))),
    )
    return row, cells


def _strip(cells: Sequence[PartitionCell]) -> Iterator[StripPart]:
    size = -(-len(cells) // MOST_CELLS)
    for start in range(0, len(cells), size):
        part = cells[start : start + size]
        counts = Counter(cell.state for cell in part)
        worst = next(state for state in CellState if counts[state])
        yield StripPart(first=part[0].partition, last=part[-1].partition, state=worst, counts=counts)


def _groups(stage: Stage, facts: RunFacts) -> tuple[ActionGroup, ...]:
    return tuple(
        ActionGroup(
            action=line.action,
            reason=line.reason,
            count=len(line.partitions),
            partitions=str(line.partitions),
        )
        for line in explain(facts.plan, [stage.name])
    )


def _pace(stage: Stage, region: str, cells: Sequence[PartitionCell], facts: RunFacts) -> Pace | None:
    """The pace; None unless an attempt is at work on the stage and has recorded something of it."""
    working = {one.attempt_id: one for one in at_work(region, facts)}
    made = [record for record in facts.recorded.get(stage.id, ()) if record.attempt_id in working]
    left = sum(cell.state is CellState.RUNNING for cell in cells)
    if not made or not left:
        return None
    last: PartitionRecord = max(made, key=lambda record: record.recorded_at)
    began = min(working[record.attempt_id].started_at for record in made)
    seconds = (last.recorded_at - began).total_seconds()
    rate = len(made) / seconds if seconds > 0 else 0.0
    return Pace(
        wave=last.wave,
        recorded=len(made),
        left=left,
        per_minute=60 * rate,
        seconds_to_go=left / rate if rate else None,
        recorded_at=last.recorded_at,
    )


def _task_state(states: Sequence[str | None]) -> str | None:
    """One state for a region's task or for all instances of it: the worst state; success only if all have succeeded."""
    return next(
        (state for state in (*SHOWN_FIRST, *states) if state in states and state != SUCCESS),
        states[0] if states else None,
    )


def stage_cells(stage: Stage, region: str, facts: RunFacts) -> tuple[PartitionCell, ...]:
    """All partitions of the stage, in order."""
    records = {record.partition: record for record in facts.recorded.get(stage.id, ())}
    skew = {partition: skew_text(found) for partition, found in skewed(list(records.values())).items()}
    put, waivers = _put(facts), facts.waivers.get(stage.name, ())
    working, given_up = at_work(region, facts), failed(region, facts)
    made = []
    for one in facts.plan.of(stage.name):
        found = one.record if one.restored else records.get(one.partition)
        waived = found is not None and bool(found.refused) and is_waived(found, waivers)
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
        return PartitionCell(
            partition=decision.partition, state=state, action=decision.action, reason=str(decision.reason)
        )
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
    """Attempts that put the data which the run begins with in its place, each with the wave."""
    restore = facts.dag_run.request.restore
    if restore is None or not restore.snapshot:
        return frozenset()
    own = (one for one in facts.attempts if one.restore == restore.identity)
    return frozenset((one.attempt_id, WAVE_OF_PUTTING) for one in own)


def _has(attempts: Sequence[Attempt], partition: int) -> bool:
    shares = [share_of(attempt) for attempt in attempts]
    return any(share is None or partition in share for share in shares)
