"""Finds the files of a source, in a folder of this machine or in an object store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.model.source_position import SourceFile

LAKE = "${lake}"
WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class SourceRoots:
    """Where paths of sources begin: at ``lake`` what says so, and at ``project`` what is relative."""

    lake: str
    project: str

    def files(self, pattern: str) -> tuple[SourceFile, ...]:
        return find_files(pattern, self.lake, self.project)

    def address(self, path: str) -> str:
        return in_lake(path, self.lake, self.project)

    def means(self, pattern: str, address: str) -> bool:
        """Whether what lies at an address, perhaps a folder, is all there because of files that ``pattern`` means."""
        root, names = _cut(pattern, self.lake, self.project)
        if address == root:
            return True
        below = tuple(address.removeprefix(f"{root.rstrip('/')}/").split("/"))
        inside = address.startswith(f"{root.rstrip('/')}/")
        return inside and not any(map(_is_hidden, below)) and _matches(below, names)


def find_files(pattern: str, lake_uri: str, project: str = "") -> tuple[SourceFile, ...]:
    """The files that ``pattern`` means, by path: a file, all files of a folder, or all that a glob matches.

    A glob has ``*``, ``?`` and ``[...]`` within a name and ``**`` for any folders. A folder stands for all files in it,
    at any depth. What begins with ``_`` or ``.`` is hidden, as it is for Spark; a file still being written is not, so
    move finished ones into place.

    :param project: the folder that a relative path is seen from; empty for the current one
    """
    root, names = _cut(pattern, lake_uri, project)
    parent, name = _parent(root)
    found = []
    for path, facts in files_at(parent).facts(name).items():
        below = tuple(part for part in path.removeprefix(name).split("/") if part)
        if not any(map(_is_hidden, below)) and _matches(below, names):
            found.append(SourceFile(f"{parent.rstrip('/')}/{path}", facts.bytes, facts.version))
    return tuple(sorted(found))


def in_lake(path: str, lake_uri: str, project: str = "") -> str:
    """``path`` as an address that does not depend on the current folder.

    Links that lead to the project are followed, as a shell does that tells its folder: so what is recorded of relative
    paths is called as it was when they were seen from there.
    """
    text = path.replace(LAKE, lake_uri.rstrip("/"))
    return text.rstrip("/") if text.startswith(OBJECT_STORE) else str(Path(project).resolve() / text)


def _cut(pattern: str, lake_uri: str, project: str) -> tuple[str, tuple[str, ...]]:
    """The folder up to the first wildcard, and the names to match below it. The lake's own name is never a pattern."""
    names = pattern.split("/")
    literal = next((place for place, name in enumerate(names) if WILDCARD.search(name)), len(names))
    begin = "/".join(names[:literal]) or ("/" if pattern.startswith("/") else ".")
    return in_lake(begin, lake_uri, project), tuple(filter(None, names[literal:]))


def _parent(root: str) -> tuple[str, str]:
    """Where to look, and for what: a bucket has no parent to look in."""
    if root.startswith(OBJECT_STORE) and "/" not in root.removeprefix(OBJECT_STORE):
        return root, ""
    parent, _, name = root.rpartition("/")
    return parent or "/", name


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether ``names`` lead to or through what ``patterns`` match."""
    if not patterns:
        return True
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or (bool(names) and _matches(names[1:], patterns))
    return bool(names) and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])
