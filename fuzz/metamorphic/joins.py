"""Operators of two inputs: joins, unions and the other operations on sets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Given, Key, Operator, Rename, Scans, Script, covers, narrowed, quoted
from fuzz.metamorphic.kinds import Kind, common_kind
from fuzz.metamorphic.source_data import Column


class JoinKind(StrEnum):
    """What Spark's `how` is."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "left_semi"
    ANTI = "left_anti"
    CROSS = "cross"


class JoinForm(StrEnum):
    """How the equal columns come out: both as they are, or one, made by Spark or by the author."""

    CONDITION = "condition"
    NULL_SAFE = "null safe"
    USING = "using"
    COALESCED = "coalesced"

    @property
    def merges(self) -> bool:
        return self in (JoinForm.USING, JoinForm.COALESCED)


LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)
BOTH_SIDES = (JoinKind.RIGHT, JoinKind.FULL)  # those that keep what matches nothing on the right


@dataclass(frozen=True)
class Binary(Operator):
    left: Operator
    right: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Join(Binary):
    """Of inputs whose columns have unlike names; ``on`` are pairs of them."""

    kind: JoinKind
    on: tuple[tuple[str, str], ...] = ()
    form: JoinForm = JoinForm.CONDITION

    @property
    def columns(self) -> tuple[Column, ...]:
        if self.kind in LEFT_ONLY:
            return self.left.columns
        if not self.form.merges:
            return (*self.left.columns, *self.right.columns)
        merged = dict(self.on)
        left = (
            Column(column.name, self._merged_kind(column)) if column.name in merged else column
            for column in self.left.columns
        )
        return (*left, *(column for column in self.right.columns if column.name not in merged.values()))

    def _merged_kind(self, column: Column) -> Kind:
        other = self.right.column(dict(self.on)[column.name]).kind
        if self.form is JoinForm.COALESCED or self.kind is JoinKind.FULL:
            return common_kind(column.kind, other)
        return other if self.kind is JoinKind.RIGHT else column.kind

    @property
    def key(self) -> Key:
        """A join by other columns still leaves each row the key of the side that it came from."""
        if self._whole or self.kind in LEFT_ONLY:
            return None if self.kind in BOTH_SIDES else self.left.key
        if self.left.key is None or self.right.key is None or self.mixes:
            return {JoinKind.RIGHT: self.right.key, JoinKind.FULL: None}.get(self.kind, self.left.key)
        return self._joined_key(self.left.key, self.right.key)

    def _joined_key(self, left: tuple[frozenset[str], ...], right: tuple[frozenset[str], ...]) -> Key:
        if self.form.merges:
            matched = {name for name, _ in self.on}
            return tuple(names & matched for names in left)
        match self.kind:
            case JoinKind.INNER | JoinKind.CROSS:
                return tuple(one | other for one, other in zip(left, right, strict=True))
            case JoinKind.LEFT:
                return left
            case JoinKind.RIGHT:
                return right
            case _:
                return None if left else ()

    @property
    def _whole(self) -> bool:
        right = self.right.child if isinstance(self.right, Rename) else self.right
        return isinstance(right, Given) and right.whole

    @property
    def mixes(self) -> bool:
        if self._whole:
            return self.kind in BOTH_SIDES and self.left.key != ()
        if self.left.key is None or self.right.key is None:
            return True
        pairs = zip(self.left.key, self.right.key, strict=True)
        return not all(any(a in one and b in other for a, b in self.on) for one, other in pairs)

    def check(self) -> None:
        super().check()
        assert all(a in self.left.names and b in self.right.names for a, b in self.on)
        assert not set(self.left.names) & set(self.right.names)

    def spark(self, script: Script) -> str:
        left, right = self.left.spark(script), self.right.spark(script)
        if self.kind is JoinKind.CROSS:
            return script.add(f"{left}.crossJoin({right})")
        if self.form is JoinForm.USING:
            for a, b in self.on:
                right = script.add(f'{right}.withColumnRenamed("{b}", "{a}")')
            made = script.add(f'{left}.join({right}, [{quoted(a for a, _ in self.on)}], "{self.kind}")')
            return script.add(f"{made}.select({quoted(self.names)})")
        sign = (
            "F.col('{}').eqNullSafe(F.col('{}'))" if self.form is JoinForm.NULL_SAFE else "(F.col('{}') == F.col('{}'))"
        )
        condition = " & ".join(sign.format(a, b) for a, b in self.on)
        made = script.add(f'{left}.join({right}, {condition}, "{self.kind}")')
        if self.form is JoinForm.COALESCED:
            for a, b in self.on:
                made = script.add(f'{made}.withColumn("{a}", F.coalesce("{a}", "{b}")).drop("{b}")')
        return made

    def sql(self, scans: Scans) -> str:
        left, right = f"({self.left.sql(scans)}) AS p", f"({self.right.sql(scans)}) AS q"
        if self.kind is JoinKind.CROSS:
            return f"SELECT * FROM {left} CROSS JOIN {right}"
        condition = " AND ".join(self._equal(a, b) for a, b in self.on)
        if self.kind in LEFT_ONLY:
            sign = "EXISTS" if self.kind is JoinKind.SEMI else "NOT EXISTS"
            return f"SELECT * FROM {left} WHERE {sign} (SELECT 1 FROM {right} WHERE {condition})"
        word = {JoinKind.FULL: "FULL OUTER"}.get(self.kind, self.kind.name)
        return f"SELECT {self._selected()} FROM {left} {word} JOIN {right} ON {condition}"

    def _equal(self, a: str, b: str) -> str:
        common = common_kind(self.left.column(a).kind, self.right.column(b).kind).duckdb
        sign = "IS NOT DISTINCT FROM" if self.form is JoinForm.NULL_SAFE else "="
        return f"CAST(p.{a} AS {common}) {sign} CAST(q.{b} AS {common})"

    def _selected(self) -> str:
        if not self.form.merges:
            return "*"
        merged = dict(self.on)
        left = (self._merged(name, merged[name]) if name in merged else name for name in self.left.names)
        return ", ".join((*left, *(name for name in self.right.names if name not in merged.values())))

    def _merged(self, a: str, b: str) -> str:
        if self.form is JoinForm.USING and self.kind is not JoinKind.FULL:
            return f"q.{b} AS {a}" if self.kind is JoinKind.RIGHT else f"p.{a} AS {a}"
        common = common_kind(self.left.column(a).kind, self.right.column(b).kind).duckdb
        return f"coalesce(CAST(p.{a} AS {common}), CAST(q.{b} AS {common})) AS {a}"


