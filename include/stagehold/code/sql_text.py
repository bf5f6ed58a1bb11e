"""What a text of SQL is for, found by its words: a query, a question, a name that is given, or something that lasts;
and texts in which names or arguments are replaced.

Not a parser: what is not known for harmless counts as something that lasts, which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import count, pairwise
from math import isfinite
from types import NoneType
from typing import Any

TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>r?'(?:[^'\\]|\\.|'')*'|r?"(?:[^"\\]|\\.|"")*")
      | `(?P<quoted>(?:[^`]|``)*)`
      | (?P<word>\w+)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
GLOBAL = "global_temp"
TIME_ZONE = "spark.sql.session.timeZone"


class Intent(StrEnum):
    """What becomes of the session, or of the world, when a text is run."""

    QUERY = "query"  # nothing: its rows are computed when they are asked for
    ASKS = "asks"  # nothing, but it has an answer at once
    NAMES = "names"  # a temporary view is made or dropped
    KEEPS = "keeps"  # something is cached, or is no more
    SETS = "sets"  # a setting, a variable, a function, the current schema: queries mean something else afterwards
    WRITES = "writes"  # something that outlives the session


@dataclass(frozen=True)
class Token:
    """A word, a quoted name, a literal text or a mark, and where it stands."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str | None:
        """The word as an identifier, of which case does not count; None for what is none."""
        return self.text.replace("``", "`").lower() if self.kind in ("word", "quoted") else None


@dataclass(frozen=True)
class SqlStatement:
    """A text of SQL and its purpose. ``name`` is that of a view, function or variable, ``body`` the query of a view."""

    intent: Intent
    verb: str
    name: str | None = None
    body: str | None = None
    columns: tuple[str, ...] = ()
    replaces: bool = False
    drops: bool = False


ASKING = frozenset({"SHOW", "DESCRIBE", "DESC", "EXPLAIN", "LIST", "HELP"})
QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
KEEPING = frozenset({"CACHE", "UNCACHE", "CLEAR", "REFRESH"})
SETTING = frozenset({"SET", "RESET", "USE", "DECLARE"})
MAKES = {"VIEW": Intent.NAMES, "FUNCTION": Intent.SETS, "VARIABLE": Intent.SETS}


@lru_cache(maxsize=256)
def tokens(text: str) -> tuple[Token, ...]:
    """The words of a text, without spaces and comments."""
    found = ((match.lastgroup or "", match) for match in TOKEN.finditer(text))
    return tuple(Token(kind, match[kind], match.start(), match.end()) for kind, match in found if kind != "skipped")


def statement(text: str) -> SqlStatement:
    """What ``text`` is for."""
    words = tokens(text)
    first = next((token for token in words if token.text != "("), None)
    verb = first.upper if first else ""
    if verb in QUERIES or not words:
        return SqlStatement(Intent.WRITES if _inserts(words) else Intent.QUERY, verb)
    if verb in ASKING:
        return SqlStatement(Intent.ASKS, verb)
    if verb in KEEPING:
        return _keeping(verb, text, words)
    if verb in SETTING:
        return _setting(verb, words)
    if verb in ("CREATE", "DROP"):
        return _made(verb, text, words) or SqlStatement(Intent.WRITES, verb)
    return SqlStatement(Intent.WRITES, verb)


def _inserts(words: Sequence[Token]) -> bool:
    """Whether what begins like a query goes on to change a table, as WITH and FROM may."""
    for before, token, after in zip(words, words[1:], words[2:], strict=False):
        if token.upper == "INSERT" and after.upper in ("INTO", "OVERWRITE"):
            return True
        if before.text == ")" and (
            (token.upper in ("MERGE", "DELETE") and after.upper in ("INTO", "WITH", "FROM")) or token.upper == "UPDATE"
        ):
            return True
    return False


