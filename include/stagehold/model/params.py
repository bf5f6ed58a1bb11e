"""Values that a run is given for its pipeline's parameters: their types are those of the defaults in its file."""

from __future__ import annotations

from typing import Any

KINDS = {  # a switch before a number: to Python, it is one
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list, as JSON",
    dict: "an object, as JSON",
}


def allowed_instead(value: Any, default: Any) -> str | None:
    """What ``value`` would have to be, None if it is all right. A default of null, or of no such type, allows everything."""
    kind = type(default)
    if kind not in KINDS or type(value) is kind or (kind is float and type(value) is int):
        return None
    return f"{KINDS[kind]}, as the default {default!r} is"
