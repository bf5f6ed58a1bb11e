"""How the files of a source are dealt into splits."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.model.source_position import SourceFile


def deal(files: Sequence[SourceFile], count: int) -> tuple[tuple[SourceFile, ...], ...]:
    """``count`` groups of neighbours, in the given order, of nearly equal bytes: none is larger than an equal share and
    a file.

    A file goes where its middle falls, so equal files are dealt by number, and with fewer files than groups some stay
    empty.
    """
    groups: list[list[SourceFile]] = [[] for _ in range(count)]
    total, before = sum(map(_weight, files)), 0
    for file in files:
        groups[(2 * before + _weight(file)) * count // (2 * total)].append(file)
        before += _weight(file)
    return tuple(map(tuple, groups))


def _weight(file: SourceFile) -> int:
    return max(file.bytes, 1)  # empty files are dealt, too
