"""Files below one folder or object-store prefix. The rest of the lake never asks which of the two it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """Paths are relative to the root and use ``/``. What is not there has no files; it is no error."""

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Bytes of every file in ``folder``, at any depth, by path."""

    def tail(self, path: str, length: int) -> bytes:
        """The last ``length`` bytes of a file, or all of it if it is shorter."""

    def delete(self, folder: str) -> None:
        """Remove every file in ``folder``."""


class FolderFiles:
    """Files in a folder of this machine."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def sizes(self, folder: str) -> Mapping[str, int]:
        return {
            str(path.relative_to(self._root)): path.stat().st_size
            for parent, _, names in os.walk(self._root / folder)
            for path in (Path(parent, name) for name in names)
        }

    def tail(self, path: str, length: int) -> bytes:
        with (self._root / path).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - length, 0))
            return file.read()

    def delete(self, folder: str) -> None:
        shutil.rmtree(self._root / folder, ignore_errors=True)


@lru_cache(maxsize=64)
def files_at(uri: str) -> Files:
    """Files below ``uri``."""
    return FolderFiles(uri)