def _keeping(verb: str, text: str, words: Sequence[Token]) -> SqlStatement:
    """`CACHE TABLE name AS query` makes a view, too."""
    if verb != "CACHE":
        return SqlStatement(Intent.KEEPS, verb)
    begins = next((place for place, token in enumerate(words) if token.upper == "TABLE"), 0) + 1
    name, place = _dotted(words, begins)
    columns, body = _view(text, words, place)
    starts = next((token.start for token in words[place:] if token.upper in ("SELECT", "WITH")), None)
    return SqlStatement(Intent.KEEPS, verb, name, body or (text[starts:] if starts else None), columns)


def _setting(verb: str, words: Sequence[Token]) -> SqlStatement:
    """`SET`, `SET name` and `SET -v` only ask."""
    marks = [token.text for token in words]
    asks = verb == "SET" and "=" not in marks and "TIME" not in [token.upper for token in words[1:2]]
    if verb == "SET" and "TIME" in [token.upper for token in words[1:2]]:
        return SqlStatement(Intent.SETS, verb, TIME_ZONE)
    if verb == "DECLARE":
        declared = next((token.name for token in words[1:] if token.upper not in ("OR", "REPLACE", "VARIABLE")), None)
        return SqlStatement(Intent.SETS, verb, declared)
    named = ".".join(token.text for token in words[1 : marks.index("=")] if token.text != ".") if "=" in marks else None
    return SqlStatement(Intent.ASKS if asks else Intent.SETS, verb, named)


def _made(verb: str, text: str, words: Sequence[Token]) -> SqlStatement | None:
    """A temporary view, function or variable that is made or dropped; None for what lasts."""
    place, options = 1, set[str]()
    while place < len(words) and words[place].upper in ("OR", "REPLACE", "GLOBAL", "TEMP", "TEMPORARY", "LOCAL"):
        options.add(words[place].upper)
        place += 1
    kind = words[place].upper if place < len(words) else ""
    temporary = bool(options & {"TEMP", "TEMPORARY"})
    if kind not in MAKES or not (temporary or (verb == "DROP" and kind == "VIEW")):
        return None
    place += 1
    while place < len(words) and words[place].upper in ("IF", "NOT", "EXISTS"):
        place += 1
    name, place = _dotted(words, place)
    if verb == "CREATE" and "GLOBAL" in options and name:
        name = f"{GLOBAL}.{name.rpartition('.')[2]}"
    drops, replaces = verb == "DROP", "REPLACE" in options
    if kind != "VIEW" or drops:
        return SqlStatement(MAKES[kind], verb, name, replaces=replaces, drops=drops)
    columns, body = _view(text, words, place)
    return SqlStatement(MAKES[kind], verb, name, body, columns, replaces)


def _dotted(words: Sequence[Token], place: int) -> tuple[str | None, int]:
    """A name of one or more parts that begins at a place, and where it ends."""
    parts: list[str] = []
    while place < len(words) and (part := words[place].name) is not None:
        parts.append(part)
        place += 1
        if place >= len(words) or words[place].text != ".":
            break
        place += 1
    return ".".join(parts) or None, place


def _view(text: str, words: Sequence[Token], place: int) -> tuple[tuple[str, ...], str | None]:
    """The names that a view gives its columns, and its query; None for one that is a file."""
    columns: list[str] = []
    depth, begins = 0, False
    for token in words[place:]:
        if token.text in ("(", ")"):
            depth += 1 if token.text == "(" else -1
            begins = depth == 1
        elif depth == 0 and token.upper == "AS":
            return tuple(columns), text[token.end :]
        elif depth == 0 and token.upper == "USING":
            return (), None
        elif depth == 1 and token.text == ",":
            begins = True
        elif begins and token.kind in ("word", "quoted"):
            columns.append(token.text.replace("``", "`"))
            begins = False
    return (), None


def names_in(text: str) -> frozenset[str]:
    """Every identifier in a text, those of two parts whose first is `global_temp` as one."""
    return frozenset(name for name, _, _ in _identifiers(text))


def is_dynamic(text: str) -> bool:
    """Whether a name may come from somewhere else than the text."""
    return any(token.upper == "IDENTIFIER" for token in tokens(text))


