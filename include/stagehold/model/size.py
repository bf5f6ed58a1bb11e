"""Amounts of data as people write them: 512kb, 128mb, 1gb."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainSerializer
from pydantic_core import PydanticCustomError

UNITS = {"tb": 1 << 40, "gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "b": 1}
ALLOWED = "a whole number with a unit, more than 0: 512kb, 128mb, 1gb"
SHAPE = re.compile(r"([0-9]{1,15})\s*(" + "|".join(UNITS) + ")")


def read_size(given: object) -> int:
    """Bytes; a unit is 1024 of the next smaller one.

    :raises PydanticCustomError: when ``given`` is no text of that shape
    """
    match = SHAPE.fullmatch(given.strip().lower()) if isinstance(given, str) else None
    if match is None or int(match[1]) == 0:
        raise PydanticCustomError("size", ALLOWED)
    return int(match[1]) * UNITS[match[2]]


def write_size(size: int) -> str:
    """The shortest text that reads back as ``size``."""
    unit = next(unit for unit, length in UNITS.items() if size % length == 0)
    return f"{size // UNITS[unit]}{unit}"


Size = Annotated[int, PlainSerializer(write_size, when_used="json")]
