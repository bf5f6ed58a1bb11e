"""The one place where the ledger's rows become the records of `model.records`, and the other way round."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import RowMapping

from stagehold.model.backfill import Backfill
from stagehold.model.checkpoint_records import Acknowledgement, CheckpointRecord, SavepointRequest
from stagehold.model.records import (
    Acceptance,
    Attempt,
    AttemptState,
    Cell,
    Event,
    GateResult,
    Lease,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    RunState,
    StageVerdict,
    TakenPosition,
    Waiver,
)
from stagehold.model.source_position import read_position, write_position
from stagehold.model.states import AttemptEvent, RunEvent, Transition

_CELL = ("pipeline", "stage", "interval")


def run_row(run: Run) -> dict[str, Any]:
    return dict(vars(run))


def run_from(row: RowMapping) -> Run:
    return Run(**row)


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    return dict(vars(attempt))


def attempt_from(row: RowMapping) -> Attempt:
    return Attempt(**row)


def transition_from(row: RowMapping) -> Transition:
    """The words of a run and of an attempt are two languages; the row's attempt tells which one it speaks."""
    state, event = (RunState, RunEvent) if row["attempt_id"] is None else (AttemptState, AttemptEvent)
    return Transition(
        run_id=row["run_id"],
        attempt_id=row["attempt_id"],
        before=row["before"] and state(row["before"]),
        after=state(row["after"]),
        event=row["event"] and event(row["event"]),
        recorded_at=row["recorded_at"],
    )


def lease_from(row: RowMapping) -> Lease:
    return Lease(**row)


def partition_row(record: PartitionRecord) -> dict[str, Any]:
    row = {**vars(record), **vars(record.cell), "table_uri": record.table}
    del row["cell"], row["table"]
    return row


def partition_from(row: RowMapping) -> PartitionRecord:
    facts = {name: value for name, value in row.items() if name not in (*_CELL, "id", "table_uri")}
    return PartitionRecord(cell=_cell_from(row), table=row["table_uri"], **facts)


def partition_count_row(count: PartitionCount) -> dict[str, Any]:
    row = {**vars(count), **vars(count.cell)}
    del row["cell"]
    return row


def partition_count_from(row: RowMapping) -> PartitionCount:
    return PartitionCount(cell=_cell_from(row), **{name: value for name, value in row.items() if name not in _CELL})


def position_row(taken: TakenPosition) -> dict[str, Any]:
    row = {**vars(taken), **vars(taken.cell), "position": write_position(taken.position)}
    del row["cell"]
    return row


def position_from(row: RowMapping) -> TakenPosition:
    return TakenPosition(_cell_from(row), row["run_id"], read_position(row["position"]), row["recorded_at"])


def gate_result_row(result: GateResult) -> dict[str, Any]:
    row = {**vars(result), **vars(result.cell)}
    del row["cell"]
    return row


def gate_result_from(row: RowMapping) -> GateResult:
    return GateResult(
        cell=_cell_from(row), **{name: value for name, value in row.items() if name not in (*_CELL, "id")}
    )


def acceptance_row(word: Acceptance) -> dict[str, Any]:
    return dict(vars(word))


def acceptance_from(row: RowMapping) -> Acceptance:
    return Acceptance(**{name: value for name, value in row.items() if name != "id"})


def stage_verdict_row(verdict: StageVerdict) -> dict[str, Any]:
    row = {**vars(verdict), **vars(verdict.cell)}
    del row["cell"]
    return row


def stage_verdict_from(row: RowMapping) -> StageVerdict:
    return StageVerdict(
        cell=_cell_from(row), **{name: value for name, value in row.items() if name not in (*_CELL, "id")}
    )


def waiver_row(waiver: Waiver) -> dict[str, Any]:
    return dict(vars(waiver))


def waiver_from(row: RowMapping) -> Waiver:
    return Waiver(**{name: value for name, value in row.items() if name != "id"})


def restore_row(restore: Restore) -> dict[str, Any]:
    return dict(vars(restore))


def restore_from(row: RowMapping) -> Restore:
    return Restore(**row)


def backfill_row(backfill: Backfill) -> dict[str, Any]:
    return dict(vars(backfill))


def backfill_from(row: RowMapping) -> Backfill:
    return Backfill(**row)


def checkpoint_row(checkpoint: CheckpointRecord) -> dict[str, Any]:
    return dict(vars(checkpoint))


def checkpoint_from(row: RowMapping) -> CheckpointRecord:
    """Without the ids of rows that it covers: they mean nothing in another ledger, and a record may go to one."""
    return CheckpointRecord(**{field.name: row[field.name] for field in fields(CheckpointRecord)})


def acknowledgement_from(row: RowMapping) -> Acknowledgement:
    return Acknowledgement(**row)


def savepoint_request_row(request: SavepointRequest) -> dict[str, Any]:
    return dict(vars(request))


def savepoint_request_from(row: RowMapping) -> SavepointRequest:
    return SavepointRequest(**row)


def event_row(event: Event) -> dict[str, Any]:
    return dict(vars(event))


def event_from(row: RowMapping) -> Event:
    return Event(**{name: value for name, value in row.items() if name != "id"})


def _cell_from(row: RowMapping) -> Cell:
    return Cell(row["pipeline"], row["stage"], row["interval"])
