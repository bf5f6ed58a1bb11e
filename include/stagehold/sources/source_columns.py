"""The columns that the files of a source have, or that folders give them, as far as that is seen without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagehold.errors import SourceUnusable
from stagehold.model.source_position import FolderColumn, MixedColumns, SourceFile
from stagehold.plan.sources.folders import MixedFolders, folder_columns
from stagehold.plan.sources.merging import UnlikeColumns, mixed_columns
from stagehold.sources.source_files import columns_of
from stagehold.spec.settings.source import Source, SourceKind


def columns_of_folders(stage: str, paths: Iterable[str], lake_uri: str) -> tuple[FolderColumn, ...]:
    """:raises SourceUnusable: some folders give other columns than the rest"""
    try:
        return folder_columns(paths, lake_uri)
    except MixedFolders as mixed:
        remedy = (
            "Let `path` match only files whose folders have the same names, and read the others in a stage of their own"
        )
        raise SourceUnusable(stage, str(mixed), remedy) from mixed


def columns_of_files(stage: str, source: Source, files: Sequence[SourceFile]) -> MixedColumns | None:
    """The columns of Parquet or ORC files that do not all have the same.

    :raises SourceUnusable: a column has types in two files that no type holds both of
    """
    if source.kind not in (SourceKind.PARQUET, SourceKind.ORC):
        return None
    try:
        return mixed_columns(columns_of(files))
    except UnlikeColumns as unlike:
        remedy = "Write one of them anew with the other's type, or read them in stages of their own"
        raise SourceUnusable(stage, str(unlike), remedy) from unlike


def types_of_files(files: Sequence[SourceFile]) -> dict[str, str]:
    """The types of the columns of all files, as far as they are plain, from the first of them that can be read."""
    found = columns_of(files[:1]).values()
    return {name: str(kind) for columns in found for name, kind in columns.fields}
