"""The type of a column whose values are names of folders: the one that Spark infers when it reads them all.

Spark infers it from the values that it is given; a split has only some of them, so it must not be asked split by split.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

INT, BIGINT, DOUBLE, DATE, TIMESTAMP, STRING = "int", "bigint", "double", "date", "timestamp", "string"
WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# What Java takes for a double: spaces around it, a letter behind it, and numbers to the base of 16 as well.
JAVA_DOUBLE = re.compile(
    r"[\x00- ]*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?"
    r"|0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?)[\x00- ]*",
    re.ASCII,
)
DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d)?", re.ASCII)
ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
MOST_DIGITS = 38  # of a decimal
DIGITS = {INT: 10, BIGINT: 20}  # of the decimal that holds them all


def common_type(values: Collection[str | None]) -> str:
    """The type of all ``values``, which are as folders write them; None fits every type, and alone it is text."""
    types = {type_of(value) for value in values if value is not None}
    if types <= {DATE, TIMESTAMP} and types:
        return TIMESTAMP if TIMESTAMP in types else DATE
    if not types or STRING in types or types & {DATE, TIMESTAMP}:
        return STRING
    decimals = [_digits(kind) for kind in types if kind.startswith("decimal")]
    if DOUBLE in types:
        return STRING if decimals or BIGINT in types else DOUBLE
    if decimals:
        return f"decimal({max([*decimals, *(DIGITS.get(kind, 0) for kind in types)])},0)"
    return BIGINT if BIGINT in types else INT


def unescaped(text: str) -> str:
    """Each escaped byte is one character, as Spark has it."""
    return ESCAPED.sub(lambda found: unquote(found[0], "latin-1"), text)


def type_of(value: str) -> str:
    """Of one value; only times may be escaped, since a colon must be on some systems."""
    if WHOLE.fullmatch(value):
        number = int(value)
        if -(2**31) <= number < 2**31:
            return INT
        if -(2**63) <= number < 2**63:
            return BIGINT
    if digits := _digits_of_whole_number(value):
        return f"decimal({digits},0)"
    if JAVA_DOUBLE.fullmatch(value):
        return DOUBLE
    if MOMENT.fullmatch(unescaped(value)) and _is_moment(unescaped(value)):
        return TIMESTAMP
    return DATE if DAY.fullmatch(value) and _is_moment(value) else STRING


def _digits_of_whole_number(value: str) -> int | None:
    """How many digits a decimal needs for it; None if it is not written as a whole number, or is too long for one."""
    if not NUMBER.fullmatch(value):
        return None
    with suppress(InvalidOperation):
        _, digits, exponent = Decimal(value).as_tuple()
        length = len(digits) + int(exponent)
        return length if int(exponent) >= 0 and length <= MOST_DIGITS else None
    return None


def _digits(kind: str) -> int:
    return int(kind.removeprefix("decimal(").removesuffix(",0)"))


def _is_moment(value: str) -> bool:
    with suppress(ValueError):
        return bool(datetime.fromisoformat(value.partition(".")[0]))
    return False
