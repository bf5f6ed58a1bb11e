"""Conditions that cut the rows of a database table into splits by the range of one column."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

Bound = int | date | datetime


def range_conditions(column: str, lower: Bound, upper: Bound, count: int) -> tuple[str, ...]:
    """One SQL condition per split; every row meets exactly one of them.

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
