"""Who is told what became of a checkpoint, beside the row that decides: a line of progress, and the run's history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from stagehold.model.checkpoint_records import CheckpointRecord
from stagehold.model.records import Event
from stagehold.run.equipment.workplace import Workplace

Listener = Callable[[CheckpointRecord, Workplace], None]
KIND = "checkpoint"

log = logging.getLogger(__name__)


def say(record: CheckpointRecord, workplace: Workplace) -> None:
    workplace.progress(_text(record))


def note(record: CheckpointRecord, workplace: Workplace) -> None:
    subject, now = f"checkpoint {record.number}", datetime.now(UTC)
    workplace.ledger.events.append(Event(record.run_id, KIND, subject, _text(record), now))


LISTENERS: tuple[Listener, ...] = (say, note)


def tell(listeners: Sequence[Listener], record: CheckpointRecord, workplace: Workplace) -> None:
    """Tell all of them. One that fails keeps it from nobody else, and no checkpoint from going on."""
    for listener in listeners:
        try:
            listener(record, workplace)
        except Exception:
            log.warning("%s was not told of checkpoint %d", listener, record.number, exc_info=True)


def _text(record: CheckpointRecord) -> str:
    named = f"checkpoint {record.number} of run {record.run_id}"
    return f"{named} failed: {record.failure}" if record.failure else f"{named} is complete"
