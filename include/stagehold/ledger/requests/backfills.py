"""Backfills: what the runs of a range of intervals are told to do, kept for all of their tries."""

from __future__ import annotations

from sqlalchemy import insert, select

from stagehold.errors import UnknownName
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of, row_of
from stagehold.ledger.database.schema import backfills
from stagehold.model.backfill import Backfill

NEWEST = 5  # that an error names


class Backfills:
    """The `backfills` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, backfill: Backfill) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(backfills).values(row_of(backfill)))
            self._database.tell(backfill)

    def get(self, pipeline: str, backfill_id: str) -> Backfill:
        """:raises UnknownName: the pipeline has none of that id."""
        query = select(backfills).where(backfills.c.pipeline == pipeline, backfills.c.backfill_id == backfill_id)
        with self._database.reading() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            known = [one.backfill_id for one in self.newest(pipeline, NEWEST)]
            raise UnknownName(f"backfill of {pipeline}", backfill_id, known)
        return record_of(Backfill, row)

    def newest(self, pipeline: str, limit: int) -> tuple[Backfill, ...]:
        """Those that were asked for last first."""
        query = select(backfills).where(backfills.c.pipeline == pipeline).order_by(backfills.c.requested_at.desc())
        return read_all(self._database, Backfill, query.limit(limit))
