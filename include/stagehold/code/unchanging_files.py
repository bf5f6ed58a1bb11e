"""The project's files with code, which may be edited at any time. Whoever needs one version of them, an attempt above
all, takes them within a block as they are when they are first looked at.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

_KNOWN: ContextVar[dict[Hashable, Any] | None] = ContextVar("known", default=None)
Found = TypeVar("Found")


@contextmanager
def unchanging_files() -> Iterator[None]:
    """Take the project's files in the block as they are when they are first looked at: what is parsed, fingerprinted,
    imported and sent to workers is then one version. A block within a block adds nothing.

    Threads have it that are started with a copy of the context. In others, and for files that are looked at for the
    first time when they have changed, it is what they are then.
    """
    around = _KNOWN.get()
    token = _KNOWN.set({} if around is None else around)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def found_once(what: Hashable, find: Callable[[], Found]) -> Found:
    """What ``find`` gives, which is kept within `unchanging_files`."""
    known = _KNOWN.get()
    if known is None:
        return find()
    if what not in known:
        known[what] = find()
    return known[what]  # type: ignore[no-any-return]


def look_anew(kind: str) -> None:
    """Forget what was found within `unchanging_files` under names that begin with ``kind``."""
    known = _KNOWN.get() or {}
    for what in [what for what in known if isinstance(what, tuple) and what[0] == kind]:
        del known[what]


def content_of(path: Path) -> bytes:
    return found_once(("content", str(path)), path.read_bytes)


def text_in_file(path: Path) -> str:
    """:raises UnicodeDecodeError: it is not in UTF-8"""
    return io.StringIO(content_of(path).decode("utf-8"), newline=None).read()
