"""Arguments of `spark.sql(text, args=...)`, written into its text.

Delta 4.4's parser drops what Spark 4.1 and later hand it for the markers of a text (delta-io/delta#7640), so that every
`args` ends in UNBOUND_SQL_PARAMETER. This goes when a Delta that we allow overrides `parsePlanWithParameters`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import count
from math import isfinite
from types import NoneType
from typing import Any

from stagehold.spark.calls.sql_text import Token, tokens


class NotConstant(TypeError):
    """A value that no text of SQL can stand for; never leaves this package."""


def with_arguments(text: str, arguments: Mapping[str, Any] | Sequence[Any]) -> str:
    """The text with a literal in the place of each marker that has an argument.

    :raises NotConstant: an argument is no plain Python value.
    """
    named: Mapping[Any, Any] = arguments if isinstance(arguments, Mapping) else dict(enumerate(arguments))
    found, end = list[str](), 0
    for key, start, stop in _markers(tokens(text)):
        if key in named:
            found += [text[end:start], literal(named[key])]
            end = stop
    return "".join((*found, text[end:]))


def _markers(words: Sequence[Token]) -> Iterator[tuple[str | int, int, int]]:
    """Each `?` by its place and each `:name` by its name; `a::int` and the path in `a:b` are none."""
    places = count()
    for before, token, after in zip((None, *words), words, (*words[1:], None), strict=False):
        if token.text == "?" and token.kind == "mark":
            yield next(places), token.start, token.end
        elif token.text == ":" and after and after.kind == "word" and after.start == token.end:
            joined = before is not None and before.end == token.start and before.text not in ("(", ",", "=", "<", ">")
            if not joined:
                yield after.text, token.start, after.end


def literal(value: Any) -> str:
    """A Python value as SQL has it, of the type that pyspark would give it.

    :raises NotConstant: SQL has no literal of its type.
    """
    if isinstance(value, list | tuple):
        return f"array({', '.join(map(literal, value))})"
    if isinstance(value, dict):
        return f"map({', '.join(literal(part) for pair in value.items() for part in pair)})"
    for kind, written in LITERALS.items():
        if isinstance(value, kind):
            return written(value)
    raise NotConstant(type(value).__name__)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _whole(number: int) -> str:
    return f"({number})" if -(2**31) <= number < 2**31 else f"({number}L)"


def _double(number: float) -> str:
    return f"({number!r}D)" if isfinite(number) else f"double('{number}')"


def _interval(span: timedelta) -> str:
    return f"make_dt_interval({span.days}, 0, 0, {span.seconds}.{span.microseconds:06d})"


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotConstant(str(value))
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 10)
    return f"CAST('{value:f}' AS DECIMAL({precision},{scale}))"


# Kinds that are also another come before that one: a switch is a number, and a moment a day.
LITERALS: Mapping[type, Callable[[Any], str]] = {
    NoneType: lambda _: "NULL",
    bool: lambda switch: str(switch).upper(),
    int: _whole,
    float: _double,
    str: _quoted,
    bytes: lambda octets: f"X'{octets.hex()}'",
    bytearray: lambda octets: f"X'{octets.hex()}'",
    Decimal: _decimal,
    datetime: lambda moment: f"TIMESTAMP '{moment.isoformat(sep=' ')}'",
    date: lambda day: f"DATE '{day.isoformat()}'",
    timedelta: _interval,
}
