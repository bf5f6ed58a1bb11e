"""Lengths of time and amounts of data as people write them: 500ms, 30s, 10min, 1h, 1d; 512kb, 128mb, 2gb, 1tb."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

AUTO = "auto"
TIMES = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "min": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
SIZES = {"tb": 1 << 40, "gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "b": 1}
KILOBYTE, MEGABYTE = SIZES["kb"], SIZES["mb"]
LARGEST = (1 << 63) - 1
DURATION_ALLOWED = "a whole number with a unit: 500ms, 30s, 10min, 1h, 1d"
SIZE_ALLOWED = "a whole number with a unit, more than 0: 512kb, 128mb, 2gb, 1tb"
MOST_DIGITS = 19  # what holds the largest size in bytes


def read_duration(given: object) -> timedelta:
    """:raises PydanticCustomError: when ``given`` is neither a text of that shape nor a length of time already"""
    if isinstance(given, timedelta) and given >= timedelta(0):
        return given
    amount = _amount(given, TIMES)
    if amount is None:
        raise PydanticCustomError("duration", DURATION_ALLOWED)
    number, unit = amount
    try:
        return number * TIMES[unit]
    except OverflowError:
        raise PydanticCustomError("duration", "at most 999999999d") from None


def write_duration(duration: timedelta) -> str:
    """The shortest text that reads back as ``duration``, to the millisecond."""
    unit = next(
        (unit for unit, length in TIMES.items() if duration and not duration % length), "ms" if duration else "s"
    )
    return f"{duration // TIMES[unit]}{unit}"


def more_than_nothing(duration: timedelta) -> timedelta:
    if duration <= timedelta(0):
        raise PydanticCustomError("duration", "more than 0s")
    return duration


def read_duration_or_auto(given: object) -> timedelta | str:
    if given == AUTO:
        return AUTO
    try:
        return more_than_nothing(read_duration(given))
    except PydanticCustomError as error:
        raise PydanticCustomError("duration", f"{error.message_template}; or {AUTO}") from None


def write_duration_or_auto(duration: timedelta | str) -> str:
    return duration if isinstance(duration, str) else write_duration(duration)


def read_size(given: object) -> int:
    """Bytes; a unit is 1024 of the next smaller one, in either case.

    A number is one of bytes from a kilobyte on: a smaller one lacks its unit.

    :raises PydanticCustomError: when ``given`` is neither such a number nor a text of that shape
    """
    if type(given) is int and given >= KILOBYTE:
        number, unit = given, "b"
    else:
        number, unit = _amount(given.lower() if isinstance(given, str) else given, SIZES) or (0, "b")
    if number == 0:
        raise PydanticCustomError("size", SIZE_ALLOWED)
    if number * SIZES[unit] > LARGEST:
        raise PydanticCustomError("size", f"at most {LARGEST // SIZES['tb']}tb")
    return number * SIZES[unit]


def write_size(size: int) -> str:
    """The shortest text that reads back as ``size``."""
    unit = next(unit for unit, length in SIZES.items() if size % length == 0)
    return f"{size // SIZES[unit]}{unit}"


def _amount(given: object, units: Mapping[str, object]) -> tuple[int, str] | None:
    """A whole number and one of ``units``, blanks allowed around both; None for anything else."""
    shape = rf"\s*([0-9]{{1,{MOST_DIGITS}}})\s*({'|'.join(units)})\s*"
    match = re.fullmatch(shape, given) if isinstance(given, str) else None
    return (int(match[1]), match[2]) if match else None


def _written(units: Mapping[str, object], *others: str) -> Any:
    """The type of such a text for editors, which know it by its form."""
    letters = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in unit) for unit in units)
    form = rf"^\s*[0-9]{{1,{MOST_DIGITS}}}\s*({letters if units is SIZES else '|'.join(units)})\s*$"
    return Annotated[str, Field(pattern="|".join((form, *(f"^{word}$" for word in others))))]


Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration, json_schema_input_type=_written(TIMES)),
    PlainSerializer(write_duration, when_used="json"),
]
PositiveDuration = Annotated[Duration, AfterValidator(more_than_nothing)]
DurationOrAuto = Annotated[
    timedelta | Literal["auto"],
    PlainValidator(read_duration_or_auto, json_schema_input_type=_written(TIMES, AUTO)),
    PlainSerializer(write_duration_or_auto, when_used="json"),
]
Size = Annotated[
    int,
    BeforeValidator(read_size, json_schema_input_type=_written(SIZES) | Annotated[int, Field(ge=KILOBYTE)]),
    PlainSerializer(write_size, when_used="json"),
]
