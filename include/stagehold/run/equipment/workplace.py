"""What everybody has at hand who works on a region."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event
from stagehold.run.equipment.engine import Engine
from stagehold.run.faults import Faults
from stagehold.settings import Settings

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Workplace:
    """Handed in, so that tests can have others: a ledger of theirs, an engine without Spark, points that pause.

    ``committer`` fences tables for which no session is open.
    """

    ledger: Ledger
    settings: Settings
    progress: Progress
    engine: Engine
    faults: Faults
    committer: Committer = field(default_factory=StagedCommitter)
    sleep: Callable[[float], None] = time.sleep

    def warn(self, run_id: str, kind: str, subject: str, text: str) -> None:
        """Say it, and keep it among the run's events."""
        self.progress(f"warning: {text}")
        self.ledger.events.append(Event(run_id, kind, subject, text, datetime.now(UTC)))
