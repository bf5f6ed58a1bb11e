"""How far a source was read: the files or versions that one interval has taken of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file that a source stage reads. ``version`` tells two contents of one path apart.

    ``partition`` are the values of columns that the file itself does not hold.
    """

    path: str
    bytes: int
    version: str
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class FolderColumn:
    """A column that folders give the rows of their files: ``day`` of folders like ``day=2026-01-01``.

    ``type`` is as Spark spells it.
    """

    name: str
    type: str


@dataclass(frozen=True)
class MixedColumns:
    """The columns of files that do not all have the same ones: ``fields`` are names and types, as Spark spells them,
    and ``samples`` files that have them all together. Those that are ``wider`` have another type in some file.
    """

    samples: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    wider: tuple[str, ...]


@dataclass(frozen=True)
class FilesRead:
    """Files that one interval reads, as they were when it took them; none if there was nothing new.

    ``columns`` come from the names of folders. Their types fit all files that the source had then, so they are kept:
    what comes later, and only a part of the files, could have others. So are ``mixed`` columns of the files themselves,
    if they are.
    """

    files: tuple[SourceFile, ...]
    columns: tuple[FolderColumn, ...] = ()
    mixed: MixedColumns | None = None

    def __str__(self) -> str:
        return f"{len(self.files)} files"


@dataclass(frozen=True)
class FilesFound:
    """Files of a Delta table ``at`` a version that hold what was taken of it, after its own were rewritten and deleted.

    Their paths begin at the table, whose ``schema`` then is as JSON of Spark's.
    """

    at: int
    files: tuple[SourceFile, ...]
    schema: str = ""


@dataclass(frozen=True)
class VersionsRead:
    """What a Delta table's commits after ``after`` added, up to ``version``;
    with None, all that the table held then. If ``found``, its rows are read from these files.
    """

    after: int | None
    version: int
    found: FilesFound | None = None

    @property
    def first(self) -> int:
        """The first version that is read."""
        return 0 if self.after is None else self.after + 1

    @property
    def is_empty(self) -> bool:
        return not self.found.files if self.found else self.after is not None and self.version <= self.after

    def __str__(self) -> str:
        if self.found:
            return f"{self.versions}, from {len(self.found.files)} files that the table has at version {self.found.at}"
        return self.versions

    @property
    def versions(self) -> str:
        """The versions of the table that were read, in words."""
        if self.after is None:
            return f"the table at version {self.version}"
        return (
            f"what versions {self.after + 1} to {self.version} added"
            if self.version > self.after
            else "nothing, as no version is new"
        )


Position = FilesRead | VersionsRead


@dataclass(frozen=True)
class SourcePosition:
    """What an interval took of the source stage with this id."""

    stage: str
    position: Position


def write_position(position: Position) -> dict[str, Any]:
    """The position as plain data for JSON."""
    if isinstance(position, VersionsRead):
        return {"after": position.after, "version": position.version, **_write_found(position.found)}
    return {
        "files": [[file.path, file.bytes, file.version] for file in position.files],
        "columns": [[column.name, column.type] for column in position.columns],
        **({"mixed": asdict(position.mixed)} if position.mixed else {}),
    }


def read_position(data: dict[str, Any]) -> Position:
    """The position that `write_position` wrote."""
    if "files" in data:
        files = tuple(SourceFile(path, size, version) for path, size, version in data["files"])
        columns = tuple(FolderColumn(name, kind) for name, kind in data.get("columns", ()))
        return FilesRead(files, columns, _read_mixed(data.get("mixed")))
    return VersionsRead(data["after"], data["version"], _read_found(data.get("found")))


def _read_mixed(data: dict[str, Any] | None) -> MixedColumns | None:
    if data is None:
        return None
    fields = tuple((name, kind) for name, kind in data["fields"])
    return MixedColumns(tuple(data["samples"]), fields, tuple(data["wider"]))


def _write_found(found: FilesFound | None) -> dict[str, Any]:
    files = (
        [[file.path, file.bytes, dict(file.partition), *filter(None, [file.version])] for file in found.files]
        if found
        else []
    )
    return {"found": {"at": found.at, "schema": found.schema, "files": files}} if found else {}


def _read_found(data: dict[str, Any] | None) -> FilesFound | None:
    if data is None:
        return None
    files = (
        SourceFile(path, size, "".join(version), tuple(sorted(values.items())))
        for path, size, values, *version in data["files"]
    )
    return FilesFound(data["at"], tuple(files), data["schema"])
