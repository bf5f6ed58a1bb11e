"""Hive's way of keeping columns in the names of folders: ``day=2026-01-01/hour=3/part-0.parquet``.

The columns of a file are the folders of the form ``name=value`` that are nearest to it and one below the other, as
Spark has it. All files of a source must have the same ones, so that all splits have the same columns.

The type of such a column is the one that Spark infers when it reads all names. Spark infers it from the values that it
is given; a split has only some of them, so it must not be asked split by split.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import groupby
from urllib.parse import unquote

from stagehold.model.source_position import FolderColumn

NULL = "__HIVE_DEFAULT_PARTITION__"


class MixedFolders(Exception):
    """Files of one source whose folders do not give the same columns; the text says which and how."""


@dataclass(frozen=True)
class _Place:
    """The folders of one file, values as they are written;
    ``above`` are those that another folder separates from the nearest.
    """

    path: str
    names: tuple[str, ...]
    values: tuple[str | None, ...]
    above: tuple[str, ...]


def folder_columns(paths: Iterable[str], lake_uri: str) -> tuple[FolderColumn, ...]:
    """The columns that folders give to all of ``paths``, outermost first; each has the type that fits all its values.

    Folders outside the lake's own name count from the root of the address on.

    :raises MixedFolders: the files do not agree
    """
    first_of: dict[str, str] = {}  # of each folder its first file: there may be thousands
    for path in paths:
        first_of.setdefault(path.rpartition("/")[0], path)
    places = [_place(path, lake_uri) for path in first_of.values()]
    for place in places:
        _refuse_mixed(places[0], place)
    if not places:
        return ()
    values = zip(*(place.values for place in places), strict=True)
    return tuple(
        FolderColumn(name, common_type(set(given))) for name, given in zip(places[0].names, values, strict=True)
    )


def folder_values(path: str, lake_uri: str) -> dict[str, str | None]:
    """What the folders of a file say of its rows, by column."""
    place = _place(path, lake_uri)
    return dict(zip(place.names, place.values, strict=True))


def root_of(path: str, levels: int) -> str:
    """The folder above the ``levels`` folders that give columns to the file at ``path``."""
    folders = path.split("/")[:-1]
    while folders and "=" not in folders[-1]:
        folders.pop()
    return "/".join(folders[: len(folders) - levels])


def _place(path: str, lake_uri: str) -> _Place:
    folders = path.removeprefix(lake_uri.rstrip("/") + "/").split("/")[:-1]
    runs = [list(run) for is_column, run in groupby(folders, lambda folder: "=" in folder) if is_column]
    nearest = runs.pop() if runs else []
    named = [folder.partition("=") for folder in nearest]
    return _Place(
        path,
        tuple(unescaped(name) for name, _, _ in named),
        tuple(None if value == NULL else value for _, _, value in named),
        tuple(folder for run in runs for folder in run),
    )


def _refuse_mixed(first: _Place, place: _Place) -> None:
    if place.names != first.names:
        raise MixedFolders(f"{_columns_text(first)}, and {_columns_text(place)}")
    if place.above != first.above:
        differing = next(
            folder for folder in (*place.above, *first.above) if folder not in place.above or folder not in first.above
        )
        raise MixedFolders(f"between {differing} and {place.names[-1]}= is a folder without a column, in {place.path}")
    if "" in place.names or "" in place.values:
        raise MixedFolders(f"a folder of {place.path} has no name or no value beside its =")
    if len({name.lower() for name in place.names}) < len(place.names):
        raise MixedFolders(f"two folders of {place.path} have one name")


def _columns_text(place: _Place) -> str:
    return f"the folders of {place.path} give {', '.join(place.names) or 'no columns'}"


INT, BIGINT, DOUBLE, DATE, TIMESTAMP, STRING = "int", "bigint", "double", "date", "timestamp", "string"
WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# What Java takes for a double: spaces around it, a letter behind it, and numbers to the base of 16 as well.
JAVA_DOUBLE = re.compile(
    r"[\x00- ]*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?"
    r"|0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?)[\x00- ]*",
    re.ASCII,
)
DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d)?", re.ASCII)
ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
MOST_DIGITS = 38  # of a decimal
DIGITS = {INT: 10, BIGINT: 20}  # of the decimal that holds them all


def common_type(values: Collection[str | None]) -> str:
    """The type of all ``values``, which are as folders write them; None fits every type, and alone it is text."""
    types = {type_of(value) for value in values if value is not None}
    if types <= {DATE, TIMESTAMP} and types:
        return TIMESTAMP if TIMESTAMP in types else DATE
    if not types or STRING in types or types & {DATE, TIMESTAMP}:
        return STRING
    decimals = [_digits(kind) for kind in types if kind.startswith("decimal")]
    if DOUBLE in types:
        return STRING if decimals or BIGINT in types else DOUBLE
    if decimals:
        return f"decimal({max([*decimals, *(DIGITS.get(kind, 0) for kind in types)])},0)"
    return BIGINT if BIGINT in types else INT


def unescaped(text: str) -> str:
    """Each escaped byte is one character, as Spark has it."""
    return ESCAPED.sub(lambda found: unquote(found[0], "latin-1"), text)


def type_of(value: str) -> str:
    """The type of a value. Only times may be escaped, since a colon must be on some systems."""
    if WHOLE.fullmatch(value):
        number = int(value)
        if -(2**31) <= number < 2**31:
            return INT
        if -(2**63) <= number < 2**63:
            return BIGINT
    if digits := _digits_of_whole_number(value):
        return f"decimal({digits},0)"
    if JAVA_DOUBLE.fullmatch(value):
        return DOUBLE
    if MOMENT.fullmatch(unescaped(value)) and _is_moment(unescaped(value)):
        return TIMESTAMP
    return DATE if DAY.fullmatch(value) and _is_moment(value) else STRING


def _digits_of_whole_number(value: str) -> int | None:
    """How many digits a decimal needs for it; None if it is not written as a whole number, or is too long for one."""
    if not NUMBER.fullmatch(value):
        return None
    with suppress(InvalidOperation):
        _, digits, exponent = Decimal(value).as_tuple()
        length = len(digits) + int(exponent)
        return length if int(exponent) >= 0 and length <= MOST_DIGITS else None
    return None


def _digits(kind: str) -> int:
    return int(kind.removeprefix("decimal(").removesuffix(",0)"))


def _is_moment(value: str) -> bool:
    with suppress(ValueError):
        return bool(datetime.fromisoformat(value.partition(".")[0]))
    return False
