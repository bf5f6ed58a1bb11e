"""The condition of a source's `where`: comparisons of columns with values, joined by AND.

It is read once and used twice, to leave out files that cannot have such rows and to leave out rows of the others. So
its values have the types of their columns here, and what Spark is given is written from them: both mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from stagehold.code.sql_text import Token, literal, markers, tokens

ALLOWED = (
    "comparisons joined by AND, as in day >= :interval_start AND day < :interval_end AND country IN ('de', 'fr'): "
    "a column, one of = <> < <= > >= IN, BETWEEN, and a number, a text, DATE '...', TIMESTAMP '...', "
    ":interval_start or :interval_end"
)
START, END = "interval_start", "interval_end"
WHOLE, EXACT, DAY, MOMENT, LOCAL, TEXT, SWITCH = "whole", "exact", "day", "moment", "local", "text", "switch"
KINDS = {
    **dict.fromkeys(("byte", "tinyint", "short", "smallint", "integer", "int", "long", "bigint"), WHOLE),
    **{"date": DAY, "timestamp": MOMENT, "timestamp_ntz": LOCAL, "string": TEXT, "boolean": SWITCH},
}
LONGER = 2**63  # than a bigint
DECIMAL = re.compile(r"decimal\(\d+,\s*(?P<scale>\d+)\)")

Value = Any  # a Python value of the column's type


class SliceUnfit(ValueError):
    """A condition that cannot be read, or does not fit its columns; the text says where and what is allowed."""


@dataclass(frozen=True)
class WrittenValue:
    """A value as it is written: a ``kind`` word (DATE, TIMESTAMP) or none, and the text."""

    text: str
    kind: str = ""
    quoted: bool = False

    def __str__(self) -> str:
        return f"{self.kind} '{self.text}'".strip() if self.quoted else self.text


# A column, how it is compared, and the values that it is compared with.
ColumnComparison = tuple[str, str, tuple[Value, ...]]
HOLDS_BETWEEN: Mapping[str, Callable[[Value, Value, Sequence[Value]], bool]] = {
    "=": lambda least, most, values: least <= values[0] <= most,
    "<>": lambda least, most, values: not least == most == values[0],
    "<": lambda least, most, values: least < values[0],  # noqa: ARG005
    "<=": lambda least, most, values: least <= values[0],  # noqa: ARG005
    ">": lambda least, most, values: most > values[0],  # noqa: ARG005
    ">=": lambda least, most, values: most >= values[0],  # noqa: ARG005
    "IN": lambda least, most, values: any(least <= value <= most for value in values),
}


@dataclass(frozen=True)
class Slice:
    """Rows for which all comparisons hold. A row without a value in one of the columns is in no slice."""

    comparisons: tuple[ColumnComparison, ...]
    condition: str

    def may_have(self, span: Callable[[str], tuple[Value, Value] | None]) -> bool:
        """Whether rows may be in it, of which ``span`` tells a column's least and greatest value, as far as it is
        known.
        """
        between = ((span(column), operator, values) for column, operator, values in self.comparisons)
        return all(known is None or HOLDS_BETWEEN[operator](*known, values) for known, operator, values in between)


def check_slice(text: str) -> None:
    """:raises SliceUnfit: it is no such condition, whatever the columns are"""
    list(_Reader(text).comparisons())


def read_slice(text: str, types: Mapping[str, str]) -> Slice:
    """The condition for columns of these types, as Spark or Delta spell them.

    :raises SliceUnfit: a column is not there, or a value is not of its type
    """
    named = {name.lower(): name for name in types}
    found: list[ColumnComparison] = []
    for column, operator, written in _Reader(text).comparisons():
        if column.lower() not in named:
            raise SliceUnfit(f"there is no column {column}; there are {', '.join(types)}")
        name = named[column.lower()]
        values = tuple(_of_type(name, types[name].lower(), value) for value in written)
        found.append((name, operator, values))
    kinds = {name: _kind(types[name].lower()) for name in types}
    return Slice(tuple(found), " AND ".join(_spark(each, kinds[each[0]]) for each in found))


def with_interval(text: str, edge: Callable[[str], datetime], zone: str = "") -> str:
    """A text of SQL in which `:interval_start` and `:interval_end` are moments."""
    for names, start, ends in reversed(tuple(markers(tokens(text)))):
        if names[-1] in (START, END):
            moment = edge(str(names[-1]).removeprefix("interval_"))
            written = f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}{zone}'"
            text = f"{text[:start]}{written}{text[ends[-1] :]}"
    return text


def names_interval_edges(text: str) -> bool:
    return any(names[-1] in (START, END) for names, _, _ in markers(tokens(text)))


class _Reader:
    """The words of a condition, from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.words, self.at = text, tokens(text), 0

    def comparisons(self) -> Iterator[tuple[str, str, tuple[WrittenValue, ...]]]:
        while True:
            yield from self._comparison()
            if self._peek is None:
                return
            self._take("AND")

    def _comparison(self) -> Iterator[tuple[str, str, tuple[WrittenValue, ...]]]:
        word = self._next("a column")
        if word.name is None:
            raise self._unfit(word, "a column")
        column = word.text.replace("``", "`")
        operator = self._operator()
        if operator == "BETWEEN":
            least = self._value()
            self._take("AND")
            yield column, ">=", (least,)
            yield column, "<=", (self._value(),)
        elif operator == "IN":
            yield column, operator, self._list()
        else:
            yield column, operator, (self._value(),)

    def _operator(self) -> str:
        word = self._next("a comparison")
        if word.upper in ("IN", "BETWEEN"):
            return word.upper
        after = self._peek
        both = word.text + (after.text if after is not None and after.start == word.end else "")
        if both in ("<=", ">=", "<>", "!="):
            self.at += 1
            return "<>" if both == "!=" else both
        if word.text in ("=", "<", ">"):
            return word.text
        raise self._unfit(word, "a comparison")

    def _list(self) -> tuple[WrittenValue, ...]:
        self._take("(")
        values = [self._value()]
        while self._peek is not None and self._peek.text == ",":
            self.at += 1
            values.append(self._value())
        self._take(")")
        return tuple(values)

    def _value(self) -> WrittenValue:
        word = self._next("a value")
        if word.kind == "text":
            return WrittenValue(self._unquoted(word), quoted=True)
        if word.upper in ("DATE", "TIMESTAMP"):
            text = self._next("a text")
            if text.kind != "text":
                raise self._unfit(text, "a text")
            return WrittenValue(self._unquoted(text), word.upper, quoted=True)
        if word.upper in ("TRUE", "FALSE"):
            return WrittenValue(word.upper)
        return WrittenValue(self._number(word))

    def _number(self, word: Token) -> str:
        start = end = word
        if word.text in ("-", "+"):
            end = self._next("a number")
        while self._peek is not None and self._peek.start == end.end and self._peek.kind in ("word", "mark"):
            if self._peek.text in (",", ")"):
                break
            end = self._next("a number")
        number = self.text[start.start : end.end]
        if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", number):
            raise self._unfit(word, "a value")
        return number

    def _unquoted(self, word: Token) -> str:
        if "\\" in word.text or word.text[0] in "rR":
            raise self._unfit(word, "a text without a backslash")
        return word.text[1:-1].replace(word.text[0] * 2, word.text[0])

    @property
    def _peek(self) -> Token | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def _next(self, wanted: str) -> Token:
        word = self._peek
        if word is None:
            raise SliceUnfit(f"it ends where {wanted} is expected; allowed: {ALLOWED}")
        self.at += 1
        return word

    def _take(self, mark: str) -> None:
        word = self._next(mark)
        if mark not in (word.upper, word.text):
            raise self._unfit(word, mark)

    def _unfit(self, word: Token, wanted: str) -> SliceUnfit:
        return SliceUnfit(f"{wanted} is expected where {self.text[word.start :]!r} stands; allowed: {ALLOWED}")


