"""Stage verdicts: what gates said of all partitions of a stage together."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import insert, select

from stagehold.ledger.database.columns import storable
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, row_of
from stagehold.ledger.database.schema import stage_verdicts
from stagehold.model.records import StageVerdict


class VerdictsOnStages:
    """The `stage_verdicts` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, verdict: StageVerdict) -> None:
        """Not fenced: a judgement is about data, and only `Partitions.record` makes data count."""
        with self._database.writing() as connection:
            reason = verdict.reason and storable(self._database.redact(verdict.reason))
            stored = replace(verdict, reason=reason, refused=tuple(map(storable, verdict.refused)))
            connection.execute(insert(stage_verdicts), [row_of(stored)])
            self._database.tell(stored)

    def of(self, pipeline: str, interval: str) -> tuple[StageVerdict, ...]:
        """All of an interval, oldest first."""
        columns = stage_verdicts.c
        query = select(stage_verdicts).where(columns.pipeline == pipeline, columns.interval == interval)
        return read_all(self._database, StageVerdict, query.order_by(columns.id))
