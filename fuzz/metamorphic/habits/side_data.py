"""Rows that a function gets elsewhere than from its inputs: literals, what it collected, and small files beside its
module.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.metamorphic.algebra import Scans, Script, Unary
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.kinds import ARROW, SAFE_IN_PANDAS, Kind
from fuzz.metamorphic.source_data import Column

PAIRS: Mapping[Kind, tuple[tuple[int | str, int], ...]] = {
    Kind.INT: ((0, 10), (1, 11), (2, 22), (5, 55)),
    Kind.STRING: (("a", 1), ("0", 2), ("zz", 3), ("A", 4)),
}


def write_side_files(folder: Path) -> None:
    """The same few pairs in each format, by the type of their first column."""
    for kind, pairs in PAIRS.items():
        rows = [{"looked": key, "found": value} for key, value in pairs]
        schema = pa.schema([("looked", ARROW[kind]), ("found", pa.int64())])
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"side_{kind.slug}.parquet")
        (folder / f"side_{kind.slug}.json").write_text(json.dumps(rows))
        with (folder / f"side_{kind.slug}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("looked", "found"), *pairs])


class Origin(StrEnum):
    """Where the pairs come from. ``{kind}`` is what Spark calls the type of the first column."""

    TUPLES = '{session}.createDataFrame({pairs}, "looked {kind}, found bigint")'
    ROWS = "{session}.createDataFrame([Row(looked=key, found=value) for key, value in {pairs}])"
    PANDAS = '{session}.createDataFrame(pd.DataFrame({pairs}, columns=["looked", "found"]))'
    ARROW = "{session}.createDataFrame(pa.table(list(map(pa.array, zip(*{pairs}))), ['looked', 'found']))"
    VALUES = '{session}.sql("SELECT * FROM VALUES {values} AS t(looked, found)")'
    PARQUET = '{session}.read.parquet(beside("side_{slug}.parquet"))'
    PARQUET_FORMAT = '{session}.read.format("parquet").load(beside("side_{slug}.parquet"))'
    PARQUET_QUERY = '{session}.sql("SELECT * FROM parquet.`" + beside("side_{slug}.parquet") + "`")'
    CSV = '{session}.read.csv(beside("side_{slug}.csv"), header=True, schema="looked {kind}, found bigint")'
    PANDAS_CSV = '{session}.createDataFrame(pd.read_csv(beside("side_{slug}.csv"), dtype={{"looked": "{python}"}}))'
    PANDAS_PARQUET = '{session}.createDataFrame(pd.read_parquet(beside("side_{slug}.parquet")))'
    OPENED = '{session}.createDataFrame([Row(**one) for one in json.load(open(beside("side_{slug}.json")))])'

    def frame(self, session: str, kind: Kind) -> str:
        pairs = PAIRS[kind]
        return self.format(
            session=session,
            pairs=list(pairs),
            kind=kind,
            values=", ".join(f"({key!r}, {value}L)" for key, value in pairs),
            slug=kind.slug,
            python="int" if kind is Kind.INT else "str",
        )


class Joining(StrEnum):
    """What Spark's `how` is."""

    LEFT = "left"
    INNER = "inner"
    SEMI = "left_semi"
    ANTI = "left_anti"


@dataclass(frozen=True)
class LookedUp(Unary, Habit):
    """Rows joined with a few pairs; with a column of what was found, where there is one."""

    by: str
    name: str
    origin: Origin
    joining: Joining
    broadcast: bool
    way: Way

    def check(self) -> None:
        super().check()
        assert self._kind in PAIRS

    @property
    def _kind(self) -> Kind:
        return self.child.column(self.by).kind

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.by,))

    @property
    def columns(self) -> tuple[Column, ...]:
        extends = self.joining in (Joining.LEFT, Joining.INNER)
        return (*self.child.columns, *([Column(self.name, Kind.BIG)] if extends else []))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        looked = f"looked_{self.name}"
        pairs = script.add(f'{self.origin.frame(self.way.of(child), self._kind)}.toDF("{looked}", "{self.name}")')
        side = f"F.broadcast({pairs})" if self.broadcast else pairs
        made = f'{child}.join({side}, F.col("{self.by}") == F.col("{looked}"), "{self.joining}")'
        return script.add(f'{made}.drop("{looked}")')

    def sql(self, scans: Scans) -> str:
        pairs = ", ".join(f"({key!r}, CAST({value} AS bigint))" for key, value in PAIRS[self._kind])
        side = f"(VALUES {pairs}) AS q(looked, {self.name}) ON p.{self.by} = q.looked"
        word = {Joining.SEMI: "SEMI", Joining.ANTI: "ANTI"}.get(self.joining, self.joining.name)
        columns = ", ".join((*(f"p.{name}" for name in self.child.names), *self.names[len(self.child.names) :]))
        return f"SELECT {columns} FROM ({self.child.sql(scans)}) AS p {word} JOIN {side}"


class Rebuilding(StrEnum):
    """How a frame is made anew of all its rows."""

    ROWS = "{session}.createDataFrame({child}.collect(), {child}.schema)"
    TUPLES = "{session}.createDataFrame([tuple(row) for row in {child}.toLocalIterator()], {child}.schema)"
    ARROW = "{session}.createDataFrame({child}.toArrow(), {child}.schema)"
    PANDAS = "{session}.createDataFrame({child}.toPandas(), {child}.schema)"
    UNITED = '{child}.where("false").unionByName({session}.createDataFrame({child}.collect(), {child}.schema))'


@dataclass(frozen=True)
class Rebuilt(Unary, Habit):
    """The same rows, from this process's memory."""

    rebuilding: Rebuilding
    way: Way

    def check(self) -> None:
        super().check()
        if self.rebuilding is Rebuilding.PANDAS:
            assert all(column.kind in SAFE_IN_PANDAS and column.kind is not Kind.INT for column in self.columns)

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        return script.add(self.rebuilding.format(session=self.way.of(child), child=child))

    def sql(self, scans: Scans) -> str:
        return self.child.sql(scans)
