"""Operators that run Python: what a plan cannot look into. DuckDB says the same in SQL."""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.metamorphic.algebra import Key, Operator, Scans, Script, Unary, covers, narrowed, quoted
from fuzz.metamorphic.joins import Binary
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column


def schema_of(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{column.name} {column.kind}" for column in columns)


@dataclass(frozen=True)
class MapInPandas(Unary):
    """Row by row, though nobody can see that:
    keeps the rows whose column is not null, and adds the length of its text.
    """

    text: str
    name: str

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((self.text,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, Kind.INT))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(
            (
                f"def lengths_{self.name}(batches):",
                "    for rows in batches:",
                f'        kept = rows[rows["{self.text}"].notna()]',
                f'        yield kept.assign({self.name}=kept["{self.text}"].map(len).astype("int32"))',
            )
        )
        return script.add(f'{child}.mapInPandas(lengths_{self.name}, "{schema_of(self.columns)}")')

    def sql(self, scans: Scans) -> str:
        return (
            f"SELECT *, length({self.text}) AS {self.name} FROM ({self.child.sql(scans)}) WHERE {self.text} IS NOT NULL"
        )


@dataclass(frozen=True)
class ApplyInPandas(Unary):
    """Of each group its key, its rows, and how many of them have a value."""

    by: tuple[str, ...]
    counted: str
    rows: str
    known: str

    @property
    def uses(self) -> frozenset[str]:
        return frozenset((*self.by, self.counted))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (
            *(self.child.column(name) for name in self.by),
            Column(self.rows, Kind.BIG),
            Column(self.known, Kind.BIG),
        )

    @property
    def key(self) -> Key:
        return narrowed(self.child.key, self.by)

    @property
    def mixes(self) -> bool:
        return not covers(self.by, self.child.key)

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(
            (
                f"def counts_{self.rows}(group):",
                f"    first = group[[{quoted(self.by)}]].head(1)",
                f"    return first.assign({self.rows}=len(group), "
                f'{self.known}=int(group["{self.counted}"].notna().sum()))',
            )
        )
        return script.add(
            f'{child}.groupBy({quoted(self.by)}).applyInPandas(counts_{self.rows}, "{schema_of(self.columns)}")'
        )

    def sql(self, scans: Scans) -> str:
        by = ", ".join(self.by)
        counts = f"count(*) AS {self.rows}, count({self.counted}) AS {self.known}"
        return f"SELECT {by}, {counts} FROM ({self.child.sql(scans)}) GROUP BY {by}"


@dataclass(frozen=True)
class CoGroupInPandas(Binary):
    """Of each key on either side, how many rows there are on both; ``by`` are pairs of columns of one type."""

    by: tuple[tuple[str, str], ...]
    lefts: str
    rights: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*(self.left.column(a) for a, _ in self.by), Column(self.lefts, Kind.BIG), Column(self.rights, Kind.BIG))

    @property
    def key(self) -> Key:
        return None if self.mixes else narrowed(self.left.key, [a for a, _ in self.by])

    @property
    def mixes(self) -> bool:
        if self.left.key is None or self.right.key is None:
            return True
        pairs = zip(self.left.key, self.right.key, strict=True)
        return not all(any(a in one and b in other for a, b in self.by) for one, other in pairs)

    def check(self) -> None:
        super().check()
        assert all(a in self.left.names and b in self.right.names for a, b in self.by)

    def spark(self, script: Script) -> str:
        left, right = self.left.spark(script), self.right.spark(script)
        names, others = quoted(a for a, _ in self.by), quoted(b for _, b in self.by)
        script.define(
            (
                f"def sides_{self.lefts}(left, right):",
                f"    known = left[[{names}]] if len(left) else right[[{others}]].set_axis([{names}], axis=1)",
                f"    return known.head(1).assign({self.lefts}=len(left), {self.rights}=len(right))",
            )
        )
        groups = f"{left}.groupBy({names}).cogroup({right}.groupBy({others}))"
        return script.add(f'{groups}.applyInPandas(sides_{self.lefts}, "{schema_of(self.columns)}")')

    def sql(self, scans: Scans) -> str:
        sides = (
            self._counted(self.left, [a for a, _ in self.by], scans),
            self._counted(self.right, [b for _, b in self.by], scans),
        )
        condition = " AND ".join(f"p.{a} IS NOT DISTINCT FROM q.{b}" for a, b in self.by)
        keys = ", ".join(f"CASE WHEN p.n IS NULL THEN q.{b} ELSE p.{a} END AS {a}" for a, b in self.by)
        counts = f"coalesce(p.n, 0) AS {self.lefts}, coalesce(q.n, 0) AS {self.rights}"
        return f"SELECT {keys}, {counts} FROM ({sides[0]}) AS p FULL OUTER JOIN ({sides[1]}) AS q ON {condition}"

    def _counted(self, side: Operator, by: list[str], scans: Scans) -> str:
        return f"SELECT {', '.join(by)}, count(*) AS n FROM ({side.sql(scans)}) GROUP BY {', '.join(by)}"
