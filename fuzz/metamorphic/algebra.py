"""A small relational algebra. Each operator says itself in PySpark and in DuckDB's SQL, and whether key groups stay
apart in it.

``key`` tells where the key of the stage's exchange is: for each of its columns, the names that now hold it. It is None
once the key is lost, and empty where everything is given to one call. An operator is ``loose`` when what it makes of
one key depends on rows with other keys: then the answer hangs on which partitions a call was given, and DuckDB cannot
be asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column

Key: TypeAlias = tuple[frozenset[str], ...] | None
Scans: TypeAlias = Mapping[str, str]


@dataclass
class Script:
    """The body of a stage function. ``names`` are the parameters that stand for the inputs."""

    names: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    made: int = 0

    def add(self, expression: str) -> str:
        """Give a frame a name of its own."""
        name = f"f{self.made}"
        self.made += 1
        self.lines.append(f"{name} = {expression}")
        return name

    def define(self, lines: Iterable[str]) -> None:
        self.lines += lines


@dataclass(frozen=True)
class Expression:
    """One value of a row: Python code that makes a Spark column, the same in DuckDB's SQL,
    and the columns it is made of.
    """

    spark: str
    sql: str
    kind: Kind
    uses: frozenset[str]


@dataclass(frozen=True)
class Operator(ABC):
    """A node of the tree; column names are unique within each."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Operator, ...]: ...

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]: ...

    @property
    @abstractmethod
    def key(self) -> Key: ...

    @property
    @abstractmethod
    def mixes(self) -> bool:
        """Whether this very operator lets rows of unlike keys meet."""

    @abstractmethod
    def spark(self, script: Script) -> str:
        """Add it to the script; the name of its frame."""

    @abstractmethod
    def sql(self, scans: Scans) -> str: ...

    @property
    def loose(self) -> bool:
        return self.mixes or any(one.loose for one in self.inputs)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return {column.name: column for column in self.columns}[name]

    def check(self) -> None:
        """:raises AssertionError: it uses a column that is not there, as it may after something was dropped."""
        assert len(set(self.names)) == len(self.names)
        for one in self.inputs:
            one.check()


def covers(by: Collection[str], key: Key) -> bool:
    """Whether rows that agree in ``by`` agree in the whole key."""
    return key is not None and all(names & set(by) for names in key)


def narrowed(key: Key, to: Collection[str]) -> Key:
    """What is left of the key when only some columns are."""
    if key is None or not covers(to, key):
        return None
    return tuple(names & set(to) for names in key)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


@dataclass(frozen=True)
class Given(Operator):
    """What the stage is given by an input; ``whole`` for a broadcast, of which every call sees all."""

    name: str
    given: tuple[Column, ...]
    exchanged: Key
    whole: bool = False

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given

    @property
    def key(self) -> Key:
        return self.exchanged

    @property
    def mixes(self) -> bool:
        return False

    def spark(self, script: Script) -> str:
        return script.names[self.name]

    def sql(self, scans: Scans) -> str:
        return scans[self.name]


@dataclass(frozen=True)
class Unary(Operator):
    child: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def key(self) -> Key:
        return self.child.key

    @property
    def mixes(self) -> bool:
        return False

    @property
    def uses(self) -> frozenset[str]:
        """Columns of its child that it names."""
        return frozenset()

    def check(self) -> None:
        super().check()
        assert self.uses <= set(self.child.names)


@dataclass(frozen=True)
class Filter(Unary):
    condition: Expression

    @property
    def uses(self) -> frozenset[str]:
        return self.condition.uses

    def spark(self, script: Script) -> str:
        return script.add(f"{self.child.spark(script)}.where({self.condition.spark})")

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) WHERE {self.condition.sql}"


