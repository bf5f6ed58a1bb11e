"""Random conditions and values of one row that both engines understand alike."""

from __future__ import annotations

from random import Random

from fuzz.metamorphic.algebra import Expression
from fuzz.metamorphic.kinds import Kind
from fuzz.metamorphic.source_data import Column

COMPARED_WITH = {
    Kind.INT: ("0", "2", "5"),
    Kind.BIG: ("0", "3", "9007199254740992"),
    Kind.DEC1: ("0", "1.5", "5"),
    Kind.DEC2: ("0", "0.25", "5"),
    Kind.WIDE: ("0", "10"),
    Kind.DOUBLE: ("0", "2"),
    Kind.STRING: ("'a'", "''", "'zz'"),
    Kind.DATE: ("DATE '2020-01-02'",),
    Kind.TIMESTAMP: ("TIMESTAMP '2020-01-01 01:00:00'",),
}


def condition(random: Random, column: Column) -> Expression:
    """A condition on one column that keeps most rows now and few then."""
    name = column.name
    texts = [f"{name} IS NOT NULL", f"{name} IS NULL OR {name} = {name}"]
    if column.kind is Kind.BOOLEAN:
        texts += [name, f"NOT {name}", f"coalesce({name}, true)"]
    else:
        literal = random.choice(COMPARED_WITH[column.kind])
        sign = random.choice(("<=", ">=", "<>", ">"))
        texts += 3 * [f"{name} {sign} {literal}", f"{name} {sign} {literal} OR {name} IS NULL"]
    return _alike(random.choice(texts), Kind.BOOLEAN, name)


def value(random: Random, column: Column) -> Expression:
    """Something computed from one column."""
    name = column.name
    texts = [(f"{name} IS NULL", Kind.BOOLEAN), (f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END", Kind.INT)]
    if column.kind is Kind.INT:
        texts += [(f"{name} % 3", Kind.INT), (f"CAST({name} AS bigint) * 2 + 1", Kind.BIG)]
    if column.kind is Kind.STRING:
        texts += [(f"length({name})", Kind.INT), (f"concat({name}, '!')", Kind.STRING)]
    if column.kind is Kind.TIMESTAMP:
        texts.append((f"CAST(hour({name}) AS int)", Kind.INT))
    if column.kind in (Kind.DEC1, Kind.DEC2):
        texts.append((f"CAST({name} AS {column.kind}) > 1", Kind.BOOLEAN))
    text, kind = random.choice(texts)
    if text.startswith("concat"):  # DuckDB's leaves nulls out
        return Expression(_expr(text), f"{name} || '!'", kind, frozenset({name}))
    return _alike(text, kind, name)


def shifted(column: Column) -> Expression:
    """Another value of the same type, for a key that is no key any more."""
    texts = {
        Kind.STRING: f"substring({column.name}, 2, 1)",
        Kind.DATE: f"CAST({column.name} + INTERVAL 1 DAY AS date)",
        Kind.TIMESTAMP: f"{column.name} + INTERVAL 1 DAY",
        Kind.BOOLEAN: f"NOT {column.name}",
    }
    text = texts.get(column.kind, f"CAST({column.name} + 1 AS {column.kind})")
    return _alike(text, column.kind, column.name)


def python_function(random: Random, column: Column, name: str) -> tuple[Expression, tuple[str, ...]]:
    """A scalar function in Python over whole numbers, in one of Spark's two forms, and the lines that define it."""
    doubled = Expression("", f"CAST({column.name} AS bigint) * 2 + 1", Kind.BIG, frozenset({column.name}))
    if random.random() < 0.5:
        body = "lambda number: None if number is None else 2 * number + 1"
        lines = (f"double_{name} = F.udf({body}, LongType())",)
    else:
        lines = (
            "@F.pandas_udf(LongType())",
            f"def double_{name}(numbers: pd.Series) -> pd.Series:",
            "    return 2 * numbers + 1",
        )
    return Expression(f'double_{name}(F.col("{column.name}"))', doubled.sql, Kind.BIG, doubled.uses), lines


def _alike(text: str, kind: Kind, name: str) -> Expression:
    return Expression(_expr(text), text, kind, frozenset({name}))


def _expr(text: str) -> str:
    return f'F.expr("{text}")'
