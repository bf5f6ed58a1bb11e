"""What stages declare to read beside their inputs, as it is now: told apart from what it was by a hash of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from stagehold.errors import ReadMissing
from stagehold.lake.commit.delta_log import open_table, table_exists
from stagehold.lake.store.location import OBJECT_STORE, lake_root, published_table
from stagehold.model.keys.compute_key import DeclaredRead, ReadKind, digest
from stagehold.model.source_position import SourceFile
from stagehold.settings import Settings
from stagehold.sources.files import LAKE, SourceRoots
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.yaml import read_document

NOT_SET = "not set"  # in place of a hash


@dataclass(frozen=True)
class ReadRoots(SourceRoots):
    """Where declared paths begin, which are those of sources, and names of tables."""

    @staticmethod
    def of(settings: Settings) -> ReadRoots:
        """A sandbox reads where production does."""
        return ReadRoots(lake_root(settings.production.lake_uri), str(Path(settings.project).resolve()))

    def table(self, name: str) -> str:
        """The address of a table that is called by its name in the lake or by its place."""
        return self.address(name) if is_place(name) else published_table(self.lake, name)

    def short(self, path: str) -> str:
        """A path as it is called wherever project and lake lie."""
        for root, begin in ((self.lake, f"{LAKE}/"), (self.project, "")):
            if path.startswith(f"{root}/"):
                return begin + path.removeprefix(f"{root}/")
        return path


def is_place(table: str) -> bool:
    return "/" in table


def declared_reads(
    stage: Stage, pipeline: Pipeline, roots: ReadRoots, environment: Mapping[str, str] = os.environ
) -> tuple[DeclaredRead, ...]:
    """Every read that the stage declares, with a hash of what it is now. Values of variables are in nothing else.

    What changes after this and before the function reads it is found by the next plan, which sees another hash.

    :raises ReadMissing: a path matches no file, or there is no such table
    """
    reads = pipeline.reads_of(stage)
    found = [DeclaredRead(ReadKind.ENV, name, _variable(environment.get(name))) for name in reads.env]
    for path in reads.files:
        content = _content_of_files(path, roots)
        found.append(DeclaredRead(ReadKind.FILE, path, content or _missing(stage, pipeline, "files", path)))
    for table in reads.tables:
        content = _version_of_table(roots.table(table))
        found.append(DeclaredRead(ReadKind.TABLE, table, content or _missing(stage, pipeline, "tables", table)))
    return tuple(found)


def _variable(value: str | None) -> str:
    return NOT_SET if value is None else digest((value,))


def _content_of_files(pattern: str, roots: ReadRoots) -> str | None:
    """None where there is no file."""
    files = roots.files(pattern)
    return digest(part for file in files for part in (roots.short(file.path), _content(file))) if files else None


def _content(file: SourceFile) -> str:
    """By its content where that is at hand; in an object store, by what tells of it."""
    if file.path.startswith(OBJECT_STORE):
        return f"{file.bytes} {file.version}"
    return _hash_of_file(file.path, file.bytes, file.version)


@lru_cache(maxsize=1024)
def _hash_of_file(path: str, size: int, version: str) -> str:  # noqa: ARG001
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version_of_table(uri: str) -> str | None:
    """None where there is no table."""
    if not table_exists(uri):
        return None
    table = open_table(uri)
    return digest((str(table.metadata().id), str(table.version())))


def _missing(stage: Stage, pipeline: Pipeline, field: str, name: str) -> NoReturn:
    """:raises ReadMissing: with the place where the pipeline's file declares it, as far as there is a file"""
    place, line = ("stages", stage.name, "reads", field), None
    if Path(pipeline.file).is_file():
        document = read_document(Path(pipeline.file))
        index = getattr(pipeline.reads_of(stage), field).index(name)
        line = document.line((*place, str(index)))
    where = pipeline.file if line is None else f"{pipeline.file}:{line}"
    raise ReadMissing(stage.name, where, field=".".join(place), given=name)
