"""Operators that put rows together by columns: aggregates and windows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Key, Scans, Script, Unary, ascending, covers, narrowed, quoted
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column


class Grouping(StrEnum):
    """What Spark's method is called."""

    GROUP = "groupBy"
    ROLLUP = "rollup"
    CUBE = "cube"


@dataclass(frozen=True)
class Measure:
    """An aggregate that is exact and heeds no order; ``argument`` is a column."""

    function: str
    argument: str

    def kind(self, argument: Kind) -> Kind:
        if self.function in ("count", "count_distinct"):
            return Kind.BIG
        if self.function == "sum":
            return Kind.BIG if argument is Kind.INT else Kind.WIDE
        return argument

    def spark(self, argument: Kind) -> str:
        cast = f'.cast("{self.kind(argument).value}")' if self.function == "sum" else ""
        return f'F.{self.function}("{self.argument}"){cast}'

    def sql(self, argument: Kind) -> str:
        if self.function == "count_distinct":
            return f"count(DISTINCT {self.argument})"
        call = f"{self.function}({self.argument})"
        return f"CAST({call} AS {self.kind(argument).duckdb})" if self.function == "sum" else call


@dataclass(frozen=True)
class Aggregate(Unary):
    """``measures`` by the names of their columns."""

    by: tuple[str, ...]
    measures: tuple[tuple[str, Measure], ...]
    grouping: Grouping = Grouping.GROUP

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((*self.by, *(measure.argument for _, measure in self.measures)))

    @property
    def columns(self) -> tuple[Column, ...]:
        made = (Column(name, measure.kind(self._kind(measure))) for name, measure in self.measures)
        return (*(self.child.column(name) for name in self.by), *made)

    @property
    def key(self) -> Key:
        return narrowed(self.child.key, self.by) if self.grouping is Grouping.GROUP or self.child.key == () else None

    @property
    def mixes(self) -> bool:
        plain = self.grouping is Grouping.GROUP and covers(self.by, self.child.key)
        return not plain and self.child.key != ()

    def spark(self, script: Script) -> str:
        measures = ", ".join(f'{measure.spark(self._kind(measure))}.alias("{name}")' for name, measure in self.measures)
        return script.add(f"{self.child.spark(script)}.{self.grouping}({quoted(self.by)}).agg({measures})")

    def sql(self, scans: Scans) -> str:
        measures = (f"{measure.sql(self._kind(measure))} AS {name}" for name, measure in self.measures)
        by = ", ".join(self.by)
        groups = {Grouping.GROUP: by, Grouping.ROLLUP: f"ROLLUP({by})", Grouping.CUBE: f"CUBE({by})"}[self.grouping]
        ending = f" GROUP BY {groups}" if by else ""
        return f"SELECT {', '.join((*self.by, *measures))} FROM ({self.child.sql(scans)}){ending}"

    def _kind(self, measure: Measure) -> Kind:
        return self.child.column(measure.argument).kind


class Ranking(StrEnum):
    """Functions of a window that need an order; row_number gets one of all columns."""

    RANK = "rank"
    DENSE_RANK = "dense_rank"
    ROW_NUMBER = "row_number"


@dataclass(frozen=True)
class Window(Unary):
    """One more column: a ranking, or a measure of the rows that come before and with the row where there is an
    order.
    """

    by: tuple[str, ...]
    order: tuple[str, ...]
    name: str
    function: Ranking | Measure

    @property
    def uses(self) -> frozenset[str]:
        measured = (self.function.argument,) if isinstance(self.function, Measure) else ()
        return frozenset((*self.by, *self.order, *measured))

    @property
    def columns(self) -> tuple[Column, ...]:
        measured = isinstance(self.function, Measure) and self.function.kind(
            self.child.column(self.function.argument).kind
        )
        return (*self.child.columns, Column(self.name, measured or Kind.INT))

    @property
    def mixes(self) -> bool:
        return not covers(self.by, self.child.key)

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        window = f"Window.partitionBy({quoted(self.by)})"
        window = f"{window}.orderBy({quoted(self.order)})" if self.order else window
        function, cast = self._function()
        return script.add(f'{child}.withColumn("{self.name}", {function}.over({window}){cast})')

    def _function(self) -> tuple[str, str]:
        if isinstance(self.function, Ranking):
            return f"F.{self.function}()", ""
        kind = self.child.column(self.function.argument).kind
        plain = f'F.{self.function.function}("{self.function.argument}")'
        return plain, f'.cast("{self.function.kind(kind).value}")' if self.function.function == "sum" else ""

    def sql(self, scans: Scans) -> str:
        by = f"PARTITION BY {', '.join(self.by)}" if self.by else ""
        order = f"ORDER BY {ascending(self.order)}" if self.order else ""
        over = f"OVER ({by} {order})"
        if isinstance(self.function, Ranking):
            call = f"{self.function}() {over}"
        else:
            call = f"{self.function.function}({self.function.argument}) {over}"
            if self.function.function == "sum":
                call = f"CAST({call} AS {self.columns[-1].kind.duckdb})"
        return f"SELECT *, {call} AS {self.name} FROM ({self.child.sql(scans)})"
