"""Operations named in a text of SQL, found by its words: enough to say what to look at, not a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stagehold.plan.determinism.operations import Order, Use

TOKEN = re.compile(
    r"'(?:[^'\\]|\\.)*'|--[^\n]*|`[^`]*`|(?P<name>[a-z_]\w*)\s*\(|(?P<word>[a-z_]\w*)|(?P<mark>[(),])", re.IGNORECASE
)
OVER = re.compile(r"\s*over\s*\(([^()]*)", re.IGNORECASE)
LIMIT = re.compile(r"\blimit\s+\d", re.IGNORECASE)
ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "current_time", "localtimestamp")


@dataclass
class _Open:
    """A parenthesis that is not closed yet; ``name`` is the function before it, if any."""

    name: str
    starts: list[int] = field(default_factory=list)


def uses_in_sql(text: str, inside: str = "") -> Iterator[Use]:
    """Every function called in ``text``, innermost first, with its arguments as they are written."""
    stack: list[_Open] = []
    for token in TOKEN.finditer(text):
        mark, name, word = token["mark"], token["name"], token["word"]
        if name or mark == "(":
            stack.append(_Open((name or "").lower(), [token.end()]))
        elif mark == "," and stack:
            stack[-1].starts.append(token.end())
        elif mark == ")" and stack:
            closed = stack.pop()
            if closed.name:
                around = next((one.name for one in reversed(stack) if one.name), inside)
                yield Use(
                    closed.name, _arguments(text, closed.starts, token.start()), around, _order(text, token.end())
                )
        elif word and word.lower() in WITHOUT_PARENTHESES:
            yield Use(word.lower())
    if LIMIT.search(text):
        yield Use("limit", order=Order.GIVEN if ORDERED.search(text) else Order.NONE)


def _arguments(text: str, starts: list[int], end: int) -> tuple[str, ...]:
    ends = [*(start - 1 for start in starts[1:]), end]
    return tuple(argument for start, stop in zip(starts, ends, strict=True) if (argument := text[start:stop].strip()))


def _order(text: str, end: int) -> Order:
    window = OVER.match(text, end)
    return Order.GIVEN if window and ORDERED.search(window[1]) else Order.NONE