def value_of(type_of_column: str, text: str) -> Value | None:
    """A value as the name of a folder has it; None for one that is not known to be of the type."""
    kind = _kind(type_of_column)
    return READ[kind](WrittenValue(text, quoted=kind not in (WHOLE, EXACT, SWITCH))) if kind else None


def _kind(type_of_column: str) -> str | None:
    return EXACT if DECIMAL.fullmatch(type_of_column) else KINDS.get(type_of_column)


def _of_type(column: str, type_of_column: str, written: WrittenValue) -> Value:
    kind = _kind(type_of_column)
    if kind is None:
        raise SliceUnfit(f"{column} is of type {type_of_column}, which `where` does not compare")
    value = READ[kind](written)
    if value is None:
        hint = DAY_HINT if kind in (DAY, TEXT) and written.kind == "TIMESTAMP" else ""
        raise SliceUnfit(f"{column} is of type {type_of_column}, and {written} is no such value{hint}")
    return value


DAY_HINT = "; write '${interval.start:%Y-%m-%d}' for the day of the interval"


def _whole(written: WrittenValue) -> int | None:
    plain = not written.quoted and re.fullmatch(r"[+-]?\d+", written.text)
    return int(written.text) if plain and abs(int(written.text)) < LONGER else None


def _exact(written: WrittenValue) -> Decimal | None:
    try:
        return None if written.quoted else Decimal(written.text)
    except InvalidOperation:
        return None


def _moment(written: WrittenValue) -> datetime | None:
    """A text without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(written.text) if written.quoted else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC) if found else None


def _local(written: WrittenValue) -> datetime | None:
    found = _moment(written)
    return found.replace(tzinfo=None) if found else None


def _day(written: WrittenValue) -> date | None:
    """A moment is a day if it is its midnight."""
    found = _moment(written)
    return found.date() if found and found.time() == time() else None


READ: Mapping[str, Callable[[WrittenValue], Value | None]] = {
    WHOLE: _whole,
    EXACT: _exact,
    DAY: _day,
    MOMENT: _moment,
    LOCAL: _local,
    TEXT: lambda written: written.text if written.quoted and not written.kind else None,
    SWITCH: lambda written: {"TRUE": True, "FALSE": False}.get(written.text) if not written.quoted else None,
}


def _spark(comparison: ColumnComparison, kind: str | None) -> str:
    column, operator, compared = comparison
    name = f"`{column.replace('`', '``')}`"
    values = [f"TIMESTAMP_NTZ '{value}'" if kind == LOCAL else literal(value) for value in compared]
    return f"{name} IN ({', '.join(values)})" if operator == "IN" else f"{name} {operator} {values[0]}"
