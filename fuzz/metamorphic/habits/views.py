"""Frames that are given a name, and are read by it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Expression, Scans, Script, Unary
from fuzz.metamorphic.grouping import Aggregate
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.joins import Join

NAMES = ("rows", "numbers", "Rows", "`my rows`")  # few, so that functions and frames share them


class Naming(StrEnum):
    """How a frame gets its name; the last two by a query over another name."""

    REPLACED = "createOrReplaceTempView"
    ONCE = "createTempView"
    GLOBAL = "createOrReplaceGlobalTempView"
    GLOBAL_ONCE = "createGlobalTempView"
    BY_SQL = "CREATE OR REPLACE TEMP VIEW"
    BY_SQL_ONCE = "CREATE TEMPORARY VIEW"

    @property
    def is_once(self) -> bool:
        return self in (Naming.ONCE, Naming.GLOBAL_ONCE, Naming.BY_SQL_ONCE)

    @property
    def is_global(self) -> bool:
        return self in (Naming.GLOBAL, Naming.GLOBAL_ONCE)


class Reading(StrEnum):
    """How it is read by its name; by a common table expression of the same name, too."""

    QUERY = "spark.sql"
    TABLE = "spark.table"
    READER = "spark.read.table"
    CTE = "WITH"
    IN_CAPITALS = "spark.table in capitals"
    ARGUMENT = "spark.sql with the frame as an argument"
    BESIDE = "a query that also names a view which was made of it"


class Afterwards(StrEnum):
    """What becomes of the name when the frame has been read."""

    KEPT = "it stays"
    GIVEN_AWAY = "another frame gets it"
    DROPPED = "DROP VIEW"
    DROPPED_BY_CATALOG = "dropTempView"


@dataclass(frozen=True)
class View(Unary, Habit):
    """Rows for which a condition holds, read by a name."""

    name: str
    naming: Naming
    reading: Reading
    afterwards: Afterwards
    condition: Expression
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return self.condition.uses

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        session, name = self.way.of(child), named(script, self.name, once=self.naming.is_once)
        script.define(self._naming(session, child, name))
        read = f"global_temp.{name}" if self.naming.is_global else name
        if self.reading is Reading.BESIDE:
            script.define((f'{session}.sql("CREATE OR REPLACE TEMP VIEW of_it AS SELECT count(*) FROM {read}")',))
        made = script.add(self._reading(session, child, read))
        script.define(self._afterwards(session, child, name))
        return made

    def _naming(self, session: str, child: str, name: str) -> tuple[str, ...]:
        if self.naming not in (Naming.BY_SQL, Naming.BY_SQL_ONCE):
            return (f'{child}.{self.naming}("{name}")',)
        return (
            f'{child}.createOrReplaceTempView("behind")',
            f'{session}.sql("{self.naming} {name} AS SELECT * FROM behind")',
        )

    def _reading(self, session: str, child: str, name: str) -> str:
        condition, kept = self.condition.sql, f".where({self.condition.spark})"
        match self.reading:
            case Reading.TABLE:
                return f'{session}.table("{name}"){kept}'
            case Reading.READER:
                return f'{session}.read.table("{name}"){kept}'
            case Reading.IN_CAPITALS:
                return f'{session}.table("{name.upper()}"){kept}'
            case Reading.CTE:
                alias = name.removeprefix("global_temp.")
                return (
                    f'{session}.sql("WITH {alias} AS (SELECT * FROM {name}) SELECT * FROM {alias} WHERE {condition}")'
                )
            case Reading.ARGUMENT:
                return f'{session}.sql("SELECT * FROM {{given}} WHERE {condition}", given={child})'
            case Reading.BESIDE:
                beside = "EXISTS (SELECT 1 FROM of_it)"
                return f'{session}.sql("SELECT * FROM {name} WHERE ({condition}) AND {beside}")'
            case Reading.QUERY:
                return f'{session}.sql("SELECT * FROM {name} WHERE {condition}")'

    def _afterwards(self, session: str, child: str, name: str) -> tuple[str, ...]:
        kind = "Global" if self.naming.is_global else ""
        match self.afterwards:
            case Afterwards.GIVEN_AWAY:
                return (f'{child}.limit(0).createOrReplace{kind}TempView("{name}")',)
            case Afterwards.DROPPED:
                return (f'{session}.sql("DROP VIEW {"global_temp." if kind else ""}{name}")',)
            case Afterwards.DROPPED_BY_CATALOG:
                return (f'{session}.catalog.drop{kind}TempView("{name}")',)
            case Afterwards.KEPT:
                return ()

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE {self.condition.sql}"


@dataclass(frozen=True)
class OneNameForTwo(Unary, Habit):
    """Some rows and some others, read by one name that was given first to these and then to those."""

    name: str
    first: Expression
    second: Expression
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return self.first.uses | self.second.uses

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        read = []
        for condition in (self.first, self.second):
            script.define((f'{child}.where({condition.spark}).createOrReplaceTempView("{self.name}")',))
            read.append(script.add(f'{self.way.of(child)}.table("{self.name}")'))
        return script.add(f"{read[0]}.unionByName({read[1]})")

    def sql(self, scans: Scans) -> str:
        rows = [f"SELECT * FROM t WHERE {condition.sql}" for condition in (self.first, self.second)]
        return f"WITH t AS ({self.child.sql(scans)}) {' UNION ALL '.join(rows)}"


@dataclass(frozen=True)
class NameInLoop(Unary, Habit):
    """Rows for which several conditions hold: each turn of a loop gives the name to what the one before it made."""

    name: str
    conditions: tuple[Expression, ...]
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return frozenset().union(*(condition.uses for condition in self.conditions))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        made = script.add(child)
        texts = ", ".join(f'"{condition.sql}"' for condition in self.conditions)
        script.define(
            (
                f"for condition in [{texts}]:",
                f'    {made}.createOrReplaceTempView("{self.name}")',
                f'    {made} = {self.way.of(child)}.sql(f"SELECT * FROM {self.name} WHERE {{condition}}")',
            )
        )
        return made

    def sql(self, scans: Scans) -> str:
        holds = " AND ".join(f"({condition.sql})" for condition in self.conditions)
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE {holds}"


@dataclass(frozen=True)
class ViewOfView(Unary, Habit):
    """A view made by a query over a view that was made by a query over a frame's name."""

    name: str
    inner: Expression
    outer: Expression
    given_away: bool
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return self.inner.uses | self.outer.uses

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        session, name = self.way.of(child), self.name
        script.define(
            (
                f'{child}.createOrReplaceTempView("{name}")',
                f'{session}.sql("CREATE OR REPLACE TEMP VIEW within AS SELECT * FROM {name} WHERE {self.inner.sql}")',
                f'{session}.sql("CREATE OR REPLACE TEMP VIEW around AS SELECT * FROM within WHERE {self.outer.sql}")',
            )
        )
        made = script.add(f'{session}.table("around")')
        script.define([f'{child}.limit(0).createOrReplaceTempView("{name}")'] if self.given_away else [])
        return made

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE ({self.inner.sql}) AND ({self.outer.sql})"


