"""Attempts: each try of a region, with its epoch."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, func, select, update

from stagehold.ledger.columns import DatabaseTime
from stagehold.ledger.endings import may_end_as
from stagehold.ledger.engine import Database
from stagehold.ledger.rows import attempt_from, attempt_row
from stagehold.ledger.schema import attempts
from stagehold.model.records import UNBEGUN, Attempt, AttemptState, FailureClass
from stagehold.model.states import ATTEMPT
from stagehold.plan.shares import Share, newest_covering, overlap, share_of

BEGAN = attempts.c.epoch > UNBEGUN


class Attempts:
    """The `attempts` table. Tries that never had a lease are told of by `of_run` alone: to all others they are nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self, attempt: Attempt) -> None:
        """Record the attempt; recording it again changes nothing, so a caller may repeat a call that ended in an outage."""
        with self._database.writing() as connection:
            connection.execute(self._database.insert(attempts).values(attempt_row(attempt)).on_conflict_do_nothing())

    def finish(
        self,
        attempt_id: str,
        state: AttemptState,
        failure: str | None,
        *,
        failure_class: FailureClass | None = None,
        failure_rule: str | None = None,
    ) -> bool:
        """End the attempt. False when its state does not allow that: an end stays, and what never began does not end."""
        facts = {"failure": failure and self._database.redact(failure), "failure_class": failure_class, "failure_rule": failure_rule}
        ending = update(attempts).where(attempts.c.attempt_id == attempt_id, attempts.c.state.in_(may_end_as(ATTEMPT, state)))
        with self._database.writing() as connection:
            return connection.execute(ending.values(state=state, ended_at=DatabaseTime(), **facts)).rowcount == 1

    def of_run(self, run_id: str) -> tuple[Attempt, ...]:
        """The run's attempts in the order they began."""
        query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.started_at, attempts.c.attempt_id)
        with self._database.reading() as connection:
            return tuple(attempt_from(row) for row in connection.execute(query).mappings())

    def recent(self, pipeline: str, limit: int) -> tuple[Attempt, ...]:
        """The pipeline's attempts that began last, newest first."""
        query = select(attempts).where(attempts.c.pipeline == pipeline, BEGAN).order_by(attempts.c.started_at.desc()).limit(limit)
        with self._database.reading() as connection:
            return tuple(attempt_from(row) for row in connection.execute(query).mappings())

    def newest(self, pipeline: str, interval: str, region: str, share: Share | None = None) -> tuple[Attempt, ...]:
        """The newest attempt of every partition of ``share``, whatever run and cut it belongs to, newest first."""
        columns = attempts.c
        query = select(attempts).where(columns.pipeline == pipeline, columns.interval == interval, columns.region == region, BEGAN)
        with self._database.reading() as connection:
            return newest_covering((attempt_from(row) for row in connection.execute(query).mappings()), share)

    def epochs(self, attempt: Attempt) -> frozenset[int]:
        """Epochs of all attempts of the same region and interval, of any share."""
        with self._database.reading() as connection:
            return frozenset(connection.scalars(select(attempts.c.epoch).where(_same_region(attempt))))

    def before(self, attempt: Attempt) -> tuple[Attempt, ...]:
        """Earlier attempts of the region that had partitions of this one: its fence is theirs, too."""
        epoch = attempts.c.epoch
        query = select(attempts).where(_same_region(attempt), BEGAN, epoch < attempt.epoch).order_by(epoch)
        with self._database.reading() as connection:
            found = [attempt_from(row) for row in connection.execute(query).mappings()]
        return tuple(one for one in found if overlap(share_of(one), share_of(attempt)))

    def newest_of_regions(self, pipeline: str) -> tuple[Attempt, ...]:
        """The attempt with the highest epoch of every region and interval of a pipeline, by interval."""
        columns = attempts.c
        newest = select(columns.interval, columns.region, func.max(columns.epoch).label("epoch"))
        highest = newest.where(columns.pipeline == pipeline, BEGAN).group_by(columns.interval, columns.region).subquery()
        same = (columns.interval == highest.c.interval) & (columns.region == highest.c.region) & (columns.epoch == highest.c.epoch)
        query = select(attempts).join(highest, same).where(columns.pipeline == pipeline).order_by(columns.interval, columns.region)
        with self._database.reading() as connection:
            return tuple(attempt_from(row) for row in connection.execute(query).mappings())


def _same_region(attempt: Attempt) -> ColumnElement[bool]:
    """Of all pipelines and intervals, the attempt's own."""
    columns = attempts.c
    return and_(columns.pipeline == attempt.pipeline, columns.interval == attempt.interval, columns.region == attempt.region)
