"""Tables and files that a text of SQL reads, and views that it makes; found by its words, without a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

UNKNOWN = "\0"  # stands in a text for a part that is only known when it runs
TOKEN = re.compile(
    rf"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|(?:`[^`]*`|[\w.${{}}:{UNKNOWN}])+|[(),;]",
    re.DOTALL,
)
NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
OF_FILES = frozenset({"parquet", "csv", "json", "orc", "text", "binaryfile", "avro", "xml"})  # FROM csv.`path`
OF_TABLES = frozenset({"delta", "iceberg"})
NO_TABLE = frozenset({"select", "values", "lateral", "table", "with", "identifier", "unnest", "only"})
ENDS_A_LIST = frozenset(
    {
        "where",
        "group",
        "order",
        "having",
        "limit",
        "union",
        "on",
        "using",
        "set",
        "select",
        "window",
        "lateral",
        "qualify",
    }
)
VIEW = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\s+view\s+(?:if\s+not\s+exists\s+)?([\w.`\0]+)"
    r"|\bcache\s+(?:lazy\s+)?table\s+([\w`]+)\s+(?:options\s*\([^)]*\)\s*)?(?:as|select)\b",
    re.IGNORECASE,
)
CTE = re.compile(r"(?:\bwith\s+(?:recursive\s+)?|\)\s*,\s*)([\w`]+)\s*(?:\([^()]*\)\s*)?as\s*\(", re.IGNORECASE)


# Its name, None where the text does not show it; whether it is a file; and where it stands.
NamedTable = tuple[str | None, bool, int]


class _Group:
    """Words between two parentheses, or of the whole text."""

    def __init__(self, *, is_query: bool = False) -> None:
        self.is_query, self.lists_tables = is_query, False
        self.words: list[str] = []


def views_in(text: str) -> Iterator[str]:
    """Names of views, temporary ones and those of one statement; lower-case, as Spark compares them."""
    bare = _without_comments(text)
    for match in (*VIEW.finditer(bare), *CTE.finditer(bare)):
        name = next(group for group in match.groups() if group)
        yield view_name(name)


def view_name(text: str) -> str:
    """A view's name as all its spellings are compared: without quotes, in lower case."""
    return UNKNOWN if UNKNOWN in text else ".".join(_parts(text)).lower()


def tables_in(text: str) -> Iterator[NamedTable]:
    """What the text reads, views included: what stands after FROM or JOIN."""
    tokens = [match for match in TOKEN.finditer(text) if not match[0].startswith(("--", "/*"))]
    groups = [_Group(is_query=True)]
    for index, token in enumerate(tokens):
        word = token[0].lower()
        group = groups[-1]
        if word == "(":
            groups.append(_Group())
        elif word == ")" and len(groups) > 1:
            groups.pop()
        elif word == ";":
            groups = [_Group(is_query=True)]
        elif _names_tables(word, group):
            yield from _named(tokens, index + 1)
        _remember(word, group)


def _names_tables(word: str, group: _Group) -> bool:
    """Whether a table's name follows: FROM of a query, and not of EXTRACT(DAY FROM x); JOIN; a comma among tables."""
    before = group.words[-1] if group.words else ""
    if word == "from":
        return group.is_query and before not in ("distinct", "delete") and group.words[:1] != ["show"]
    if word == "using":
        return group.words[:1] == ["merge"]
    return word == "join" or (word == "," and group.lists_tables)


def _remember(word: str, group: _Group) -> None:
    if word == "select":
        group.is_query = True
    if word == "from":
        group.lists_tables = True
    elif word in ENDS_A_LIST or word == "join":
        group.lists_tables = False
    group.words.append(word)


def _named(tokens: Sequence[re.Match[str]], index: int) -> Iterator[NamedTable]:
    if index >= len(tokens):
        return
    token, after = tokens[index], tokens[index + 1][0] if index + 1 < len(tokens) else ""
    text = token[0]
    if after == "(" and tokens[index + 1].start() == token.end():
        return  # a function that makes rows
    if text[0] in "(),;'\"" or text.lower() in NO_TABLE:
        return
    if UNKNOWN in text or text[0] in "{:":
        yield None, False, token.start()
        return
    first, *rest = _parts(text)
    if rest and first.lower() in OF_FILES | OF_TABLES and "`" in text:
        yield ".".join(rest), first.lower() in OF_FILES, token.start()
    else:
        yield ".".join((first, *rest)), False, token.start()


def _parts(name: str) -> list[str]:
    """A dotted name without its quotes."""
    return [match[1] if match[1] is not None else match[2] for match in NAME_PART.finditer(name)] or [name]


def _without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