def with_functions(text: str, called: Mapping[str, str]) -> str:
    """A text in which functions, by their names in small letters, are called by other names."""
    if not called:
        return text
    words = tokens(text)
    for token, after in reversed(tuple(pairwise(words))):
        if after.text == "(" and (name := called.get(token.name or "")):
            text = f"{text[: token.start]}`{name}`{text[after.start :]}"
    return text


def with_views(text: str, views: Mapping[str, str]) -> str:
    """A query in which names of views, as ``names_in`` gives them, stand for what other names stand for.

    The query's own `WITH` may give the same names to something else, so it stays inside. Names are spelled as the text
    first does, since a session may take their case to matter.
    """
    plain = _without_semicolon(text)
    spelled = {token.name or "": token.text for token in reversed(tokens(plain))}
    for name, start, end in reversed(tuple(_identifiers(plain))):
        if name in views and name.startswith(f"{GLOBAL}."):
            plain = f"{plain[:start]}{_cte_name(name, views, spelled)}{plain[end:]}"
    made = ", ".join(f"{_cte_name(name, views, spelled)} AS (SELECT * FROM {other})" for name, other in views.items())
    return f"WITH {made} ({plain}\n)"


def _cte_name(name: str, views: Mapping[str, str], spelled: Mapping[str, str]) -> str:
    """A global view is known by the last part of its name, unless another view is known by that."""
    last = name.removeprefix(f"{GLOBAL}.")
    if last != name and last in views:
        return f"`{name.replace('.', '_').replace('`', '``')}`"
    return f"`{spelled[last]}`"


def _identifiers(text: str) -> Iterator[tuple[str, int, int]]:
    words, place = tokens(text), 0
    while place < len(words):
        token = words[place]
        name, end, taken = token.name, token.end, 1
        if name == GLOBAL and place + 2 < len(words) and words[place + 1].text == ".":
            name, end, taken = f"{GLOBAL}.{words[place + 2].name}", words[place + 2].end, 3
        if name is not None:
            yield name, token.start, end
        place += taken


# What makes rows of several rows, reads another table, or goes on behind the condition.
BEYOND_ROWS = frozenset(
    {
        *("SELECT", "FROM", "DISTINCT", "OVER", "EXISTS", "JOIN", "USING", "TRANSFORM", "TABLESAMPLE", "LATERAL"),
        *("GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY"),
        *("UNION", "INTERSECT", "EXCEPT", "MINUS", "PIVOT", "UNPIVOT", "VALUES", "MATCH_RECOGNIZE"),
    }
)


def selects_row_by_row(text: str, table: str) -> bool:
    """Whether a query is `SELECT ... FROM table [[AS] name] [WHERE ...]` and no more, as far as its words tell. They do
    not tell an aggregate from a function of one row.
    """
    words, name = _inside_wrapping(tokens(_without_semicolon(text)), table.lower())
    froms = [place for place, word in enumerate(words) if word.upper == "FROM"]
    if len(froms) != 1 or words[0].upper != "SELECT" or "|>" in text:
        return False
    selected, behind = words[1 : froms[0]], list(words[froms[0] + 1 :])
    if not behind or behind.pop(0).name != name:
        return False
    if behind and behind[0].upper == "AS":
        del behind[0]
    if behind and behind[0].upper != "WHERE" and behind[0].name is not None:
        del behind[0]
    if behind and behind[0].upper != "WHERE":
        return False
    return BEYOND_ROWS.isdisjoint(word.upper for word in (*selected, *behind))


def _inside_wrapping(words: Sequence[Token], table: str) -> tuple[Sequence[Token], str]:
    """The query inside of what `with_views` makes of one frame, and the name of the frame in it."""
    shape = [word.text.upper() if word.kind != "quoted" else "" for word in words[:10]]
    wraps = shape == ["WITH", "", "AS", "(", "SELECT", "*", "FROM", table.upper(), ")", "("]
    return (words[10:-1], words[1].text.lower()) if wraps else (words, table)


