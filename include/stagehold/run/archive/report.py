"""Everything that is known of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import WHOLE, Attempt, Event, GateResult, PartitionRecord, Restore, Run
from stagehold.model.standing import PartitionState, Tally
from stagehold.model.states import Transition
from stagehold.plan.resume.waiving import held, is_waived
from stagehold.run.planning.vouched import newest_verdict


@dataclass(frozen=True)
class StageCount:
    """What is known of one stage's partitions now, for the run's interval, whichever run made them."""

    stage: str
    consumable: int
    blocked: int
    released: int
    made_by_run: int
    rows: int
    bytes: int
    held: int = 0  # which older archives do not say


@dataclass(frozen=True)
class RunReport:
    """``traces`` are by attempt, ``failures`` of partitions, or whole stages, that are blocked now."""

    run: Run
    stages: tuple[StageCount, ...]
    attempts: tuple[Attempt, ...]
    traces: Mapping[str, str]
    failures: tuple[GateResult, ...]
    events: tuple[Event, ...]
    restores: tuple[Restore, ...]
    history: tuple[Transition, ...]

    @property
    def attempt_names(self) -> Mapping[str, str]:
        """By id what people call an attempt: what it works on and, once it has a lease, its epoch."""
        return {
            one.attempt_id: f"{one.subject}, epoch {one.epoch}" if one.began else one.subject for one in self.attempts
        }


def recorded_report(run_id: str, ledger: Ledger) -> RunReport:
    """What the ledger knows of it.

    :raises UnknownName: nothing.
    """
    run = ledger.runs.get(run_id)
    newest = ledger.partitions.newest_of(run.pipeline, run.interval)
    return RunReport(
        run=run,
        stages=tuple(_count(stage, records, run_id) for stage, records in newest.items()),
        attempts=ledger.attempts.of_run(run_id),
        traces=ledger.events.traces(run_id),
        failures=tuple(_failures(newest, ledger)),
        events=ledger.events.of_run(run_id),
        restores=ledger.restores.of_run(run_id),
        history=ledger.transitions.of_run(run_id),
    )


def _count(stage: str, records: Sequence[PartitionRecord], run_id: str) -> StageCount:
    tally = Tally.of(records)
    return StageCount(
        stage=stage,
        consumable=tally.readable.partitions,
        blocked=tally.count(PartitionState.BLOCKED),
        released=tally.count(PartitionState.RELEASED),
        made_by_run=sum(record.state.readable and record.run_id == run_id for record in records),
        rows=tally.readable.rows,
        bytes=tally.readable.bytes,
        held=tally.count(PartitionState.HELD),
    )


def _failures(newest: Mapping[str, Sequence[PartitionRecord]], ledger: Ledger) -> Iterator[GateResult]:
    """Of partitions that are blocked now: what was blocked once and passed since, or was waived, is history."""
    for records in newest.values():
        blocked = {record.partition for record in records if record.state is PartitionState.BLOCKED}
        blocked |= {WHOLE} if _is_refused_together(records, ledger) else set()
        said = ledger.gates.failures(records[0].cell) if blocked else ()
        yield from (one for one in said if one.partition in blocked and one.blocks)


def _is_refused_together(records: Sequence[PartitionRecord], ledger: Ledger) -> bool:
    verdict, cell = newest_verdict(records, ledger), records[0].cell
    words = held(ledger.waivers.of(cell.pipeline, cell.interval), datetime.now(UTC))
    return bool(verdict and verdict.refused and not is_waived(verdict, words))
