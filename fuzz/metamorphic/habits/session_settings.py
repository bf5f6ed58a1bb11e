"""Functions that set something of their session: what changes rows, and what does not.

A setting holds for the whole frame of its function, so those that are left in force stand last in it, above operators
of which neither engine makes anything else by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Expression, Scans, Script, Unary
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column

ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
CASES = "spark.sql.caseSensitive"
ZONES = ("Asia/Tokyo", "America/Anchorage", "Asia/Kolkata")
NEUTRAL = (
    ("spark.sql.shuffle.partitions", "3"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.autoBroadcastJoinThreshold", "-1"),
    ("spark.sql.files.maxPartitionBytes", "1048576"),
)


class Setting(StrEnum):
    """How it is set."""

    CONF = '{session}.conf.set("{name}", "{value}")'
    SQL = '{session}.sql("SET {name}={value}")'
    SQL_RUN = '{session}.sql("SET `{name}` = `{value}`").collect()'

    def line(self, session: str, name: str, value: str) -> str:
        return self.format(session=session, name=name, value=value)


class Undoing(StrEnum):
    """How it is set back, before anything is computed by it."""

    UNSET = '{session}.conf.unset("{name}")'
    RESET = '{session}.sql("RESET {name}")'

    def line(self, session: str, name: str) -> str:
        return self.format(session=session, name=name)


class Told(StrEnum):
    """What of a moment hangs on the time zone: Spark's function, and DuckDB's."""

    HOUR = "F.hour({})"
    DAY = "F.to_date({})"
    TEXT = "F.date_format({}, 'yyyy-MM-dd HH')"
    CAST_DAY = "{}.cast('date')"

    @property
    def kind(self) -> Kind:
        return {Told.HOUR: Kind.INT, Told.TEXT: Kind.STRING}.get(self, Kind.DATE)

    def sql(self, moment: str) -> str:
        if self is Told.TEXT:
            return f"strftime({moment}, '%Y-%m-%d %H')"
        return f"CAST(hour({moment}) AS int)" if self is Told.HOUR else f"CAST({moment} AS date)"


@dataclass(frozen=True)
class Zoned(Unary, Habit):
    """One more column that a time zone goes into; with ``undone`` it is the session's own."""

    moment: str
    name: str
    zone: str
    told: Told
    setting: Setting
    undone: Undoing | None
    way: Way

    def check(self) -> None:
        super().check()
        assert self.child.column(self.moment).kind is Kind.TIMESTAMP

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.moment,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, self.told.kind))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(_set(self.way.of(child), ZONE, self.zone, self.setting, self.undone))
        value = self.told.format(f'F.col("{self.moment}")')
        return script.add(f'{child}.withColumn("{self.name}", {value})')

    def sql(self, scans: Scans) -> str:
        moment = f"timezone('{'UTC' if self.undone else self.zone}', {self.moment})"
        return f"SELECT *, {self.told.sql(moment)} AS {self.name} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Tolerated(Unary, Habit):
    """One more column: the number that a text is, or nothing, which is an error unless ANSI is off."""

    text: str
    name: str
    setting: Setting
    way: Way

    def check(self) -> None:
        super().check()
        assert self.child.column(self.text).kind is Kind.STRING

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.text,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.INT))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define((self.setting.line(self.way.of(child), ANSI, "false"),))
        return script.add(f'{child}.withColumn("{self.name}", F.col("{self.text}").cast("int"))')

    def sql(self, scans: Scans) -> str:
        return f"SELECT *, TRY_CAST({self.text} AS int) AS {self.name} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class CasesApart(Unary, Habit):
    """Rows for which a condition holds on a column, beside one whose name has other letters only by their case."""

    column_asked: str
    condition: Expression
    setting: Setting
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return self.condition.uses | {self.column_asked}

    def spark(self, script: Script) -> str:
        child, other = self.child.spark(script), self.column_asked.upper()
        script.define((self.setting.line(self.way.of(child), CASES, "true"),))
        beside = f'{child}.withColumn("{other}", F.lit(None).cast("string"))'
        return script.add(f'{beside}.where({self.condition.spark}).drop("{other}")')

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE {self.condition.sql}"


@dataclass(frozen=True)
class Tuned(Unary, Habit):
    """The same rows, whatever is set of how Spark makes them."""

    name: str
    value: str
    setting: Setting
    undone: Undoing | None
    way: Way

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(_set(self.way.of(child), self.name, self.value, self.setting, self.undone))
        return child

    def sql(self, scans: Scans) -> str:
        return self.child.sql(scans)


def _set(session: str, name: str, value: str, setting: Setting, undone: Undoing | None) -> list[str]:
    return [setting.line(session, name, value)] + ([undone.line(session, name)] if undone else [])
