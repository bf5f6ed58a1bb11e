"""What runs did about partitions, and what they found done: sums by run and stage over `partitions` and `attempts`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Subquery, and_, case, func, or_, select

from stagehold.ledger.database.column_types import first_path
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import attempts, partitions, runs
from stagehold.model.standing import PartitionState

GONE = (PartitionState.RELEASED, PartitionState.DAMAGED)
PLACE = ("pipeline", "interval", "stage", "partition")
StageOfRun = tuple[str, str]  # run id and stage id


@dataclass(frozen=True)
class OwnWork:
    """Partitions of a stage that a run recorded: so many it ``computed``, some of them ``healed`` since their data was
    gone, and so many it ``judged`` only, or put in their place from a checkpoint, ``restored``. ``seconds`` is the work
    of all its tries; what it took over has ``spared`` so many.
    """

    computed: int
    healed: int
    judged: int
    restored: int
    seconds: float
    spared: float


@dataclass(frozen=True)
class LeftBehind:
    """Partitions of a stage in one state when a run had ended, which are its ``own`` or of an earlier run; ``seconds``
    is what computing them took.
    """

    state: PartitionState
    own: bool
    partitions: int
    seconds: float


class RunOutcomes:
    """Reads `runs`, `partitions` and `attempts`; each question is one query, however many runs it is about."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def own_work(self, run_ids: Collection[str]) -> Mapping[StageOfRun, OwnWork]:
        """What each of these runs recorded, by run and stage id."""
        own = _own_records(run_ids).c
        upto = [func.count(case((own.kind <= kind, own.partition)).distinct()) for kind in (HEALED, JUDGED, RESTORED)]
        healed = func.count(case((own.kind == HEALED, own.partition)).distinct())
        spent = func.sum(case((own.kind <= HEALED, own.seconds), else_=0.0))
        query = select(own.run_id, own.stage, *upto, healed, spent, func.sum(own.spared))
        with self._database.reading() as connection:
            return {
                (run, stage): OwnWork(computed, again, judged - computed, every - judged, float(worked), float(spared))
                for run, stage, computed, judged, every, again, worked, spared in connection.execute(
                    query.group_by(own.run_id, own.stage)
                )
            }

    def left_behind(
        self, run_ids: Collection[str], active: Collection[str]
    ) -> Mapping[StageOfRun, tuple[LeftBehind, ...]]:
        """How each stage stood when each of these runs had ended, by run and stage id.

        :param active: runs that go on, which have what is there now.
        """
        columns = partitions.c
        there = runs.join(partitions, and_(columns.pipeline == runs.c.pipeline, columns.interval == runs.c.interval))
        newest = (
            select(runs.c.run_id.label("of"), func.max(columns.id).label("id"))
            .select_from(there)
            .where(runs.c.run_id.in_(run_ids), _was_there(active))
            .group_by(runs.c.run_id, columns.stage, columns.partition)
            .subquery()
        )
        own = case((columns.run_id == newest.c.of, 1), else_=0).label("own")
        group = (newest.c.of, columns.stage, columns.state, own)
        seconds = func.coalesce(func.sum(columns.seconds), 0.0)
        query = select(*group, func.count(), seconds).join(newest, columns.id == newest.c.id).group_by(*group)
        found: dict[StageOfRun, list[LeftBehind]] = {}
        with self._database.reading() as connection:
            for run, stage, state, is_own, count, spent in connection.execute(query):
                left = LeftBehind(state, bool(is_own), count, float(spent))
                found.setdefault((run, stage), []).append(left)
        return {key: tuple(left) for key, left in found.items()}

    def tries(self, run_ids: Collection[str]) -> Mapping[tuple[str, str], int]:
        """How often each region was begun in each of these runs, all its shares together, by run and region."""
        columns = attempts.c
        query = select(columns.run_id, columns.region, func.count()).where(columns.run_id.in_(run_ids))
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(columns.run_id, columns.region))
            return {(run, region): count for run, region, count in rows}


def _was_there(active: Collection[str]) -> ColumnElement[bool]:
    """Whether a partition's record was there when the run had ended, or is its own, which workers' clocks date.

    Of a run that was killed nobody knows the end: it was over when the next run of its interval began.
    """
    later = runs.alias()
    same = (later.c.pipeline == runs.c.pipeline, later.c.interval == runs.c.interval)
    followed = select(func.min(later.c.started_at)).where(*same, later.c.started_at > runs.c.started_at)
    end = func.coalesce(runs.c.ended_at, followed.scalar_subquery())
    columns = partitions.c
    return or_(columns.run_id == runs.c.run_id, runs.c.run_id.in_(active), end.is_(None), columns.recorded_at <= end)


COMPUTED, HEALED, JUDGED, RESTORED = range(4)  # of several records of a partition the least counts


def _own_records(run_ids: Collection[str]) -> Subquery:
    """Each record that these runs made, with its kind: None if it only says that data is gone. Nearly all are the first
    of their place, of which there is nothing more to ask.
    """
    columns, before = partitions.c, partitions.alias()
    kind = _kind(before, run_ids)
    spent = func.coalesce(columns.seconds, 0.0)
    spared = case((and_(kind > HEALED, ~_followed_by_own().exists()), spent), else_=0.0)
    told = (kind.label("kind"), spent.label("seconds"), spared.label("spared"))
    joined = partitions.outerjoin(before, before.c.id == _last_before().scalar_subquery())
    query = select(columns.run_id, columns.stage, columns.partition, *told).select_from(joined)
    return query.where(columns.run_id.in_(run_ids)).subquery()


def _kind(before: FromClause, run_ids: Collection[str]) -> ColumnElement[int]:
    columns = partitions.c
    of_restore = select(attempts.c.attempt_id).where(attempts.c.run_id.in_(run_ids), attempts.c.restore.is_not(None))
    asked = columns.attempt_id.in_(of_restore)
    elsewhere = and_(or_(before.c.id.is_not(None), asked), _written_by_another())
    vanished = and_(before.c.state == PartitionState.CONSUMABLE, before.c.run_id != columns.run_id, ~asked)
    healed = and_(before.c.compute_key == columns.compute_key, or_(before.c.state.in_(GONE), vanished))
    return case(
        (columns.state.in_(GONE), None),
        (and_(elsewhere, asked), RESTORED),
        (elsewhere, JUDGED),
        (healed, HEALED),
        else_=COMPUTED,
    )


def _last_before() -> Select[Any]:
    """The last record of the same place before a record."""
    earlier = partitions.alias()
    return select(func.max(earlier.c.id)).where(*_at(earlier), earlier.c.id < partitions.c.id).correlate(partitions)


def _followed_by_own() -> Select[Any]:
    """A later record of the same place by the same run, which says more than that data is gone."""
    later = partitions.alias()
    of_run = (later.c.run_id == partitions.c.run_id, later.c.state.not_in(GONE))
    return select(later.c.id).where(*_at(later), later.c.id > partitions.c.id, *of_run).correlate(partitions)


def _at(other: FromClause) -> Iterator[ColumnElement[bool]]:
    return (other.c[name] == partitions.c[name] for name in PLACE)


def _written_by_another() -> ColumnElement[bool]:
    """Whether the files of a record are those of another attempt than its own."""
    columns = partitions.c
    folder, path = "_data/" + columns.attempt_id + "/", func.coalesce(first_path(columns.files), "")
    of_nobody = path.startswith("_data/", autoescape=True)
    return and_(of_nobody, func.substr(path, 1, func.length(folder)) != folder)
