"""Records with defaults, so that a test says only what matters to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.model.choices import Acceptance
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState

CELL = Cell("sales", "joined", "2024-01-01")
START = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def partition_record(partition: int, cell: Cell = CELL, **facts: Any) -> PartitionRecord:
    """A partition that is consumable, in a table of which only the name is known."""
    given: dict[str, Any] = {
        "state": PartitionState.CONSUMABLE,
        "run_id": "run",
        "attempt_id": "attempt",
        "epoch": 1,
        "wave": 1,
        "table": "table",
        "version": 1,
        "files": (),
        "rows": 1,
        "fingerprint": "content",
        "compute_key": "key",
        "recorded_at": START,
    }
    return PartitionRecord(cell=cell, partition=partition, **(given | facts))


def acceptance(recorded: str = "old", accepted: str = "new", **facts: Any) -> Acceptance:
    """Ann's word that data of the ``recorded`` code is as good as the ``accepted`` one's, in every interval."""
    given: dict[str, Any] = {
        "pipeline": CELL.pipeline,
        "interval": None,
        "stage": CELL.stage,
        "accepted_by": "ann",
        "reason": "only a comment",
        "recorded_at": START,
    }
    return Acceptance(recorded_code=recorded, accepted_code=accepted, **(given | facts))


def savepoint_request(name: str, run_id: str, **facts: Any) -> SavepointRequest:
    """Ann's wish for a savepoint of a run that goes on."""
    given: dict[str, Any] = {
        "stop": False,
        "requested_by": "ann",
        "reason": "to be sure",
        "requested_at": datetime.now(UTC),
    }
    return SavepointRequest(name, run_id, **(given | facts))
