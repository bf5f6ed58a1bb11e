"""How a source is dealt into splits: its files, or the rows of a database table by the range of one column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

from stagehold.model.source_position import SourceFile


def deal(files: Sequence[SourceFile], count: int) -> tuple[tuple[SourceFile, ...], ...]:
    """``count`` groups of neighbours, in the given order, of nearly equal bytes: none is larger than an equal share and
    a file.

    A file goes where its middle falls, so equal files are dealt by number, and with fewer files than groups some stay
    empty.
    """
    groups: list[list[SourceFile]] = [[] for _ in range(count)]
    total, before = sum(map(_weight, files)), 0
    for file in files:
        groups[(2 * before + _weight(file)) * count // (2 * total)].append(file)
        before += _weight(file)
    return tuple(map(tuple, groups))


def _weight(file: SourceFile) -> int:
    return max(file.bytes, 1)  # empty files are dealt, too


Bound = int | date | datetime


def range_conditions(column: str, lower: Bound, upper: Bound, count: int) -> tuple[str, ...]:
    """The SQL condition of each split. Every row meets exactly one of them.

    The bounds only say how wide a split is: the first takes all below as well, and what is NULL, the last all above.
    With more splits than values between the bounds, some take nothing.
    """
    if count == 1:
        return ("1 = 1",)
    cuts = [_literal(_between(lower, upper, number, count)) for number in range(1, count)]
    first, last = f"{column} < {cuts[0]} or {column} is null", f"{column} >= {cuts[-1]}"
    return (first, *(f"{column} >= {low} and {column} < {high}" for low, high in pairwise(cuts)), last)


def _between(lower: Bound, upper: Bound, number: int, count: int) -> Bound:
    if isinstance(lower, int) and isinstance(upper, int):
        return lower + (upper - lower) * number // count
    if isinstance(lower, datetime) and isinstance(upper, datetime):
        return lower + timedelta(seconds=(upper - lower).total_seconds() * number // count)
    assert isinstance(lower, date), "the loader lets both bounds be of one type only"
    assert isinstance(upper, date), "the loader lets both bounds be of one type only"
    return lower + timedelta(days=(upper - lower).days * number // count)


def _literal(bound: Bound) -> str:
    return str(bound) if isinstance(bound, int) else f"'{bound}'"
