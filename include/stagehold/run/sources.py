"""Source files of a stage, dealt into splits. A split's hash changes when any of its files does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stagehold.errors import SourceMissing
from stagehold.model.compute_key import digest
from stagehold.model.spec import Source

LAKE = "${lake}"


@dataclass(frozen=True, order=True)
class SourceFile:
    path: str
    bytes: int
    modified: int  # nanoseconds: two writes within a second must differ


@dataclass(frozen=True)
class Split:
    """The files one partition of a source stage reads; it may have none."""

    files: tuple[SourceFile, ...]

    @property
    def fingerprint(self) -> str:
        return digest(f"{file.path}|{file.bytes}|{file.modified}" for file in self.files)


def list_splits(stage: str, source: Source, lake_uri: str) -> tuple[Split, ...]:
    """Deal the files matching the source's path, sorted by name, into contiguous splits of nearly equal count.

    Raises SourceMissing when nothing matches: an empty input is almost always a path gone wrong.
    """
    pattern = source.path.replace(LAKE, lake_uri)
    absolute = Path(pattern).absolute()
    files = [_describe(path) for path in sorted(Path(absolute.anchor).glob(str(absolute.relative_to(absolute.anchor))))]
    if not files:
        raise SourceMissing(stage, pattern)
    bounds = [index * len(files) // source.splits for index in range(source.splits + 1)]
    return tuple(Split(tuple(files[start:end])) for start, end in pairwise(bounds))


def _describe(path: Path) -> SourceFile:
    status = path.stat()
    return SourceFile(str(path), status.st_size, status.st_mtime_ns)
