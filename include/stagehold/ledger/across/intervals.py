"""Intervals: which there are, how the tries of their runs ended, what these left behind, and what gates said."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, func, not_, or_, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import record_of
from stagehold.ledger.database.schema import attempts, gate_results, partitions, runs
from stagehold.model.choices import Severity
from stagehold.model.records import Attempt, AttemptState, FailureClass
from stagehold.model.standing import PartitionState
from stagehold.model.states import ATTEMPT, ENDED_BADLY
from stagehold.plan.restart.rules import WORKER_LOST

UNBEGUN = (AttemptState.CREATED, AttemptState.SCHEDULED)  # of tries that have had no lease
LONGEST_FAILURE = 300  # letters of a failure's text; the page of its run has all of it


@dataclass(frozen=True)
class LastTries:
    """The last tries of a region's shares in one run that are in one state, for one cause; ``failure`` is the text of
    one of them, cut off when it is long.
    """

    run_id: str
    region: str
    state: AttemptState
    tries: int
    failure_class: FailureClass | None
    failure_rule: str | None
    failure: str | None

    @property
    def cause(self) -> str | None:
        return f"{self.failure_class} failure, rule {self.failure_rule}" if self.failure_class else None

    @property
    def going(self) -> bool:
        """Whether they have begun and not ended, or nobody has said so."""
        return not ATTEMPT.is_terminal(self.state) and self.state not in UNBEGUN

    @property
    def may_be_lost(self) -> bool:
        """Whether they may have ended without a word, or somebody has found that they did."""
        return self.going or self.failure_rule == WORKER_LOST

    def failed(self, *, active: bool) -> bool:
        """A try whose process died without a word stays unended; what is still at work has not failed."""
        if ATTEMPT.is_terminal(self.state):
            return self.state is not AttemptState.FINISHED
        return not active


class Intervals:
    """Reads several tables; none is its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, pipeline: str) -> Mapping[str, datetime | None]:
        """Every interval that a run was asked for, with when its newest run began, and those that have records without
        any run in the ledger.
        """
        begun = select(runs.c.interval, func.max(runs.c.started_at)).where(runs.c.pipeline == pipeline)
        with self._database.reading() as connection:
            found = {row[0]: row[1] for row in connection.execute(begun.group_by(runs.c.interval))}
            # One look into the index for each, however many partitions they have.
            name = select(func.min(partitions.c.interval).label("name")).where(partitions.c.pipeline == pipeline)
            names = name.cte("names", recursive=True)
            following = name.where(partitions.c.interval > names.c.name).scalar_subquery()
            names = names.union_all(select(following).where(names.c.name.is_not(None)))
            recorded = connection.scalars(select(names.c.name).where(names.c.name.is_not(None)))
            return {**dict.fromkeys(recorded), **found}

    def last_tries(self, run_ids: Collection[str]) -> tuple[LastTries, ...]:
        """The last try of each share of each region."""
        columns = attempts.c
        newest_first = func.row_number().over(
            partition_by=(columns.run_id, columns.region, columns.share),
            order_by=(columns.started_at.desc(), columns.attempt_id.desc()),
        )
        ranked = select(attempts, newest_first.label("rank")).where(columns.run_id.in_(run_ids)).subquery()
        last = ranked.c
        group = (last.run_id, last.region, last.state, last.failure_class, last.failure_rule)
        text = func.min(func.substr(last.failure, 1, LONGEST_FAILURE))
        query = select(*group, func.count(), text).where(last.rank == 1).group_by(*group)
        with self._database.reading() as connection:
            return tuple(_last_tries(row) for row in connection.execute(query))

    def warned(self, pipeline: str, intervals: Collection[str]) -> Mapping[tuple[str, str], int]:
        """How many partitions, by interval and stage id, do not meet expectations that block nothing, as they were
        judged last. A stage that is judged as a whole counts as one partition.
        """
        columns, later = gate_results.c, gate_results.alias()
        place = ("pipeline", "interval", "stage", "partition")
        overruled = select(later.c.id).where(
            *(later.c[name] == columns[name] for name in place),
            later.c.id > columns.id,
            later.c.recorded_at > columns.recorded_at,
        )
        query = (
            select(columns.interval, columns.stage, func.count(columns.partition.distinct()))
            .where(columns.pipeline == pipeline, columns.interval.in_(intervals))
            .where(columns.passed.is_(False), columns.severity != Severity.CRITICAL, not_(overruled.exists()))
            .group_by(columns.interval, columns.stage)
        )
        with self._database.reading() as connection:
            return {(interval, stage): count for interval, stage, count in connection.execute(query)}


def _last_tries(row: Sequence[Any]) -> LastTries:
    run_id, region, state, failure_class, rule, tries, failure = row
    return LastTries(run_id, region, state, tries, failure_class, rule, failure)


@dataclass(frozen=True)
class GateTally:
    """How often an expectation of a stage, by its id, was met in an interval: partitions are counted as they were
    judged last. A stage that is judged as a whole counts as one partition.
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
        """The tallies of these intervals, in one query whose answer does not grow with the number of partitions."""
        columns = gate_results.c
        wanted = (columns.pipeline == pipeline, columns.interval.in_(intervals))
        said = (columns.interval, columns.stage, columns.expectation)
        newest = select(func.max(columns.id)).where(*wanted).group_by(*said, columns.partition)
        group = (columns.interval, columns.stage, columns.suite, columns.expectation, columns.severity, columns.passed)
        query = select(*group, func.count(), func.max(columns.recorded_at)).where(columns.id.in_(newest))
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(*group).order_by(func.min(columns.id)))
            return tuple(GateTally(*row) for row in rows)


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
        failed = func.sum(case((columns.state.in_(ENDED_BADLY), 1), else_=0))
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
                attempt = record_of(Attempt, row)
                together.setdefault((attempt.run_id, attempt.subject), []).append(attempt)
        return tuple(map(tuple, together.values()))

    def left_behind(self, run_ids: Collection[str]) -> Mapping[str, tuple[int, float]]:
        """How many partitions each attempt of these runs made consumable that its run did not compute again, and the
        seconds that they took; by attempt.
        """
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
            return {attempt_id: (count, float(spent)) for attempt_id, count, spent in connection.execute(query)}
