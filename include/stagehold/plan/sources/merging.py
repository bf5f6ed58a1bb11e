"""The columns of files that do not all have the same ones: their union by name, of types that hold the values of all.

Types are as Spark spells them, nested ones as trees. They are widened where Spark reads a file's own type as the wider
one and every value stays what it is; a whole number of 64 bits is no double.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stagehold.model.source_position import MixedColumns

WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # with the digits of the decimal that holds them
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
MOST_DIGITS = 38


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, ColumnType], ...]


@dataclass(frozen=True)
class Array:
    element: ColumnType


@dataclass(frozen=True)
class MapOf:
    key: ColumnType
    value: ColumnType


ColumnType = str | Struct | Array | MapOf


class UnlikeColumns(Exception):
    """Two files have a column of types that no type holds both of; the text names all four."""


def mixed_columns(columns: Mapping[str, Struct]) -> MixedColumns | None:
    """The columns of files, by path, in the order in which they come; None if all have the same.

    :raises UnlikeColumns: a column has types that do not go together
    """
    alike: dict[frozenset[tuple[str, ColumnType]], str] = {}  # in whatever order a file has them
    for path in sorted(columns):
        alike.setdefault(frozenset(columns[path].fields), path)
    if len(alike) < 2:
        return None
    samples = {columns[path]: path for path in alike.values()}
    merged: dict[str, tuple[str, ColumnType, str]] = {}  # by name without case: name, type, the file that has it
    for found, path in samples.items():
        for name, kind in found.fields:
            before = merged.get(name.lower())
            wider = kind if before is None else _common(before[1], kind)
            if wider is None:
                raise UnlikeColumns(_told(before, name, kind, path))
            merged[name.lower()] = (before or (name,))[0], wider, path if before is None or wider == kind else before[2]
    fields = tuple((name, spelled(kind)) for name, kind, _ in merged.values())
    same = {
        name for name, kind, _ in merged.values() if all(_type_in(struct, name) in (None, kind) for struct in samples)
    }
    return MixedColumns(tuple(samples.values()), fields, tuple(name for name, _ in fields if name not in same))


def _told(before: tuple[str, ColumnType, str] | None, name: str, kind: ColumnType, path: str) -> str:
    assert before is not None, "what nobody had before goes with everything"
    return f"column {name} is {spelled(before[1])} in {before[2]} and {spelled(kind)} in {path}"


def _type_in(columns: Struct, name: str) -> ColumnType | None:
    return next((kind for own, kind in columns.fields if own.lower() == name.lower()), None)


def spelled(kind: ColumnType) -> str:
    if isinstance(kind, Struct):
        return f"struct<{','.join(f'`{name}`:{spelled(of)}' for name, of in kind.fields)}>"
    if isinstance(kind, Array):
        return f"array<{spelled(kind.element)}>"
    return f"map<{spelled(kind.key)},{spelled(kind.value)}>" if isinstance(kind, MapOf) else kind


def _common(one: ColumnType, other: ColumnType) -> ColumnType | None:
    if one == other:
        return one
    if isinstance(one, str) and isinstance(other, str):
        return _wider(one, other) or _wider(other, one)
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _common_struct(one, other)
    if isinstance(one, Array) and isinstance(other, Array):
        element = _common(one.element, other.element)
        return None if element is None else Array(element)
    if isinstance(one, MapOf) and isinstance(other, MapOf) and one.key == other.key:
        value = _common(one.value, other.value)
        return None if value is None else MapOf(one.key, value)
    return None


def _common_struct(one: Struct, other: Struct) -> Struct | None:
    found = {name.lower(): (name, kind) for name, kind in one.fields}
    for name, kind in other.fields:
        known, before = found.get(name.lower(), (name, kind))
        wider = _common(before, kind)
        if wider is None:
            return None
        found[name.lower()] = known, wider
    return Struct(tuple(found.values()))


def _wider(narrow: str, wide: str) -> str | None:
    if narrow in WHOLE and wide in WHOLE:
        return wide if WHOLE[narrow] <= WHOLE[wide] else None
    if wide in ("float", "double") and (narrow == "float" or WHOLE.get(narrow, MOST_DIGITS) <= WHOLE["int"]):
        return "double"
    if (narrow, wide) == ("date", "timestamp_ntz"):
        return wide
    return _wider_decimal(narrow, wide)


def _wider_decimal(narrow: str, wide: str) -> str | None:
    of_wide = DECIMAL.fullmatch(wide)
    of_narrow = DECIMAL.fullmatch(f"decimal({WHOLE[narrow]},0)" if narrow in WHOLE else narrow)
    if of_wide is None or of_narrow is None:
        return None
    (digits, scale), (other, its_scale) = (tuple(map(int, found.groups())) for found in (of_wide, of_narrow))
    places = max(scale, its_scale)
    total = max(digits - scale, other - its_scale) + places
    return f"decimal({total},{places})" if total <= MOST_DIGITS else None
