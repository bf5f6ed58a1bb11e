"""The columns of a stage's output: which are ours, which types a table can hold, how the columns of a table grow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagehold.errors import StageContractBroken
from stagehold.spec.settings.output_settings import NO_NAME, fit_name, is_fit_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

PARTITION = "_partition"
INTERVAL = "_interval"
GROUP_PREFIX = "_group_"
STATE_GROUP, STATE_POSITION = "_group", "_position"  # in files of state: a row's key group; an element's place
STATE_COLUMNS = (STATE_GROUP, STATE_POSITION)
EXPECTATION = "_expectation"  # of rows that were set aside: what they do not meet
FILE, ROW = f"{GROUP_PREFIX}file", f"{GROUP_PREFIX}row"  # what tells rows that were read from files
METADATA = "_metadata"  # a column of that name would hide the one in which Spark says which file a row is from

IN_JSON = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}  # what Spark and Delta call them
WIDENING = (("byte", "short", "integer", "long"), ("float", "double"))  # beside decimals
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
USABLE_TYPES = (
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)


def is_reserved(column: str) -> bool:
    """Whether Stagehold or Spark uses the name. Such a column is no content, so no part of fingerprint and metrics."""
    return column in (PARTITION, INTERVAL, EXPECTATION, METADATA) or column.startswith(GROUP_PREFIX)


def data_fields(schema: StructType) -> list[StructField]:
    """The columns that the stage function made."""
    return [field for field in schema.fields if not is_reserved(field.name)]


def refuse_unusable_columns(stage: str, schema: StructType) -> None:
    """Refuse, before anything is written, columns that cannot be stored, read by others or fingerprinted.

    :raises StageContractBroken: names every such column.
    """
    problems = list(_problems(schema))
    if problems:
        raise StageContractBroken(stage, f"its output has {'; '.join(problems)}")


@dataclass(frozen=True)
class Growth:
    """How a frame's columns differ from those of the table that it is published to; types as Delta's JSON has them.

    ``missing`` are in the table alone and ``narrower`` have a type there that takes all of theirs, so a reader of the
    table sees NULL, or the wider type. ``other`` have types of which neither takes all of the other's.
    """

    new: tuple[str, ...]
    wider: tuple[str, ...]
    missing: tuple[str, ...]
    narrower: tuple[str, ...]
    other: tuple[str, ...]

    @classmethod
    def of(cls, table: Mapping[str, Any], frame: Mapping[str, Any]) -> Growth:
        changed = [name for name in frame if name in table and frame[name] != table[name]]
        wider = tuple(name for name in changed if _takes_all_of(frame[name], table[name]))
        narrower = tuple(name for name in changed if _takes_all_of(table[name], frame[name]))
        return cls(
            new=tuple(name for name in frame if name not in table),
            wider=wider,
            missing=tuple(name for name in table if name not in frame),
            narrower=narrower,
            other=tuple(name for name in changed if name not in wider and name not in narrower),
        )


def sql_type(kind: Any) -> str:
    """A type from Delta's JSON, as people write it."""
    from pyspark.sql.types import StructField, StructType

    field = {"name": "it", "type": kind, "nullable": True, "metadata": {}}
    return StructType([StructField.fromJson(field)])["it"].dataType.simpleString()


def _takes_all_of(wide: Any, narrow: Any) -> bool:
    """Whether readers can read a file of ``narrow`` values as ``wide`` ones without changing any value."""
    for order in WIDENING:
        if wide in order and narrow in order:
            return order.index(wide) > order.index(narrow)
    digits = [DECIMAL.fullmatch(str(kind)) for kind in (wide, narrow)]
    if not (digits[0] and digits[1]):
        return False
    (precision, scale), (least, least_scale) = ((int(digit[1]), int(digit[2])) for digit in digits if digit)
    return scale >= least_scale and precision - scale >= least - least_scale


def quoted(name: str) -> str:
    """``name`` quoted for column expressions, whatever characters are in it."""
    return "`" + name.replace("`", "``") + "`"


def _problems(schema: StructType) -> Iterator[str]:
    fields = data_fields(schema)
    if not fields:
        yield "no column of its own"
    for name, count in Counter(field.name.lower() for field in fields).items():
        if count > 1:
            yield f"{count} columns called {name!r} (case does not count)"
    for field in fields:
        if not is_fit_name(field.name):
            name = fit_name(field.name)
            yield (f'a column called {field.name!r}; {NO_NAME}: put `.alias("{name}")` on it, or `AS {name}` in SQL')
        for kind in leaf_types(field.dataType):
            if kind.typeName() not in USABLE_TYPES:
                yield f"column {field.name!r} of type {kind.simpleString()}, {_instead(field.name, kind)}"


def _instead(column: str, kind: DataType) -> str:
    """Intervals come back from their text as they were; of other types the author knows what is meant."""
    if "interval" not in kind.typeName():
        return "which not every reader of the table can read; cast it"
    name = kind.simpleString().upper()
    return (
        f"which Delta does not hold; return its text, CAST({column} AS STRING), and where it is read "
        f"CAST({column} AS {name}), or a number of its smallest unit"
    )


def leaf_types(kind: DataType) -> Iterator[DataType]:
    """``kind`` itself, or the types at the ends of a nested one."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from leaf_types(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from leaf_types(kind.elementType)
    elif isinstance(kind, MapType):
        yield from leaf_types(kind.keyType)
        yield from leaf_types(kind.valueType)
    else:
        yield kind
