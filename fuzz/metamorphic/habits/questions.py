"""Functions that have Spark compute something while they are called, and go by what it says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Expression, Scans, Script, Unary, covers
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column

COLLECTABLE = (Kind.INT, Kind.STRING, Kind.DATE)  # with values that are in Python what they are in Spark
SETTLED = 4  # a loop halves numbers until none is more


class Question(StrEnum):
    """How a call asks for the most that a column of its rows holds, or for their number."""

    COUNT = "{child}.count()"
    LENGTH = "len({child}.collect())"
    QUERY_COUNT = '{session}.sql("SELECT count(*) FROM {{given}}", given={child}).first()[0]'
    AGGREGATE = '{child}.agg(F.max("{number}")).first()[0]'
    AGGREGATE_COLLECTED = '{child}.groupBy().max("{number}").collect()[0][0]'
    COLLECTED = 'max((row[0] for row in {child}.select("{number}").collect() if row[0] is not None), default=None)'
    ITERATED = (
        'max((row[0] for row in {child}.select("{number}").toLocalIterator() if row[0] is not None), default=None)'
    )
    PANDAS = 'max({child}.select("{number}").toPandas()["{number}"].dropna().astype(int), default=None)'
    ARROW = 'pc.max({child}.select("{number}").toArrow()["{number}"]).as_py()'
    TAKE = '([row["{number}"] for row in {child}.orderBy(F.desc("{number}")).take(1)] or [None])[0]'
    HEAD = '([row["{number}"] for row in {child}.orderBy(F.desc("{number}")).head(1)] or [None])[0]'
    LIMIT = '([row["{number}"] for row in {child}.orderBy(F.desc("{number}")).limit(1).collect()] or [None])[0]'
    FIRST = '({child}.orderBy(F.desc("{number}")).select("{number}").first() or [None])[0]'
    TAIL = '([row["{number}"] for row in {child}.orderBy("{number}").tail(1)] or [None])[0]'
    QUANTILE = '({child}.approxQuantile("{number}", [1.0], 0.0) or [None])[0]'
    DESCRIBED = '{{row[0]: row[1] for row in {child}.select("{number}").describe().collect()}}["max"]'
    SUMMARY = '{child}.select("{number}").summary("max").collect()[0][1]'
    OBSERVED = "observed.get['most']"
    QUERY = '{session}.sql("SELECT max({number}) FROM asked").collect()[0][0]'
    PANDAS_ON_SPARK = '{child}.pandas_api()["{number}"].max()'

    @property
    def counts(self) -> bool:
        return self in (Question.COUNT, Question.LENGTH, Question.QUERY_COUNT)

    def before(self, child: str, number: str) -> tuple[str, ...]:
        """What has to be done before it can be asked."""
        if self is Question.QUERY:
            return (f'{child}.createOrReplaceTempView("asked")',)
        if self is Question.OBSERVED:
            observed = f'{child}.observe(observed, F.max("{number}").alias("most"))'
            return ("observed = Observation()", f"{observed}.collect()")
        return ()


class Use(StrEnum):
    """What is made of the answer: a column, a condition of Spark's or one of Python's."""

    COLUMN = "one more column"
    BELOW = "rows below it"
    BRANCH = "all rows or none"


@dataclass(frozen=True)
class Asked(Unary, Habit):
    """Rows by what is so of all rows of the call."""

    number: str
    name: str
    question: Question
    use: Use
    more_than: int
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.BIG)) if self.use is Use.COLUMN else self.child.columns

    @property
    def mixes(self) -> bool:
        return self.child.key != ()

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(self.question.before(child, self.number))
        answer = script.add(self.question.format(child=child, session=self.way.of(child), number=self.number))
        known = script.add(f"None if pd.isna({answer}) else int({answer})")
        match self.use:
            case Use.COLUMN:
                return script.add(f'{child}.withColumn("{self.name}", F.lit({known}).cast("bigint"))')
            case Use.BELOW:
                return script.add(f'{child}.where(F.col("{self.number}") < F.lit({known}).cast("bigint"))')
            case Use.BRANCH:
                return script.add(f"{child} if ({known} or 0) > {self.more_than} else {child}.limit(0)")

    def sql(self, scans: Scans) -> str:
        answer = "count(*) OVER ()" if self.question.counts else f"CAST(max({self.number}) OVER () AS bigint)"
        match self.use:
            case Use.COLUMN:
                return f"SELECT *, {answer} AS {self.name} FROM ({self.child.sql(scans)})"
            case Use.BELOW:
                return f"SELECT * FROM ({self.child.sql(scans)}) QUALIFY {self.number} < {answer}"
            case Use.BRANCH:
                return f"SELECT * FROM ({self.child.sql(scans)}) QUALIFY coalesce({answer}, 0) > {self.more_than}"


class Look(StrEnum):
    """A question whose answer changes nothing."""

    COUNT = "{child}.count() < 0"
    EMPTY = "{child}.isEmpty()"
    FIRST = "{child}.first() is None"
    HEAD = "not {child}.head(1)"
    TAKE = "not {child}.take(2)"
    PANDAS = "{child}.limit(3).toPandas().empty"
    ITERATOR = "next({child}.toLocalIterator(), None) is None"
    SCHEMA = "not {child}.schema.fields"
    COLUMNS = "not {child}.columns"
    PLAN = "{child}.schema.simpleString() == ''"


@dataclass(frozen=True)
class Looked(Unary, Habit):
    """Rows for which a condition holds; a call whose rows are none does without it."""

    look: Look
    condition: Expression

    @property
    def uses(self) -> frozenset[str]:
        return self.condition.uses

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        asked = self.look.format(child=child)
        return script.add(f"{child}.limit(0) if {asked} else {child}.where({self.condition.spark})")

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE {self.condition.sql}"


class Still(StrEnum):
    """How a loop asks whether it is done."""

    COUNT = "{unsettled}.count() > 0"
    EMPTY = "not {unsettled}.isEmpty()"
    FIRST = "{unsettled}.first() is not None"
    TAKE = "{unsettled}.take(1)"


class EachTurn(StrEnum):
    """What becomes of the frame in each turn."""

    GROWS = ""
    CACHED = ".cache()"
    CUT = ".localCheckpoint()"
    CUT_LAZILY = ".localCheckpoint(eager=False)"


@dataclass(frozen=True)
class Converged(Unary, Habit):
    """One more column: a whole number, halved until no row has more than a few. How many turns it takes, which hangs on
    the call's rows, does not change a row.
    """

    number: str
    name: str
    still: Still
    each_turn: EachTurn

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.BIG))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        made = script.add(f'{child}.withColumn("{self.name}", F.col("{self.number}").cast("bigint"))')
        unsettled = f'{made}.where(F.col("{self.name}") > {SETTLED})'
        halved = f'F.expr("CASE WHEN {self.name} > {SETTLED} THEN {self.name} DIV 2 ELSE {self.name} END")'
        script.define(
            (
                f"while {self.still.format(unsettled=unsettled)}:",
                f'    {made} = {made}.withColumn("{self.name}", {halved}){self.each_turn}',
            )
        )
        return made

    def sql(self, scans: Scans) -> str:
        turns = " ".join(
            f"WHEN {self.number} < {(SETTLED + 1) << turn} THEN CAST({self.number} AS bigint) >> {turn}"
            for turn in range(1, 28)
        )
        value = f"CASE WHEN {self.number} <= {SETTLED} THEN CAST({self.number} AS bigint) {turns} END"
        return f"SELECT *, {value} AS {self.name} FROM ({self.child.sql(scans)})"


class KeysUsed(StrEnum):
    """What collected values are good for."""

    ISIN = "isin"
    JOINED = "createDataFrame, and a join"
    CONTAINED = "array_contains"


@dataclass(frozen=True)
class KeysCollected(Unary, Habit):
    """Rows with a value that a row has for which a condition holds: the values are collected."""

    by: str
    condition: Expression
    used: KeysUsed
    way: Way

    def check(self) -> None:
        super().check()
        assert self.child.column(self.by).kind in COLLECTABLE

    @property
    def uses(self) -> frozenset[str]:
        return self.condition.uses | {self.by}

    @property
    def mixes(self) -> bool:
        return not covers((self.by,), self.child.key)

    def spark(self, script: Script) -> str:
        child, column = self.child.spark(script), self.by
        distinct = f'{child}.where({self.condition.spark}).select("{column}").distinct()'
        values = script.add(f"[row[0] for row in {distinct}.collect() if row[0] is not None]")
        match self.used:
            case KeysUsed.ISIN:
                return script.add(f'{child}.where(F.col("{column}").isin({values}))')
            case KeysUsed.CONTAINED:
                known = f"F.array_contains(F.lit({values}), F.col('{column}'))"
                return script.add(f"{child}.where({known}) if {values} else {child}.limit(0)")
            case KeysUsed.JOINED:
                rows, kind = f"[(value,) for value in {values}]", self.child.column(column).kind
                known = script.add(f'{self.way.of(child)}.createDataFrame({rows}, "known {kind}")')
                return script.add(f'{child}.join({known}, F.col("{column}") == F.col("known"), "left_semi")')

    def sql(self, scans: Scans) -> str:
        known = f"max(CASE WHEN {self.condition.sql} THEN 1 ELSE 0 END) OVER (PARTITION BY {self.by}) = 1"
        return f"SELECT * FROM ({self.child.sql(scans)}) QUALIFY {self.by} IS NOT NULL AND {known}"
