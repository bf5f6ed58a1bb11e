"""Acceptances, waivers and pins: people's decisions that data made by other code counts like that of the present code,
that data may be read though it does not meet an expectation, or that an interval keeps its outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, func, insert, or_, select

from stagehold.ledger.database.column_types import storable
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, row_of
from stagehold.ledger.database.schema import acceptances, pins, waivers
from stagehold.model.choices import Acceptance, Pin, Waiver


class Acceptances:
    """The `acceptances` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, words: Sequence[Acceptance]) -> None:
        """Append all or none; they are never taken back, since runs may have relied on them."""
        with self._database.writing() as connection:
            stored = [replace(word, reason=storable(word.reason)) for word in words]
            connection.execute(insert(acceptances), [row_of(word) for word in stored])
            self._database.tell(*stored)

    def holding(self, pipeline: str, intervals: Collection[str]) -> tuple[Acceptance, ...]:
        """Acceptances that count for any of the intervals, oldest first."""
        columns = acceptances.c
        return self._select(
            columns.pipeline == pipeline, or_(columns.interval.is_(None), columns.interval.in_(intervals))
        )

    def of(self, pipeline: str) -> tuple[Acceptance, ...]:
        """All acceptances of a pipeline, oldest first."""
        return self._select(acceptances.c.pipeline == pipeline)

    def _select(self, *conditions: ColumnElement[bool]) -> tuple[Acceptance, ...]:
        query = select(acceptances).where(*conditions).order_by(acceptances.c.id)
        return read_all(self._database, Acceptance, query)


class Waivers:
    """The `waivers` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, words: Sequence[Waiver]) -> None:
        """Append all or none; a later one for the same data and expectation replaces an earlier one."""
        with self._database.writing() as connection:
            stored = [replace(waiver, reason=storable(self._database.redact(waiver.reason))) for waiver in words]
            connection.execute(insert(waivers), [row_of(waiver) for waiver in stored])
            self._database.tell(*stored)

    def waived_intervals(self, pipeline: str, among: Collection[str]) -> frozenset[str]:
        """The intervals, of these, in which anything was ever waived."""
        query = select(waivers.c.interval).where(waivers.c.pipeline == pipeline, waivers.c.interval.in_(among))
        with self._database.reading() as connection:
            return frozenset(connection.scalars(query.distinct()))

    def waived_places(self, pipelines: Collection[str], now: datetime) -> frozenset[tuple[str, str]]:
        """The pipelines and intervals for which a waiver is in force."""
        columns = waivers.c
        data = (columns.pipeline, columns.interval, columns.stage, columns.partition)
        newest = select(func.max(columns.id)).where(columns.pipeline.in_(pipelines))
        newest = newest.group_by(*data, columns.expectation, columns.fingerprint)
        holds = or_(columns.until.is_(None), columns.until > now)
        query = select(columns.pipeline, columns.interval).where(columns.id.in_(newest), holds).distinct()
        with self._database.reading() as connection:
            return frozenset((pipeline, interval) for pipeline, interval in connection.execute(query))

    def of(self, pipeline: str, interval: str) -> tuple[Waiver, ...]:
        """All waivers of an interval, oldest first."""
        return self._select(waivers.c.pipeline == pipeline, waivers.c.interval == interval)

    def of_each(self, pipeline: str, intervals: Collection[str]) -> tuple[Waiver, ...]:
        """All waivers of the intervals, oldest first."""
        return self._select(waivers.c.pipeline == pipeline, waivers.c.interval.in_(intervals))

    def _select(self, *conditions: ColumnElement[bool]) -> tuple[Waiver, ...]:
        query = select(waivers).where(*conditions).order_by(waivers.c.id)
        return read_all(self._database, Waiver, query)


class Pins:
    """The `pins` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, words: Sequence[Pin]) -> None:
        """Append all or none; a later one for the same interval replaces an earlier one."""
        with self._database.writing() as connection:
            stored = [replace(pin, reason=storable(self._database.redact(pin.reason))) for pin in words]
            connection.execute(insert(pins), [row_of(pin) for pin in stored])
            self._database.tell(*stored)

    def holding(self, pipeline: str, among: Collection[str] | None = None) -> Mapping[str, Pin]:
        """The pins of the intervals that keep their outputs now, by interval.

        :param among: if given, only these intervals.
        """
        wanted = [pins.c.interval.in_(among)] if among is not None else []
        query = select(pins).where(pins.c.pipeline == pipeline, *wanted).order_by(pins.c.id)
        newest = {pin.interval: pin for pin in read_all(self._database, Pin, query)}
        return {interval: pin for interval, pin in newest.items() if pin.pinned}
