"""How many partitions met each expectation, interval by interval."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import gate_results
from stagehold.model.records import Severity


@dataclass(frozen=True)
class GateTally:
    """Of one stage, by its id, and interval: the partitions that met an expectation, or did not, when they were asked
    last. All of a stage together count as one.
    """

    interval: str
    stage: str
    suite: str
    expectation: str
    severity: Severity
    passed: bool
    partitions: int
    judged_at: datetime


class GateTallies:
    """Sums over the `gate_results` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, pipeline: str, intervals: Collection[str]) -> tuple[GateTally, ...]:
        """In one query, whose answer does not grow with the number of partitions."""
        columns = gate_results.c
        wanted = (columns.pipeline == pipeline, columns.interval.in_(intervals))
        said = (columns.interval, columns.stage, columns.expectation)
        newest = select(func.max(columns.id)).where(*wanted).group_by(*said, columns.partition)
        group = (columns.interval, columns.stage, columns.suite, columns.expectation, columns.severity, columns.passed)
        query = select(*group, func.count(), func.max(columns.recorded_at)).where(columns.id.in_(newest))
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(*group).order_by(func.min(columns.id)))
            return tuple(GateTally(*row) for row in rows)
