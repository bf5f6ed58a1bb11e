"""The token of a plan: it tells which cells somebody was shown, so that no others are run in their place.

It is a digest of the cells and, after a dot, the cells themselves, packed: whoever sends it back can then be told what
is different. The digest alone, short enough to be copied, is a token as well; it can only tell that something is.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256

from stagehold.model.backfill import PlannedCell
from stagehold.model.partition_set import exact_text

DIGITS = 12  # of the digest
SHOWN = 5  # cells that a difference names
MOST_BYTES = 1_000_000  # of cells: a token that unpacks to more is none of ours

Cells = dict[tuple[str, str], str]  # ranges of partitions, by interval and stage


def token_of(cells: Sequence[PlannedCell]) -> str:
    text = _text(cells).encode()
    packed = urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")
    return f"{_digest(text)}.{packed}"


def short(token: str) -> str:
    """The digest alone."""
    return token.partition(".")[0]


def difference(shown: str, now: Sequence[PlannedCell]) -> str | None:
    """A text that says what runs now and was not shown; None if what was shown is still true."""
    if short(shown) == _digest(_text(now).encode()):
        return None
    before = _cells(shown)
    if before is None:
        return f"what runs is not what you were shown: now it is {_named(_by_place(now)) or 'nothing'}"
    after = _by_place(now)
    parts = (
        _counted("more", "runs than you were shown", "run than you were shown", _only(after, before)),
        _counted("", "runs no more", "run no more", _only(before, after)),
        _counted("", "runs in other partitions", "run in other partitions", _changed(before, after)),
    )
    return "; ".join(filter(None, parts))


def _only(of: Cells, but: Cells) -> Cells:
    return {place: ranges for place, ranges in of.items() if place not in but}


def _changed(before: Cells, after: Cells) -> Cells:
    return {place: ranges for place, ranges in after.items() if place in before and before[place] != ranges}


def _counted(more: str, one: str, several: str, cells: Cells) -> str:
    if not cells:
        return ""
    words = (str(len(cells)), *filter(None, (more,)), "cell" if len(cells) == 1 else "cells")
    return f"{' '.join(words)} {one if len(cells) == 1 else several}: {_named(cells)}"


def _named(cells: Cells) -> str:
    names = [f"{interval} {stage}[{ranges.replace(',', ', ')}]" for (interval, stage), ranges in cells.items()]
    rest = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*names[:SHOWN], *rest])


def _by_place(cells: Iterable[PlannedCell]) -> Cells:
    return {(cell.interval, cell.stage): exact_text(cell.ranges) for cell in cells}


def _text(cells: Iterable[PlannedCell]) -> str:
    return "\n".join(f"{cell.interval}\t{cell.stage}\t{exact_text(cell.ranges)}" for cell in cells)


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()[:DIGITS]


def _cells(token: str) -> Cells | None:
    """The cells that a token tells; None if it does not tell them as `token_of` does."""
    digest, _, packed = token.partition(".")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MOST_BYTES)
        if not packed or _digest(text) != digest:
            return None
        lines = (line.split("\t") for line in text.decode().splitlines())
        return {(interval, stage): ranges for interval, stage, ranges in lines}
    except (ValueError, zlib.error):
        return None
