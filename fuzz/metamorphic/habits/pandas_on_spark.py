"""Functions that take their rows for a pandas frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Scans, Script, Unary
from fuzz.metamorphic.habits.habit import Habit
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column


class Computing(StrEnum):
    """How the column comes into the pandas frame."""

    ITEM = 'pandas["{name}"] = pandas["{number}"] * 2 + 1'
    ASSIGN = 'pandas = pandas.assign({name}=lambda rows: rows["{number}"] * 2 + 1)'


@dataclass(frozen=True)
class PandasOnSpark(Unary, Habit):
    """One more column, and rows whose number is more than some, both in the words of pandas."""

    number: str
    name: str
    computing: Computing
    more_than: int

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.number,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.INT))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(
            (
                f"pandas = {child}.pandas_api()",
                self.computing.format(name=self.name, number=self.number),
                f'pandas = pandas[pandas["{self.number}"] > {self.more_than}]',
            )
        )
        return script.add("pandas.to_spark()")

    def sql(self, scans: Scans) -> str:
        value = f"CAST({self.number} * 2 + 1 AS int) AS {self.name}"
        return f"SELECT *, {value} FROM ({self.child.sql(scans)}) WHERE {self.number} > {self.more_than}"
