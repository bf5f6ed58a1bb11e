"""Key groups as a Spark expression, and the types of key columns, which decide whether they may be grouped like that.

A key is hashed in its canonical form, which equal keys share whatever the types of their columns: numbers are doubles,
since Spark compares most pairs of numbers as doubles; strings lose the spaces at their ends, with which Spark pads
`char` columns. Different keys may share a form, as two large whole numbers do; that only puts them into one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagehold.errors import KeyTypesUnlike, StageContractBroken
from stagehold.lake.store.columns import quoted
from stagehold.model.keys.key_types import KeyKind, KeyType
from stagehold.plan.isolation.key_checks import Key, KeyColumn, key_problems

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
KINDS = {
    "boolean": KeyKind.BOOLEAN,
    "binary": KeyKind.BINARY,
    "date": KeyKind.DATE,
    "timestamp": KeyKind.TIMESTAMP,
    "timestamp_ntz": KeyKind.TIMESTAMP_NTZ,
    "float": KeyKind.FLOAT,
    "double": KeyKind.DOUBLE,
    "void": KeyKind.NOTHING,
}


def key_group(key: Sequence[str], schema: StructType, max_parallelism: int) -> Column:
    """Key group of a row in a frame with these columns: its key's canonical form, hashed."""
    from pyspark.sql import functions as F

    forms = [_canonical(F.col(quoted(column)), schema[column].dataType) for column in key]
    return F.pmod(F.xxhash64(*forms), F.lit(max_parallelism)).cast("int")


def partition_of_key(key: Sequence[str], schema: StructType, *, partitions: int, max_parallelism: int) -> Column:
    """Partition of a row, by the key group it falls into."""
    from pyspark.sql import functions as F

    return F.floor(key_group(key, schema, max_parallelism) * F.lit(partitions) / F.lit(max_parallelism)).cast("int")


def in_groups(group: Column, ranges: Sequence[range]) -> Column:
    """True for rows whose group is in one of ``ranges``."""
    return _any([group.between(*bounds) for bounds in _merged(ranges)])


def _any(conditions: Sequence[Column]) -> Column:
    """True where one of them is. Put together by halves: Spark refuses what is a thousand levels deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return _any(conditions[:middle]) | _any(conditions[middle:])


def _merged(ranges: Sequence[range]) -> list[tuple[int, int]]:
    """Neighbouring ranges as one, so that a wave is usually a single comparison."""
    merged: list[tuple[int, int]] = []
    for groups in sorted(ranges, key=lambda groups: groups.start):
        if merged and merged[-1][1] + 1 >= groups.start:
            merged[-1] = (merged[-1][0], groups.stop - 1)
        else:
            merged.append((groups.start, groups.stop - 1))
    return merged


def key_of(stage: str, key: Sequence[str], schema: StructType) -> Key:
    """The columns of a key in the output of ``stage``.

    :raises StageContractBroken: a column is missing.
    """
    columns = schema.fieldNames()
    absent = [column for column in dict.fromkeys(key) if column not in columns]
    if absent:
        reason = f"its output has no key column {', '.join(absent)}; it has {', '.join(columns)}"
        raise StageContractBroken(stage, reason)
    return [KeyColumn(stage, column, key_type(schema[column].dataType)) for column in key]


def refuse_unlike_keys(stage: str, keys: Sequence[Key]) -> None:
    """Refuse keys that could be equal and yet be dealt to different partitions of ``stage``.

    :raises KeyTypesUnlike: says which, and what to cast.
    """
    problems = key_problems(keys)
    if problems:
        raise KeyTypesUnlike(stage, problems)


def key_type(kind: DataType) -> KeyType:
    """A column's type, as far as the equality of keys depends on it."""
    from pyspark.sql import types as T

    text = kind.simpleString()
    match kind:
        case T.DecimalType():
            return KeyType(KeyKind.DECIMAL, text, kind.precision - kind.scale, kind.scale)
        case T.IntegralType():
            return KeyType(KeyKind.WHOLE, text, DIGITS[text])
        case T.StringType() | T.CharType() | T.VarcharType():
            return KeyType(_kind_of_string(kind), text)
        case T.StructType():
            return KeyType(KeyKind.STRUCT, text, parts=tuple(key_type(field.dataType) for field in kind.fields))
        case T.ArrayType():
            return KeyType(KeyKind.ARRAY, text, parts=(key_type(kind.elementType),))
        case T.DayTimeIntervalType():
            return KeyType(KeyKind.DAY_TIME, text)
        case T.YearMonthIntervalType():
            return KeyType(KeyKind.YEAR_MONTH, text)
    return KeyType(KINDS.get(text, KeyKind.UNUSABLE), text)


def _kind_of_string(kind: DataType) -> KeyKind:
    from pyspark.sql.types import StringType

    return KeyKind.COLLATED if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation() else KeyKind.STRING


def _canonical(column: Column, kind: DataType) -> Column:
    """The form that all values equal to this one have.

    Hashing itself takes care of zeros, NaN and intervals, and skips NULL.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    match kind:
        case T.NumericType():
            return column.cast("double")
        case T.StringType() | T.CharType() | T.VarcharType():
            return F.rtrim(column)
        case T.StructType():
            forms = [_canonical(column[field.name], field.dataType) for field in kind.fields]
            named = [form.alias(f"_{place}") for place, form in enumerate(forms)]
            return F.when(column.isNotNull(), F.struct(*named))
        case T.ArrayType():
            return F.transform(column, lambda element: _canonical(element, kind.elementType))
    return column
