"""Hive's way of keeping columns in the names of folders: ``day=2026-01-01/hour=3/part-0.parquet``.

The columns of a file are the folders of the form ``name=value`` that are nearest to it and one below the other, as
Spark has it. All files of a source must have the same ones, so that all splits have the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from stagehold.model.source_position import FolderColumn
from stagehold.plan.sources.folder_types import common_type, unescaped

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
    places = [_place(path, lake_uri) for path in paths]
    for place in places:
        _refuse_mixed(places[0], place)
    if not places:
        return ()
    values = zip(*(place.values for place in places), strict=True)
    return tuple(
        FolderColumn(name, common_type(set(given))) for name, given in zip(places[0].names, values, strict=True)
    )


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
            one for one in (*place.above, *first.above) if one not in place.above or one not in first.above
        )
        raise MixedFolders(f"between {differing} and {place.names[-1]}= is a folder without a column, in {place.path}")
    if "" in place.names or "" in place.values:
        raise MixedFolders(f"a folder of {place.path} has no name or no value beside its =")
    if len({name.lower() for name in place.names}) < len(place.names):
        raise MixedFolders(f"two folders of {place.path} have one name")


def _columns_text(place: _Place) -> str:
    return f"the folders of {place.path} give {', '.join(place.names) or 'no columns'}"
