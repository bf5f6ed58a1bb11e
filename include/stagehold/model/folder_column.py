"""A column that folders give the rows of their files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FolderColumn:
    """``day`` of folders like ``day=2026-01-01``; ``type`` as Spark spells it."""

    name: str
    type: str