def _without_semicolon(text: str) -> str:
    words = tokens(text)
    last = words[-1] if words else None
    return text[: last.start] if last and last.text == ";" else text


class NotConstant(TypeError):
    """A value that no text of SQL can stand for; never leaves this package."""


def with_arguments(text: str, arguments: Mapping[str, Any] | Sequence[Any]) -> str:
    """The text of `spark.sql(text, args=...)` with a literal in the place of each marker that has an argument.

    Delta 4.4's parser drops what Spark 4.1 and later hand it for the markers of a text (delta-io/delta#7640), so that
    every `args` ends in UNBOUND_SQL_PARAMETER. This goes when a Delta that we allow overrides
    `parsePlanWithParameters`.

    :raises NotConstant: an argument is no plain Python value.
    """
    named: Mapping[Any, Any] = arguments if isinstance(arguments, Mapping) else dict(enumerate(arguments))
    found, end = list[str](), 0
    for names, starts, stops in markers(tokens(text)):
        given = next(((name, stop) for name, stop in zip(names, stops, strict=True) if name in named), None)
        if given:
            found += [text[end:starts], literal(named[given[0]])]
            end = given[1]
    return "".join((*found, text[end:]))


def markers(words: Sequence[Token]) -> Iterator[tuple[tuple[str | int, ...], int, tuple[int, ...]]]:
    """Each `?` by its place and each `:name` by its name, where it begins and ends; `a::int` and the path in `a:b` are
    none. `:one.two` may be called that, or be a part of what `:one` stands for, so it has both names and ends.
    """
    places = count()
    for at, token in enumerate(words):
        before, after = words[at - 1] if at else None, words[at + 1] if at + 1 < len(words) else None
        if token.text == "?" and token.kind == "mark":
            yield (next(places),), token.start, (token.end,)
        elif token.text == ":" and after and after.kind == "word" and after.start == token.end:
            joined = before is not None and before.end == token.start and before.text not in ("(", ",", "=", "<", ">")
            if not joined:
                dotted = words[at + 2 : at + 4]
                longer = [dotted[1]] if len(dotted) == 2 and dotted[0].text == "." and dotted[1].kind == "word" else []
                names = (*(f"{after.text}.{part.text}" for part in longer), after.text)
                yield names, token.start, (*(part.end for part in longer), after.end)


def literal(value: Any) -> str:
    """A Python value as SQL has it, of the type that pyspark would give it.

    :raises NotConstant: SQL has no literal of its type.
    """
    if isinstance(value, list | tuple):
        return f"array({', '.join(map(literal, value))})"
    if isinstance(value, dict):
        return f"map({', '.join(literal(part) for pair in value.items() for part in pair)})"
    for kind, written in LITERALS.items():
        if isinstance(value, kind):
            return written(value)
    raise NotConstant(type(value).__name__)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _whole(number: int) -> str:
    return f"({number})" if -(2**31) <= number < 2**31 else f"({number}L)"


def _double(number: float) -> str:
    return f"({number!r}D)" if isfinite(number) else f"double('{number}')"


def _interval(span: timedelta) -> str:
    return f"make_dt_interval({span.days}, 0, 0, {span.seconds}.{span.microseconds:06d})"


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotConstant(str(value))
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 10)
    return f"CAST('{value:f}' AS DECIMAL({precision},{scale}))"


# Kinds that are also another come before that one: a switch is a number, and a moment a day.
LITERALS: Mapping[type, Callable[[Any], str]] = {
    NoneType: lambda _: "NULL",
    bool: lambda switch: str(switch).upper(),
    int: _whole,
    float: _double,
    str: _quoted,
    bytes: lambda octets: f"X'{octets.hex()}'",
    bytearray: lambda octets: f"X'{octets.hex()}'",
    Decimal: _decimal,
    datetime: lambda moment: f"TIMESTAMP '{moment.isoformat(sep=' ')}'",
    date: lambda day: f"DATE '{day.isoformat()}'",
    timedelta: _interval,
}
