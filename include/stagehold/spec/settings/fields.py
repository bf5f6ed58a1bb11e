"""What the fields of a pipeline file are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from inspect import get_annotations
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainValidator
from pydantic_core import PydanticCustomError

from stagehold.model.keys.compute_key import KeyPart
from stagehold.model.units import AUTO

PLAIN_TYPES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date", "timestamp", "timestamp_ntz"),
)
DECIMAL = re.compile(r"decimal\(([1-9]|[12]\d|3[0-8]),(\d|[12]\d|3[0-8])\)")
COLUMN_TYPES = f"one of {', '.join(PLAIN_TYPES)}, decimal(18,2)"


class SpecPart(BaseModel):
    """Base of every part of a spec: immutable, and no field is silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def field_names(part: type[SpecPart]) -> tuple[str, ...]:
    """The fields of a part in the order in which people read them: its own before those that it shares."""
    own = get_annotations(part)
    return tuple(sorted(part.model_fields, key=lambda name: name not in own))


def written_name(part: type[SpecPart], field: str) -> str:
    """What a field of ``part`` is called in a file."""
    return part.model_fields[field].alias or field


def _count_or_auto(given: object) -> int | str:
    if given == AUTO or (type(given) is int and given >= 1):
        return given
    raise PydanticCustomError("partitions", "a whole number, 1 or more, or auto")


def _option_texts(given: Any) -> Any:
    """Options as Spark takes them; ``true`` and ``3`` are texts there."""
    if not isinstance(given, Mapping):
        return given
    return {
        name: str(value).lower() if isinstance(value, bool | int | float) else value for name, value in given.items()
    }


def _variables(given: Any) -> Any:
    """Names of variables, with their defaults."""
    names = [given] if isinstance(given, str) else given
    return dict.fromkeys(names) if isinstance(names, list | tuple) else _option_texts(names)


def _column_type(given: object) -> str:
    """A type as Spark spells it, without spaces."""
    if plain := plain_type(given):
        return plain
    raise PydanticCustomError("column_type", COLUMN_TYPES)


def plain_type(given: object) -> str | None:
    """A type that is not made of others as Spark spells it; None for anything else."""
    text = str(given).replace(" ", "").lower() if isinstance(given, str) else ""
    return text if text in PLAIN_TYPES or DECIMAL.fullmatch(text) else None


Count = Annotated[int, Field(strict=True, ge=1)]
CountOrAuto = Annotated[
    int | Literal["auto"], PlainValidator(_count_or_auto, json_schema_input_type=Count | Literal["auto"])
]
Switch = Annotated[bool, Field(strict=True)]
ColumnType = Annotated[str, PlainValidator(_column_type, json_schema_input_type=str)]
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(
        lambda given: (given,) if isinstance(given, str) else given, json_schema_input_type=str | tuple[str, ...]
    ),
]
Columns = Names
KeyParts = Annotated[
    tuple[KeyPart, ...],
    BeforeValidator(
        lambda given: (given,) if isinstance(given, str) else given,
        json_schema_input_type=KeyPart | tuple[KeyPart, ...],
    ),
]
Params = Annotated[
    Mapping[str, JsonValue],
    BeforeValidator(
        lambda given: {} if given is None else given, json_schema_input_type=Mapping[str, JsonValue] | None
    ),
]
Environment = Annotated[
    Mapping[str, str | None],
    BeforeValidator(_variables, json_schema_input_type=str | tuple[str, ...] | Mapping[str, str | bool | float | None]),
]
Options = Annotated[
    Mapping[str, str], BeforeValidator(_option_texts, json_schema_input_type=Mapping[str, str | bool | float])
]

BOUND_ALLOWED = "a whole number, a date or a time without a zone"


def read_bound(given: Any) -> int | date | datetime:
    """A bound of a range; a text has to be a date or a time in ISO form."""
    if isinstance(given, str):
        try:
            given = date.fromisoformat(given) if len(given) <= len("2024-01-01") else datetime.fromisoformat(given)
        except ValueError:
            raise PydanticCustomError("bound", BOUND_ALLOWED) from None
    if isinstance(given, bool) or not isinstance(given, int | date) or getattr(given, "tzinfo", None) is not None:
        raise PydanticCustomError("bound", BOUND_ALLOWED)
    return given


Bound = Annotated[int | datetime | date, BeforeValidator(read_bound, json_schema_input_type=int | str)]
IntervalText = Annotated[
    str,  # YAML makes a date of what looks like one
    BeforeValidator(lambda given: given.isoformat() if isinstance(given, date) else given, json_schema_input_type=str),
]
