"""Source stages and their attempts, of which a test says only what it is about."""

from __future__ import annotations

from typing import Any

from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.positions import Positions
from stagehold.model.records import Cell
from stagehold.model.source_position import Position
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.source_reading import SourceReading
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.source import Source


class NothingSeen(Positions):
    """Positions of a ledger in which nobody has taken anything."""

    def seen_by(self, cell: Cell, run_id: str) -> Position | None:
        return None


NO_LEDGER = Ledger(Database("sqlite:///unused"))
NO_LEDGER.positions = NothingSeen(Database("sqlite:///unused"))


def source_stage(name: str = "orders", job: str = "jobs:orders", **fields: Any) -> Stage:
    """A stage that reads a source with these fields: two splits of Parquet files, unless they say something else."""
    source = Source(**{"kind": "parquet", "path": "${lake}/raw", "splits": 2, **fields})
    count = len(source.listed) or source.splits
    return Stage(name=name, job=job, source=source, partitions=count, max_parallelism=128)


def reading_of(lake: object, run_id: str = "r1", **fields: Any) -> SourceReading:
    """What an attempt without a ledger reads of such a source."""
    return Sources("p", "2024-01-01", run_id, str(lake), NO_LEDGER).of(source_stage(**fields))
