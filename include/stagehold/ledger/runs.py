"""Runs: how they are asked for, started, moved through their states, and found again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, Select, and_, or_, select, update

from stagehold.errors import RunIdTaken, UnknownName
from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import record_of, records, row_of
from stagehold.ledger.database.schema import runs
from stagehold.ledger.events import note_beginning, note_moves
from stagehold.model.records import Run, RunState
from stagehold.model.states import RUN, RunEvent, RunStatusChange, moves, recorded_run_after


class Runs:
    """The `runs` table. Every state is compared and set through the state machine of runs, and recorded in
    `transitions`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, run: Run) -> Run:
        """Record ``run`` as CREATED. If there is a run of that id, it stays as it is. Run ids are unique in the whole
        ledger: another pipeline's or interval's run with this id raises RunIdTaken.
        """
        with self._database.writing() as connection:
            return self._create(connection, run)

    def start(self, run: Run) -> Run:
        """Create the run if need be, and start it unless it goes on already; every task of a run may call it."""
        with self._database.writing() as connection:
            created = self._create(connection, run)
            if RUN.is_terminal(created.state):
                created = self._begin_life(connection, created)
            self._move(connection, created, (RunEvent.START,))
            return _get(connection, run.run_id)

    def begin_life(self, run_id: str) -> None:
        """Bring a run that has ended, or is about to, back to CREATED; a run that goes on is left alone.

        This leaves a terminal state, which no transition of the machine does: in Flink it would be a new job. The id is
        the same because Airflow keeps it.
        """
        with self._database.writing() as connection:
            run = _get(connection, run_id, locked=True)
            if run.state in (RunState.FAILING, RunState.CANCELLING):
                self._move(connection, run, (RunEvent.ALL_ENDED,))
                run = _get(connection, run_id)
            if RUN.is_terminal(run.state):
                self._begin_life(connection, run)

    def lift_suspension(self, run_id: str) -> None:
        """Let a SUSPENDED run go on; any other run, and an unknown one, is left alone."""
        with self._database.writing() as connection:
            row = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one_or_none()
            if row is not None and record_of(Run, row).state is RunState.SUSPENDED:
                self._begin_life(connection, record_of(Run, row))

    def apply(self, run_id: str, *events: RunEvent) -> bool:
        """Apply the events to the run, one after the other. False if they change nothing, as events that come too late
        do.

        :raises IllegalTransition: an event that no process of ours can know of.
        """
        with self._database.writing() as connection:
            return self._move(connection, _get(connection, run_id, locked=True), events)

    def ask_to_cancel(self, run_id: str) -> None:
        """Ask the process that drives the run to cancel it. The run is CANCELLING from now on, unless it has ended."""
        with self._database.writing() as connection:
            run = _get(connection, run_id, locked=True)
            if not RUN.is_terminal(run.state):
                asked = update(runs).where(runs.c.run_id == run_id)
                connection.execute(asked.values(cancel_asked_at=DatabaseTime()))
                self._move(connection, run, (RunEvent.CANCEL,))

    def lock(self, run_id: str) -> Run:
        """The run, locked: nobody else changes it before the end of the caller's `together`."""
        with self._database.writing() as connection:
            return _get(connection, run_id, locked=True)

    def _create(self, connection: Connection, run: Run) -> Run:
        new = self._database.insert(runs).values(row_of(replace(run, state=RunState.CREATED)))
        if connection.execute(new.on_conflict_do_nothing()).rowcount:
            note_beginning(connection, run.run_id, None, RunState.CREATED)
            created = replace(run, state=RunState.CREATED)
            self._database.tell(created)
            self._announce(run, None, RunState.CREATED)
            return created
        known = _get(connection, run.run_id, locked=True)
        if (known.pipeline, known.interval) != (run.pipeline, run.interval):
            raise RunIdTaken(run.run_id, f"{known.pipeline} {known.interval}", f"{run.pipeline} {run.interval}")
        return known

    def _begin_life(self, connection: Connection, run: Run) -> Run:
        again = update(runs).where(runs.c.run_id == run.run_id, runs.c.state == run.state)
        connection.execute(again.values(state=RunState.CREATED, ended_at=None, cancel_asked_at=None))
        note_beginning(connection, run.run_id, None, RunState.CREATED)
        begun = replace(run, state=RunState.CREATED, ended_at=None, cancel_asked_at=None)
        self._database.tell(begun)
        self._announce(run, None, RunState.CREATED)
        return begun

    def _move(self, connection: Connection, run: Run, events: Sequence[RunEvent]) -> bool:
        made = moves(run.state, events, recorded_run_after)
        if made:
            after = made[-1].after
            ended = {"ended_at": DatabaseTime()} if RUN.is_terminal(after) else {}
            swap = update(runs).where(runs.c.run_id == run.run_id, runs.c.state == run.state)
            connection.execute(swap.values(state=after, **ended))
            note_moves(connection, run.run_id, None, made)
            for move in made:
                self._announce(run, move.before, move.after)
            if ended:
                self._database.tell(_get(connection, run.run_id))
        return bool(made)

    def _announce(self, run: Run, before: RunState | None, after: RunState) -> None:
        self._database.announce(RunStatusChange(run.run_id, run.pipeline, run.interval, before, after))

    def get(self, run_id: str) -> Run:
        with self._database.reading() as connection:
            return _get(connection, run_id)

    def recent(self, limit: int, pipeline: str | None = None) -> tuple[Run, ...]:
        """The runs that started last, newest first."""
        with self._database.reading() as connection:
            return _fetch(connection, _newest_first(pipeline, None).limit(limit))

    def before(self, pipeline: str, run: Run | None, limit: int) -> tuple[Run, ...]:
        """So many runs of a pipeline that began before ``run`` did, or the last; newest first."""
        query = _newest_first(pipeline, None)
        if run is not None:
            earlier = runs.c.started_at < run.started_at
            at_once = and_(runs.c.started_at == run.started_at, runs.c.run_id < run.run_id)
            query = query.where(or_(earlier, at_once))
        with self._database.reading() as connection:
            return _fetch(connection, query.limit(limit))

    def newest(self, pipeline: str, interval: str | None = None) -> Run | None:
        with self._database.reading() as connection:
            return next(iter(_fetch(connection, _newest_first(pipeline, interval).limit(1))), None)

    def newest_of_intervals(self, pipeline: str, among: Collection[str] | None = None) -> tuple[Run, ...]:
        """The newest run of every interval, or of those ``among`` them; those that ended or began last first."""
        every = _newest_first(pipeline, None)
        if among is not None:
            every = every.where(runs.c.interval.in_(among))
        with self._database.reading() as connection:
            newest: dict[str, Run] = {}
            for run in _fetch(connection, every):
                newest.setdefault(run.interval, run)
        return tuple(sorted(newest.values(), key=lambda run: run.ended_at or run.started_at, reverse=True))


def _newest_first(pipeline: str | None, interval: str | None) -> Select[tuple[object, ...]]:
    query = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
    if pipeline is not None:
        query = query.where(runs.c.pipeline == pipeline)
    if interval is not None:
        query = query.where(runs.c.interval == interval)
    return query


def _fetch(connection: Connection, query: Select[tuple[object, ...]]) -> tuple[Run, ...]:
    return records(connection, Run, query)


def _get(connection: Connection, run_id: str, *, locked: bool = False) -> Run:
    """The run. Unless its row is ``locked``, others may change it on PostgreSQL; SQLite neither has nor needs such a
    lock.
    """
    query = select(runs).where(runs.c.run_id == run_id)
    row = connection.execute(query.with_for_update() if locked else query).mappings().one_or_none()
    if row is None:
        raise UnknownName("run", run_id, _some_ids(connection))
    return record_of(Run, row)


def _some_ids(connection: Connection) -> Sequence[str]:
    return connection.scalars(select(runs.c.run_id).order_by(runs.c.started_at.desc()).limit(10)).all()
