"""How far the ledger has got, so that what was made from it can be kept until something is written."""

from __future__ import annotations

from sqlalchemy import func, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import (
    acceptances,
    events,
    gate_results,
    partitions,
    positions,
    restores,
    transitions,
    waivers,
)

Revision = tuple[int, ...]
_APPENDED = (partitions, transitions, gate_results, events, positions, acceptances, waivers)


def revision_of(database: Database) -> Revision:
    """Another one after anything was written that a plan or a page says, of any pipeline. What is forgotten may leave
    it as it is.
    """
    newest = (select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery() for table in _APPENDED)
    asked = select(func.count()).select_from(restores).scalar_subquery()
    with database.reading() as connection:
        return tuple(connection.execute(select(*newest, asked)).one())