class SetKind(StrEnum):
    """What Spark's method is called."""

    UNION = "unionByName"
    INTERSECT = "intersect"
    EXCEPT_ALL = "exceptAll"
    SUBTRACT = "subtract"

    @property
    def sql(self) -> str:
        return {"unionByName": "UNION ALL", "intersect": "INTERSECT", "exceptAll": "EXCEPT ALL", "subtract": "EXCEPT"}[
            self.value
        ]


@dataclass(frozen=True)
class SetOperation(Binary):
    """Of inputs with the same columns, apart from the types of some numbers."""

    kind: SetKind

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(column.name, common_kind(column.kind, self.right.column(column.name).kind))
            for column in self.left.columns
        )

    @property
    def key(self) -> Key:
        if self.left.key is None or self.right.key is None:
            return None
        shared = tuple(one & other for one, other in zip(self.left.key, self.right.key, strict=True))
        return narrowed(shared, self.names) if all(shared) else None

    @property
    def mixes(self) -> bool:
        return self.kind is not SetKind.UNION and not covers(self.names, self.key)

    def check(self) -> None:
        super().check()
        assert self.left.names == self.right.names

    def spark(self, script: Script) -> str:
        return script.add(f"{self.left.spark(script)}.{self.kind}({self.right.spark(script)})")

    def sql(self, scans: Scans) -> str:
        left, right = (self._casted(one, scans) for one in self.inputs)
        return f"({left}) {self.kind.sql} ({right})"

    def _casted(self, side: Operator, scans: Scans) -> str:
        columns = ", ".join(f"CAST({column.name} AS {column.kind.duckdb}) AS {column.name}" for column in self.columns)
        return f"SELECT {columns} FROM ({side.sql(scans)})"
