"""Rows of a test against those that a stage made, in any order, as a text that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
DIGITS = 12  # of a float that count: sums of the same numbers in another order differ behind them
SHOWN = 10  # rows of each kind


@dataclass(frozen=True)
class RowDifferences:
    """Rows that are ``missing`` and others that are ``unexpected``. Those that differ least stand at the same place."""

    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    alike: int

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)

    def text(self, missing: str = "missing", unexpected: str = "unexpected") -> str:
        """The rows, each with the values that are others in the row it was paired with."""
        head = f"{len(self.missing)} rows {missing}, {len(self.unexpected)} {unexpected}, {self.alike} alike"
        pairs = min(len(self.missing), len(self.unexpected))
        lines = []
        for place, row in enumerate(self.missing[:SHOWN]):
            other = self.unexpected[place] if place < pairs else {}
            lines += [
                f"  {sign} {_shown(*both)}" for sign, both in (("-", (row, other)), ("+", (other, row))) if both[0]
            ]
        lines += [f"  + {_shown(row, {})}" for row in self.unexpected[pairs:][:SHOWN]]
        left = max(len(self.missing) - SHOWN, 0) + max(len(self.unexpected) - pairs - SHOWN, 0)
        return "\n".join((head, *lines, *([f"  and {left} more"] if left else [])))


def row_differences(expected: Sequence[Row], found: Sequence[Row]) -> RowDifferences:
    """What it takes to make ``found`` what was expected; how often a row is there counts."""
    wanted, there = Counter(map(frozen, expected)), Counter(map(frozen, found))
    missing, unexpected = _rows_of(expected, wanted - there), _rows_of(found, there - wanted)
    return RowDifferences(*_paired(missing, unexpected), alike=(wanted & there).total())


def frozen(value: Any) -> Hashable:
    """A value that can be counted; equal ones are equal rows."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), frozen(part)) for name, part in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return (isinstance(value, bool), value)  # for Python, True is 1


def _rows_of(rows: Sequence[Row], counted: Counter[Hashable]) -> list[Row]:
    left, found = Counter(counted), list[Row]()
    for row in rows:
        if left[frozen(row)] > 0:
            left[frozen(row)] -= 1
            found.append(row)
    return found


def _paired(missing: list[Row], unexpected: list[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Each missing row beside the unexpected one that has most values in common with it."""
    rest, partners, alone = list(unexpected), list[tuple[Row, Row]](), list[Row]()
    for row in missing:
        best = max(range(len(rest)), key=lambda place: _common(row, rest[place]), default=None)
        if best is None or not _common(row, rest[best]):
            alone.append(row)
        else:
            partners.append((row, rest.pop(best)))
    return (*(row for row, _ in partners), *alone), (*(other for _, other in partners), *rest)


def _common(row: Row, other: Row) -> int:
    return sum(name in other and frozen(value) == frozen(other[name]) for name, value in row.items())


def _shown(row: Row, other: Row) -> str:
    """A row with a mark at each value that is another one in the other, if they have any in common."""
    marks = {name for name in row if frozen(row[name]) != frozen(other.get(name))} if _common(row, other) else set()
    return "  ".join(f"{'>' if name in marks else ''}{name}={value!s}" for name, value in row.items())
