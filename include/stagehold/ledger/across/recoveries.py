"""Recoveries: tries that failed and were followed by another, and what that one could take over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import and_, case, func, not_, or_, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import record_of
from stagehold.ledger.database.schema import attempts, partitions
from stagehold.model.records import Attempt, AttemptState
from stagehold.model.standing import PartitionState

FAILED = (AttemptState.FAILED, AttemptState.CANCELED)


@dataclass(frozen=True)
class LeftBehind:
    """What an attempt had made consumable and its run did not compute again; ``seconds`` is what it had taken."""

    partitions: int
    seconds: float


class Recoveries:
    """Reads `attempts` and `partitions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest(self, pipeline: str, limit: int) -> tuple[tuple[Attempt, ...], ...]:
        """Tries of the same partitions in the same run, in the order in which they began, of which one failed; those
        that were tried last come first.
        """
        columns = attempts.c
        group = (columns.run_id, columns.region, columns.share)
        failed = func.sum(case((columns.state.in_(FAILED), 1), else_=0))
        tried = (
            select(*group, func.max(columns.started_at).label("last"))
            .where(columns.pipeline == pipeline)
            .group_by(*group)
            .having(func.count() > 1, failed > 0)
        )
        chosen = tried.order_by(func.max(columns.started_at).desc(), *group).limit(limit).subquery()
        share = or_(columns.share == chosen.c.share, and_(columns.share.is_(None), chosen.c.share.is_(None)))
        same = and_(columns.run_id == chosen.c.run_id, columns.region == chosen.c.region, share)
        query = select(attempts).join(chosen, same).order_by(chosen.c.last.desc(), columns.started_at)
        together: dict[tuple[str, str], list[Attempt]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                one = record_of(Attempt, row)
                together.setdefault((one.run_id, one.subject), []).append(one)
        return tuple(map(tuple, together.values()))

    def left_behind(self, run_ids: Collection[str]) -> Mapping[str, LeftBehind]:
        """By attempt, of all attempts of these runs."""
        columns, later = partitions.c, partitions.alias()
        place = ("pipeline", "interval", "stage", "partition")
        computed_again = select(later.c.id).where(
            *(later.c[name] == columns[name] for name in place),
            later.c.id > columns.id,
            later.c.run_id == columns.run_id,
            later.c.attempt_id != columns.attempt_id,
            later.c.state != PartitionState.RELEASED,
        )
        seconds = func.coalesce(func.sum(columns.seconds), 0.0)
        query = (
            select(columns.attempt_id, func.count(), seconds)
            .where(columns.run_id.in_(run_ids), columns.state == PartitionState.CONSUMABLE)
            .where(not_(computed_again.exists()))
            .group_by(columns.attempt_id)
        )
        with self._database.reading() as connection:
            return {one: LeftBehind(count, float(spent)) for one, count, spent in connection.execute(query)}
