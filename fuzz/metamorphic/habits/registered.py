"""Functions that are registered in the session under a name, in Python or in SQL, and called by it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Scans, Script, Unary
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.habits.views import named
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column

FUNCTIONS = ("f", "doubled")  # few, so that functions of a region share them


class Registering(StrEnum):
    """How the function comes into the session."""

    PLAIN = "spark.udf.register of a lambda"
    UDF = "spark.udf.register of F.udf"
    PANDAS = "spark.udf.register of F.pandas_udf"
    SQL = "CREATE OR REPLACE TEMPORARY FUNCTION"
    SQL_ONCE = "CREATE TEMPORARY FUNCTION"

    @property
    def is_sql(self) -> bool:
        return self in (Registering.SQL, Registering.SQL_ONCE)


class Calling(StrEnum):
    """How it is called."""

    QUERY = "spark.sql"
    SELECT_EXPR = "selectExpr"
    EXPR = "F.expr"
    CALL_UDF = "F.call_udf"
    CALL_FUNCTION = "F.call_function"


@dataclass(frozen=True)
class Registered(Unary, Habit):
    """One more column, ``factor`` times a whole number and ``added``; ``again`` gives the name another body after it
    was used.
    """

    number: str
    name: str
    function: str
    factor: int
    added: int
    registering: Registering
    calling: Calling
    again: bool
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.BIG))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        session = self.way.of(child)
        function = named(script, self.function, once=self.registering is Registering.SQL_ONCE)
        script.define(self._registered(session, function, self.factor, self.added))
        if self.calling is Calling.QUERY:
            script.define((f'{child}.createOrReplaceTempView("rows")',))
        made = script.add(self._called(session, child, function))
        if self.again and self.registering is not Registering.SQL_ONCE:
            script.define(self._registered(session, function, 0, -1))
        return made

    def _registered(self, session: str, function: str, factor: int, added: int) -> tuple[str, ...]:
        body = f"lambda number: None if number is None else {factor} * number + {added}"
        match self.registering:
            case Registering.PLAIN:
                return (f'{session}.udf.register("{function}", {body}, "bigint")',)
            case Registering.UDF:
                return (f'{session}.udf.register("{function}", F.udf({body}, LongType()))',)
            case Registering.PANDAS:
                head = f"def {function}_of(numbers: pd.Series) -> pd.Series:"
                lines = ("@F.pandas_udf(LongType())", head, f"    return {factor} * numbers + {added}")
                return (*lines, f'{session}.udf.register("{function}", {function}_of)')
            case _:
                query = f"(number BIGINT) RETURNS BIGINT RETURN {factor} * number + {added}"
                return (f'{session}.sql("{self.registering} {function}{query}")',)

    def _called(self, session: str, child: str, function: str) -> str:
        call = f"{function}({self.number})"
        match self.calling:
            case Calling.QUERY:
                return f'{session}.sql("SELECT *, {call} AS {self.name} FROM rows")'
            case Calling.SELECT_EXPR:
                return f'{child}.selectExpr("*", "{call} AS {self.name}")'
            case Calling.EXPR:
                return f'{child}.withColumn("{self.name}", F.expr("{call}"))'
            case _:
                column = f'F.{self.calling.name.lower()}("{function}", F.col("{self.number}"))'
                return f'{child}.withColumn("{self.name}", {column})'

    def sql(self, scans: Scans) -> str:
        value = f"CAST({self.number} AS bigint) * {self.factor} + {self.added}"
        return f"SELECT *, {value} AS {self.name} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class TableFunction(Unary, Habit):
    """Two rows for each, of a registered function that gives a table; one has the number, one has ``other``."""

    number: str
    name: str
    function: str
    other: int
    way: Way

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.INT))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        session = self.way.of(child)
        script.define(
            (
                "class Both:",
                "    def eval(self, number):",
                "        yield (number,)",
                f"        yield ({self.other},)",
                f'{session}.udtf.register("{self.function}_both", F.udtf(Both, returnType="{self.name} int"))',
                f'{child}.createOrReplaceTempView("rows")',
            )
        )
        call = f"LATERAL {self.function}_both(p.{self.number}) AS q"
        return script.add(f'{session}.sql("SELECT p.*, q.{self.name} FROM rows AS p, {call}")')

    def sql(self, scans: Scans) -> str:
        return f"SELECT *, unnest([{self.number}, {self.other}]) AS {self.name} FROM ({self.child.sql(scans)})"
