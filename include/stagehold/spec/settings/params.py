"""Values that a run is given for its pipeline's parameters: their types are those of the defaults in its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stagehold.errors import InvalidParameter

KINDS = {  # a switch before a number: to Python, it is one
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list, as JSON",
    dict: "an object, as JSON",
}


def checked_params(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults with the given values put over them.

    :raises InvalidParameter: for a name that the pipeline does not declare, or a value of another type
    """
    for name, value in given.items():
        allowed = _allowed_instead(name, value, defaults)
        if allowed is not None:
            raise InvalidParameter(name, value if isinstance(value, str) else json.dumps(value), allowed)
    return {**defaults, **given}


def _allowed_instead(name: str, value: Any, defaults: Mapping[str, Any]) -> str | None:
    """None if the value is all right. A default of null, or of a type that JSON lacks, allows everything."""
    if name not in defaults:
        return f"a parameter of the pipeline: {', '.join(defaults) or 'it has none'}"
    kind = type(defaults[name])
    if kind not in KINDS or type(value) is kind or (kind is float and type(value) is int):
        return None
    return f"{KINDS[kind]}, as the default {defaults[name]!r} is"
