"""Restores and backfills: what runs are asked to compute anew or told to do, and how far that is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, func, insert, select, update

from stagehold.errors import UnknownName
from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of, records, row_of
from stagehold.ledger.database.schema import attempts, backfills, partitions, restores, runs
from stagehold.model.backfill import Backfill
from stagehold.model.records import Restore, Run
from stagehold.model.states import GLOBALLY_TERMINAL


class Restores:
    """The `restores` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, restore: Restore) -> Restore:
        """Keep the request and return it as it is recorded. If its identity is known, that is the earlier request, in
        the given life, if any.
        """
        new = self._database.insert(restores).values(row_of(restore))
        living = {"life": func.coalesce(new.excluded.life, restores.c.life)}
        asking = new.on_conflict_do_update(index_elements=["run_id", "identity"], set_=living).returning(restores)
        with self._database.writing() as connection:
            asked = record_of(Restore, connection.execute(asking).mappings().one())
            self._database.tell(asked)
            return asked

    def get(self, run_id: str, identity: str) -> Restore | None:
        return next(iter(self._select(restores.c.run_id == run_id, restores.c.identity == identity)), None)

    def of_life(self, run_id: str, life: datetime) -> Restore | None:
        """The request for which Airflow started the run at that moment."""
        return next(iter(self._select(restores.c.run_id == run_id, restores.c.life == life)), None)

    def of_run(self, run_id: str) -> tuple[Restore, ...]:
        """All requests of a run, the newest first."""
        return self._select(restores.c.run_id == run_id)

    def runs_of_backfills(self, pipeline: str) -> Mapping[str, tuple[Run, ...]]:
        """The runs that carry out orders of backfills, by the backfill's id; if a run was asked more than once, the
        newest order counts.
        """
        query = select(restores).join(runs, runs.c.run_id == restores.c.run_id).where(runs.c.pipeline == pipeline)
        with self._database.reading() as connection:
            ordered = {
                restore.run_id: restore.work_order.backfill
                for restore in records(connection, Restore, query.order_by(restores.c.requested_at))
                if restore.work_order is not None
            }
            found: dict[str, tuple[Run, ...]] = {}
            for run in records(connection, Run, select(runs).where(runs.c.run_id.in_(ordered))):
                if backfill := ordered[run.run_id]:
                    found[backfill] = (*found.get(backfill, ()), run)
            return found

    def settle(self, restore: Restore, snapshot: str) -> Restore:
        """Record with which checkpoint the run begins, and return the request as it is recorded: the first record
        counts.
        """
        same = (restores.c.run_id == restore.run_id, restores.c.identity == restore.identity)
        unsettled = (restores.c.stage.is_(None), restores.c.snapshot.is_(None))
        settling = update(restores).where(*same, *unsettled).values(snapshot=snapshot).returning(restores)
        with self._database.writing() as connection:
            row = connection.execute(settling).mappings().one_or_none()
            if row is not None:
                self._database.tell(record_of(Restore, row))
                return record_of(Restore, row)
            return record_of(Restore, connection.execute(select(restores).where(*same)).mappings().one())

    def computed(self, restore: Restore) -> Mapping[str, frozenset[int]]:
        """The partitions that attempts for this request have computed, by stage id, whatever became of them later.

        A commit that its attempt could not record counts from the moment at which another attempt adopts it.
        """
        under = select(attempts.c.attempt_id).where(
            attempts.c.run_id == restore.run_id, attempts.c.restore == restore.identity
        )
        own = (partitions.c.run_id == restore.run_id, partitions.c.attempt_id.in_(under))
        found: dict[str, set[int]] = defaultdict(set)
        with self._database.reading() as connection:
            for stage, partition in connection.execute(
                select(partitions.c.stage, partitions.c.partition).where(*own).distinct()
            ):
                found[stage].add(partition)
        return {stage: frozenset(numbers) for stage, numbers in found.items()}

    def needing(self, manifest: str) -> tuple[str, ...]:
        """Runs that began with this checkpoint or savepoint, go on, and have not taken over all of it."""
        waiting = select(restores).join(runs, runs.c.run_id == restores.c.run_id)
        open_ones = (restores.c.snapshot == manifest, restores.c.fulfilled_at.is_(None))
        goes_on = runs.c.state.not_in(GLOBALLY_TERMINAL)
        with self._database.reading() as connection:
            found = records(connection, Restore, waiting.where(*open_ones, goes_on))
        return tuple(
            dict.fromkeys(
                restore.run_id for restore in found if self.of_run(restore.run_id)[0].identity == restore.identity
            )
        )

    def fulfil(self, restore: Restore) -> bool:
        """Record that all that was asked for is computed. False if that was recorded before: the first time stays."""
        same = (
            restores.c.run_id == restore.run_id,
            restores.c.identity == restore.identity,
            restores.c.fulfilled_at.is_(None),
        )
        fulfilling = update(restores).where(*same).values(fulfilled_at=DatabaseTime()).returning(restores)
        with self._database.writing() as connection:
            row = connection.execute(fulfilling).mappings().one_or_none()
            if row is not None:
                self._database.tell(record_of(Restore, row))
            return row is not None

    def _select(self, *conditions: ColumnElement[bool]) -> tuple[Restore, ...]:
        query = select(restores).where(*conditions).order_by(restores.c.requested_at.desc(), restores.c.identity)
        return read_all(self._database, Restore, query)


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
            known = [backfill.backfill_id for backfill in self.newest(pipeline, NEWEST)]
            raise UnknownName(f"backfill of {pipeline}", backfill_id, known)
        return record_of(Backfill, row)

    def newest(self, pipeline: str, limit: int) -> tuple[Backfill, ...]:
        """The newest restores, the last asked for first."""
        query = select(backfills).where(backfills.c.pipeline == pipeline).order_by(backfills.c.requested_at.desc())
        return read_all(self._database, Backfill, query.limit(limit))
