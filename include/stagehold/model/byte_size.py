"""Amounts of data as people write them: 64kb, 128mb, 2gb; a kb is 1024 bytes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

UNITS = {"tb": 1 << 40, "gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10}
ALLOWED = "a whole number with a unit, 1kb or more: 512kb, 128mb, 2gb, 1tb"
MOST_DIGITS = 6
SHAPE = re.compile(rf"([0-9]{{1,{MOST_DIGITS}}})\s*(" + "|".join(UNITS) + ")")


def read_byte_size(given: object) -> int:
    """:raises PydanticCustomError: when ``given`` is neither a text of that shape nor a number of bytes already"""
    if isinstance(given, int) and not isinstance(given, bool) and given >= UNITS["kb"]:
        return given
    match = SHAPE.fullmatch(given.strip().lower()) if isinstance(given, str) else None
    if match is None or not int(match[1]):
        raise PydanticCustomError("byte_size", ALLOWED)
    return int(match[1]) * UNITS[match[2]]


def write_byte_size(size: int) -> str | int:
    """The shortest text that reads back as ``size``; the number itself where there is none."""
    unit = next((unit for unit, length in UNITS.items() if not size % length and size // length < 10**MOST_DIGITS), None)
    return f"{size // UNITS[unit]}{unit}" if unit else size


ByteSize = Annotated[int, BeforeValidator(read_byte_size), PlainSerializer(write_byte_size, when_used="json")]
MEGABYTE = UNITS["mb"]
