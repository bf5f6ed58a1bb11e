"""How far a source was read: the files or versions that one interval has taken of it."""

from __future__ import annotations

from dataclasses import dataclass
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
class FilesRead:
    """Files that one interval reads, as they were when it took them; none if there was nothing new.

    ``columns`` come from the names of folders. Their types fit all files that the source had then, so they are kept:
    what comes later, and only a part of the files, could have others.
    """

    files: tuple[SourceFile, ...]
    columns: tuple[FolderColumn, ...] = ()

    def __str__(self) -> str:
        return f"{len(self.files)} files"


@dataclass(frozen=True)
class VersionsRead:
    """What a Delta table's commits after ``after`` added, up to ``version``;
    with None, all that the table held then.
    """

    after: int | None
    version: int

    @property
    def first(self) -> int:
        """The first version that is read."""
        return 0 if self.after is None else self.after + 1

    def __str__(self) -> str:
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
    """As plain data for JSON."""
    if isinstance(position, VersionsRead):
        return {"after": position.after, "version": position.version}
    return {
        "files": [[file.path, file.bytes, file.version] for file in position.files],
        "columns": [[column.name, column.type] for column in position.columns],
    }


def read_position(data: dict[str, Any]) -> Position:
    """What `write_position` wrote."""
    if "files" in data:
        files = tuple(SourceFile(path, size, version) for path, size, version in data["files"])
        return FilesRead(files, tuple(FolderColumn(name, kind) for name, kind in data.get("columns", ())))
    return VersionsRead(data["after"], data["version"])
