"""The columns that an author declares of a stage's output, and how their types are spelled."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from stagehold.spec.settings.fields import COLUMN_TYPES, SpecPart, Switch, plain_type

OUTPUT_TYPES = f"{COLUMN_TYPES}, or of such types array<string>, map<string,int>, struct<a:int,b:string>"
NESTED = re.compile(r"(?P<kind>array|map|struct)<(?P<inner>.+)>", re.IGNORECASE)
INNER_TYPES = {"array": 1, "map": 2}
FORBIDDEN_CHARACTERS = " ,;{}()\n\t="  # Parquet and Delta without column mapping refuse them
NO_NAME = f"space and any of {FORBIDDEN_CHARACTERS.strip()!r} cannot be in a name"


def is_fit_name(name: str) -> bool:
    """Whether a table can have a column of that name."""
    return not set(name) & set(FORBIDDEN_CHARACTERS)


def fit_name(text: str) -> str:
    """A name that a table can have, for a column that has the name, or is computed by the expression, ``text``."""
    return "_".join(re.findall(r"\w+", text)).lower()[:40].strip("_") or "value"


def _output_type(given: object) -> str:
    """A type as Spark spells it, without spaces."""
    if isinstance(given, str) and (spelled := _spelled(given.replace(" ", ""))):
        return spelled
    raise PydanticCustomError("output_type", OUTPUT_TYPES)


def _spelled(text: str) -> str | None:
    """A plain type, or an array, a map or a struct of types; None for what is none. Case counts in names of fields."""
    found = NESTED.fullmatch(text)
    if found is None:
        return plain_type(text)
    kind, parts = found["kind"].lower(), _parts(found["inner"])
    names = [part.partition(":")[0] for part in parts] if kind == "struct" else []
    types = [_spelled(part.partition(":")[2] if names else part) for part in parts]
    if len(types) != INNER_TYPES.get(kind, len(types)) or not all(types) or not all(names):
        return None
    spelled = [f"{name}:{inner}" for name, inner in zip(names, types, strict=True)] if names else map(str, types)
    return f"{kind}<{','.join(spelled)}>"


def _parts(inner: str) -> list[str]:
    """What stands between commas outside of all brackets."""
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


OutputColumnType = Annotated[str, PlainValidator(_output_type, json_schema_input_type=str)]


class ColumnForm(SpecPart):
    """A column of an output, which the file names before it."""

    type: OutputColumnType | None = None
    """The column's type, as Spark spells it. Needed. A bare word stands for the mapping: `columns: {id: bigint}`.
    Example: `type: "decimal(18,2)"`"""

    null: Switch = True
    """Whether the column may be NULL. With `false` a NULL is refused before anything of its wave is published.
    Example: `type: bigint, null: false`"""

    description: str | None = None
    """What the column says, for readers of the table: it is the column's comment there.
    Example: `type: bigint, description: Number of the order`"""

    def __str__(self) -> str:
        return f"{self.type}{'' if self.null else ', never NULL'}"