@dataclass(frozen=True)
class Compared(Unary, Habit):
    """Rows below the most that one column holds, which a query finds in the same view."""

    name: str
    number: str
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def mixes(self) -> bool:
        return self.child.key != ()

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define((f'{child}.createOrReplaceTempView("{self.name}")',))
        most = f"(SELECT max({self.number}) FROM {self.name})"
        return script.add(f'{self.way.of(child)}.sql("SELECT * FROM {self.name} WHERE {self.number} < {most}")')

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) QUALIFY {self.number} < max({self.number}) OVER ()"


@dataclass(frozen=True)
class AggregateByName(Aggregate, Habit):
    """Groups of a frame that a query knows by name."""

    name: str = "rows"
    way: Way = Way.OF_FRAME

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define((f'{child}.createOrReplaceTempView("{self.name}")',))
        return script.add(f'{self.way.of(child)}.sql("{self._query()}")')

    def _query(self) -> str:
        measures = (f"{measure.sql(self._kind(measure))} AS {name}" for name, measure in self.measures)
        return f"SELECT {', '.join((*self.by, *measures))} FROM {self.name} GROUP BY {', '.join(self.by)}"


@dataclass(frozen=True)
class JoinByName(Join, Habit):
    """A join of two frames that a query knows by name."""

    names_given: tuple[str, str] = ("rows", "numbers")
    way: Way = Way.OF_FRAME

    def spark(self, script: Script) -> str:
        left, right = self.left.spark(script), self.right.spark(script)
        a, b = self.names_given
        script.define((f'{left}.createOrReplaceTempView("{a}")', f'{right}.createOrReplaceTempView("{b}")'))
        condition = " AND ".join(f"p.{one} = q.{other}" for one, other in self.on)
        word = {"left_semi": "LEFT SEMI", "left_anti": "LEFT ANTI"}.get(self.kind.value, self.kind.value.upper())
        return script.add(f'{self.way.of(left)}.sql("SELECT * FROM {a} AS p {word} JOIN {b} AS q ON {condition}")')


def named(script: Script, name: str, *, once: bool) -> str:
    """A name that nothing else in this function has, if it can be given once only; other functions may have it."""
    return f"{name.strip('`').replace(' ', '_')}_{script.made}" if once else name