@dataclass(frozen=True)
class Rename(Unary):
    """Keeps some columns, under the names that they get."""

    renamed: tuple[tuple[str, str], ...]

    @property
    def uses(self) -> frozenset[str]:
        return frozenset(old for old, _ in self.renamed)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(new, self.child.column(old).kind) for old, new in self.renamed)

    @property
    def key(self) -> Key:
        kept = narrowed(self.child.key, [old for old, _ in self.renamed])
        return kept and tuple(frozenset(new for old, new in self.renamed if old in names) for names in kept)

    def spark(self, script: Script) -> str:
        columns = (f'"{old}"' if old == new else f'F.col("{old}").alias("{new}")' for old, new in self.renamed)
        return script.add(f"{self.child.spark(script)}.select({', '.join(columns)})")

    def sql(self, scans: Scans) -> str:
        columns = ", ".join(f"{old} AS {new}" for old, new in self.renamed)
        return f"SELECT {columns} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Extend(Unary):
    """One more column, computed from its row; ``prelude`` are lines that the Spark code needs before it."""

    name: str
    value: Expression
    prelude: tuple[str, ...] = ()

    @property
    def uses(self) -> frozenset[str]:
        return self.value.uses

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, self.value.kind))

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        script.define(self.prelude)
        return script.add(f'{child}.withColumn("{self.name}", {self.value.spark})')

    def sql(self, scans: Scans) -> str:
        return f"SELECT *, {self.value.sql} AS {self.name} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Replace(Unary):
    """A column that holds something else from now on, so that it is the key no more."""

    name: str
    value: Expression

    @property
    def uses(self) -> frozenset[str]:
        return self.value.uses | {self.name}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(column.name, self.value.kind) if column.name == self.name else column
            for column in self.child.columns
        )

    @property
    def key(self) -> Key:
        return narrowed(self.child.key, [name for name in self.child.names if name != self.name])

    def spark(self, script: Script) -> str:
        return script.add(f'{self.child.spark(script)}.withColumn("{self.name}", {self.value.spark})')

    def sql(self, scans: Scans) -> str:
        columns = ", ".join(f"{self.value.sql} AS {name}" if name == self.name else name for name in self.names)
        return f"SELECT {columns} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Explode(Unary):
    """A row for each of some columns of one type, and one more."""

    name: str
    columns_exploded: tuple[str, ...]

    @property
    def uses(self) -> frozenset[str]:
        return frozenset(self.columns_exploded)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.name, self.child.column(self.columns_exploded[0]).kind))

    def spark(self, script: Script) -> str:
        array = f"F.array({quoted(self.columns_exploded)}, F.lit(None))"
        return script.add(f'{self.child.spark(script)}.withColumn("{self.name}", F.explode({array}))')

    def sql(self, scans: Scans) -> str:
        array = f"[{', '.join(self.columns_exploded)}, NULL]"
        return f"SELECT *, unnest({array}) AS {self.name} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Distinct(Unary):
    """Of some columns, which are all that is kept."""

    by: tuple[str, ...]

    @property
    def uses(self) -> frozenset[str]:
        return frozenset(self.by)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self.child.column(name) for name in self.by)

    @property
    def key(self) -> Key:
        return narrowed(self.child.key, self.by)

    @property
    def mixes(self) -> bool:
        return not covers(self.by, self.child.key)

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        if set(self.by) == set(self.child.names):
            return script.add(f"{child}.distinct().select({quoted(self.by)})")
        return script.add(f"{child}.dropDuplicates([{quoted(self.by)}]).select({quoted(self.by)})")

    def sql(self, scans: Scans) -> str:
        return f"SELECT DISTINCT {', '.join(self.by)} FROM ({self.child.sql(scans)})"


@dataclass(frozen=True)
class Limit(Unary):
    """The first rows in an order of all columns, so that it does not matter which of two equal ones is taken."""

    rows: int

    @property
    def mixes(self) -> bool:
        return self.child.key != ()

    def spark(self, script: Script) -> str:
        return script.add(f"{self.child.spark(script)}.orderBy({quoted(self.names)}).limit({self.rows})")

    def sql(self, scans: Scans) -> str:
        return f"SELECT * FROM ({self.child.sql(scans)}) ORDER BY {ascending(self.names)} LIMIT {self.rows}"


def ascending(names: Sequence[str]) -> str:
    """As Spark orders: nulls first."""
    return ", ".join(f"{name} ASC NULLS FIRST" for name in names)
