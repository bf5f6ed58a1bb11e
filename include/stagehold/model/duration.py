"""Lengths of time as people write them: 500ms, 30s, 10min, 1h, 1d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "min": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
AUTO = "auto"
ALLOWED = "a whole number with a unit: 500ms, 30s, 10min, 1h, 1d"
SHAPE = re.compile(r"([0-9]{1,15})\s*(" + "|".join(UNITS) + ")")


def read_duration(given: object) -> timedelta:
    """:raises PydanticCustomError: when ``given`` is neither a text of that shape nor a length of time already"""
    if isinstance(given, timedelta):
        return given
    match = SHAPE.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None:
        raise PydanticCustomError("duration", ALLOWED)
    try:
        return int(match[1]) * UNITS[match[2]]
    except OverflowError:
        raise PydanticCustomError("duration", "at most 999999999d") from None


def write_duration(duration: timedelta) -> str:
    """The shortest text that reads back as ``duration``, to the millisecond."""
    unit = next((unit for unit, length in UNITS.items() if duration and not duration % length), "ms" if duration else "s")
    return f"{duration // UNITS[unit]}{unit}"


def read_duration_or_auto(given: object) -> timedelta | str:
    if given == AUTO:
        return AUTO
    try:
        return more_than_nothing(read_duration(given))
    except PydanticCustomError as error:
        raise PydanticCustomError("duration", f"{error.message_template}; or {AUTO}") from None


def write_duration_or_auto(duration: timedelta | str) -> str:
    return duration if isinstance(duration, str) else write_duration(duration)


def more_than_nothing(duration: timedelta) -> timedelta:
    if duration <= timedelta(0):
        raise PydanticCustomError("duration", "more than 0s")
    return duration


Duration = Annotated[timedelta, BeforeValidator(read_duration), PlainSerializer(write_duration, when_used="json")]
DurationOrAuto = Annotated[
    timedelta | Literal["auto"], PlainValidator(read_duration_or_auto), PlainSerializer(write_duration_or_auto, when_used="json")
]
