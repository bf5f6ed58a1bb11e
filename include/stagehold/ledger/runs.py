"""Runs: started or resumed, ended, found again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Select, select, update

from stagehold.errors import RunIdTaken, UnknownName
from stagehold.ledger.columns import DatabaseTime
from stagehold.ledger.endings import may_end_as
from stagehold.ledger.engine import Database
from stagehold.ledger.rows import run_from, run_row
from stagehold.ledger.schema import runs
from stagehold.model.records import Run, RunState
from stagehold.model.states import RUN


class Runs:
    """The `runs` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self, run: Run) -> Run:
        """Record ``run``, or put the run of that id back to RUNNING; every task of a run may call it. The first start's facts stay.

        Resuming is a new life of the run, so it may leave a terminal state, which no transition of the machine does: in Flink
        it would be a new job. The same id is kept because Airflow keeps it, and because the attempts tell the lives apart.
        Run ids are unique in the whole ledger: another pipeline's or interval's run with this id raises RunIdTaken.
        For a run that is RUNNING already, which most tasks of a run find, nothing is written.
        """
        return self._running(run) or self._start(run)

    def _running(self, run: Run) -> Run | None:
        same = (runs.c.run_id == run.run_id, runs.c.pipeline == run.pipeline, runs.c.interval == run.interval)
        with self._database.reading() as connection:
            return next(iter(_fetch(connection, select(runs).where(*same, runs.c.state == RunState.RUNNING))), None)

    def _start(self, run: Run) -> Run:
        new = self._database.insert(runs).values(run_row(run))
        same_run = (runs.c.pipeline == new.excluded.pipeline) & (runs.c.interval == new.excluded.interval)
        again = new.on_conflict_do_update(index_elements=["run_id"], set_={"state": RunState.RUNNING, "ended_at": None}, where=same_run)
        with self._database.writing() as connection:
            row = connection.execute(again.returning(runs)).mappings().one_or_none()
            if row is None:
                taken = _get(connection, run.run_id)
                raise RunIdTaken(run.run_id, f"{taken.pipeline} {taken.interval}", f"{run.pipeline} {run.interval}")
        return run_from(row)

    def await_restart(self, run_id: str) -> None:
        """Note that the run waits for the restart of what failed; a run that has ended, or waits already, is left alone."""
        waiting = update(runs).where(runs.c.run_id == run_id, runs.c.state == RunState.RUNNING).values(state=RunState.RESTARTING)
        with self._database.writing() as connection:
            connection.execute(waiting)

    def finish(self, run_id: str, state: RunState) -> bool:
        """End the run. False when its state does not allow that, as when it has ended: the first end stays until the next start."""
        ending = update(runs).where(runs.c.run_id == run_id, runs.c.state.in_(may_end_as(RUN, state)))
        with self._database.writing() as connection:
            if connection.execute(ending.values(state=state, ended_at=DatabaseTime())).rowcount:
                return True
            _get(connection, run_id)
        return False

    def get(self, run_id: str) -> Run:
        with self._database.reading() as connection:
            return _get(connection, run_id)

    def recent(self, limit: int, pipeline: str | None = None) -> tuple[Run, ...]:
        """The runs that started last, newest first."""
        with self._database.reading() as connection:
            return _fetch(connection, _newest_first(pipeline, None).limit(limit))

    def newest(self, pipeline: str, interval: str | None = None) -> Run | None:
        with self._database.reading() as connection:
            return next(iter(_fetch(connection, _newest_first(pipeline, interval).limit(1))), None)


def _newest_first(pipeline: str | None, interval: str | None) -> Select[tuple[object, ...]]:
    query = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
    if pipeline is not None:
        query = query.where(runs.c.pipeline == pipeline)
    if interval is not None:
        query = query.where(runs.c.interval == interval)
    return query


def _fetch(connection: Connection, query: Select[tuple[object, ...]]) -> tuple[Run, ...]:
    return tuple(run_from(row) for row in connection.execute(query).mappings())


def _get(connection: Connection, run_id: str) -> Run:
    row = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one_or_none()
    if row is None:
        raise UnknownName("run", run_id, _some_ids(connection))
    return run_from(row)


def _some_ids(connection: Connection) -> Sequence[str]:
    return connection.scalars(select(runs.c.run_id).order_by(runs.c.started_at.desc()).limit(10)).all()
