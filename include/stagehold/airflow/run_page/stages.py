"""The stages of a run as its page shows them: partition by partition, or, if these are many, as a strip of parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.airflow.run_page.attempts import at_work
from stagehold.airflow.run_page.cells import PartitionCell, stage_cells
from stagehold.airflow.run_page.facts import RunFacts
from stagehold.airflow.runs.clearing import SUCCESS
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import CellState
from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.plan_summary import explain
from stagehold.spec.pipeline import Stage

MOST_CELLS = 100  # of a stage that are shown one by one, and parts of a strip
SHOWN_FIRST = ("failed", "upstream_failed", "running", "up_for_retry")


@dataclass(frozen=True)
class StripPart:
    """Neighbouring partitions of a stage: how many are in which state, and which of the states comes first."""

    first: int
    last: int
    state: CellState
    counts: Mapping[CellState, int]


@dataclass(frozen=True)
class ActionGroup:
    """Partitions of a stage that share what will happen to them and why; ``partitions`` are ranges, as text."""

    action: Action
    reason: str
    count: int
    partitions: str


@dataclass(frozen=True)
class Pace:
    """How an attempt at work gets on: ``recorded`` partitions by now, the last of them with ``wave``. Of ``left`` it
    takes so many seconds yet, if it goes on like this; None as long as nothing is recorded.
    """

    wave: int
    recorded: int
    left: int
    per_minute: float
    seconds_to_go: float | None
    recorded_at: datetime


@dataclass(frozen=True)
class StageRow:
    """One stage. ``stored`` is False for outputs that are computed along, which have no partitions to look at.
    ``partitions`` are all but the unneeded ones. There are ``cells`` or, for many partitions, a ``strip``.
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
    blocked: int
    counts: Mapping[CellState, int]
    cells: tuple[PartitionCell, ...]
    strip: tuple[StripPart, ...]
    groups: tuple[ActionGroup, ...]
    pace: Pace | None


@dataclass(frozen=True)
class ShownStage:
    """A row, and all cells of it, of which the row may have the strip only."""

    row: StageRow
    cells: tuple[PartitionCell, ...]


def shown_stages(facts: RunFacts) -> tuple[ShownStage, ...]:
    """In the order of the pipeline."""
    return tuple(_shown(stage, facts) for stage in facts.dag_run.request.pipeline.stages)


def failing_first(rows: Sequence[StageRow]) -> tuple[StageRow, ...]:
    """Those in which something failed or is blocked come first if any stage is too long to be seen at a glance."""
    if not any(row.strip for row in rows):
        return tuple(rows)
    return tuple(sorted(rows, key=lambda row: not (row.counts.get(CellState.FAILED) or row.blocked)))


def _shown(stage: Stage, facts: RunFacts) -> ShownStage:
    region = next(region.name for region in facts.regions if stage.name in region.stages)
    cells = stage_cells(stage, region, facts)
    counts, many = Counter(cell.state for cell in cells), len(cells) > MOST_CELLS
    row = StageRow(
        name=stage.name,
        region=region,
        job=stage.job,
        gate=stage.gate,
        table=stage.output.table,
        stored=stage.name not in facts.plan.unstored,
        task_state=_task_state([task.state for task in facts.dag_run.tasks if task.region == region]),
        consumable=sum(count for state, count in counts.items() if state.readable),
        partitions=len(cells) - counts[CellState.UNNEEDED],
        blocked=sum(cell.action is Action.BLOCKED for cell in cells),
        counts=counts,
        cells=() if many else cells,
        strip=tuple(_strip(cells)) if many else (),
        groups=_groups(stage, facts),
        pace=_pace(stage, region, cells, facts),
    )
    return ShownStage(row, cells)


def _strip(cells: Sequence[PartitionCell]) -> Iterator[StripPart]:
    size = -(-len(cells) // MOST_CELLS)
    for start in range(0, len(cells), size):
        part = cells[start : start + size]
        counts = Counter(cell.state for cell in part)
        worst = next(state for state in CellState if counts[state])
        yield StripPart(part[0].partition, part[-1].partition, worst, counts)


def _groups(stage: Stage, facts: RunFacts) -> tuple[ActionGroup, ...]:
    return tuple(
        ActionGroup(line.action, line.reason, len(line.partitions), str(line.partitions))
        for line in explain(facts.plan, [stage.name])
    )


def _pace(stage: Stage, region: str, cells: Sequence[PartitionCell], facts: RunFacts) -> Pace | None:
    """None unless an attempt is at work on the stage and has recorded something of it."""
    working = {one.attempt_id: one for one in at_work(region, facts)}
    made = [record for record in facts.recorded.get(stage.id, ()) if record.attempt_id in working]
    left = sum(cell.state is CellState.RUNNING for cell in cells)
    if not made or not left:
        return None
    last: PartitionRecord = max(made, key=lambda record: record.recorded_at)
    began = min(working[record.attempt_id].started_at for record in made)
    seconds = (last.recorded_at - began).total_seconds()
    rate = len(made) / seconds if seconds > 0 else 0.0
    return Pace(last.wave, len(made), left, 60 * rate, left / rate if rate else None, last.recorded_at)


def _task_state(states: Sequence[str | None]) -> str | None:
    """One state for a region's task or for all instances of it: the worst, and success only when all have it."""
    return next(
        (state for state in (*SHOWN_FIRST, *states) if state in states and state != SUCCESS),
        states[0] if states else None,
    )
