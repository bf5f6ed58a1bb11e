"""A file that a source stage reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class SourceFile:
    """``version`` tells two contents of one path apart. ``partition`` are the values of columns that the file itself does not hold."""

    path: str
    bytes: int
    version: str
    partition: tuple[tuple[str, str | None], ...] = ()
