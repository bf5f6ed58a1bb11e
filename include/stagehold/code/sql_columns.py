"""The columns that a query selects, as far as its words show how they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagehold.code.sql_text import Token, tokens

# What ends the list that a query selects; and what stands in an expression where a word may not be its name.
BEHIND_SELECTED = frozenset(
    {
        *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW"),
        *("QUALIFY", "LATERAL", "UNION", "INTERSECT", "EXCEPT", "MINUS"),
    }
)
WITHIN = frozenset({"AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "DIV", "OVER", "COLLATE"})
OPERATORS = frozenset({"+", "-", "*", "/", "%", "|", "&", "^", "<", ">", "=", "!"})
# Functions whose columns have names of their own.
NAMED = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack"),
        *("json_tuple", "window", "session_window"),
    }
)
CASTING = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary"),
        *("date", "timestamp"),
    }
)


def selected_columns(text: str) -> Iterator[tuple[str | None, str, int]]:
    """Columns of a query whose names it shows: given ones, and those that Spark makes of a call or an operation. Stars,
    and whatever may have another name, are left out. Of each: its name if the query gives one, else the expression that
    Spark calls it by; and where it begins.
    """
    for item in _selected(tokens(text)):
        expression, name = text[item[0].start : item[-1].end], _given_name(item)
        if name is not None or _is_computed(item):
            yield name, expression, item[0].start


def _selected(words: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The parts of the list behind the first `SELECT` that stands outside of all brackets."""
    item, depth, selects = list[Token](), 0, False
    for token, after in zip(words, (*words[1:], None), strict=True):
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "mark" else 0
        if depth == 0 and token.upper == "SELECT" and not selects:
            selects = True
        elif depth == 0 and token.upper in BEHIND_SELECTED and not (token.upper == "WINDOW" and _opens(after)):
            break
        elif selects and depth == 0 and token.text == "," and token.kind == "mark":
            yield from [item] if item else []
            item = []
        elif selects and not (not item and token.upper in ("DISTINCT", "ALL")):
            item.append(token)
    yield from [item] if item and selects else []


def _opens(token: Token | None) -> bool:
    return token is not None and token.text == "(" and token.kind == "mark"


def _given_name(item: Sequence[Token]) -> str | None:
    """The name behind an expression, with or without `AS`, or that of a plain column; None for none."""
    last, before = item[-1], item[-2] if len(item) > 1 else None
    if last.kind not in ("word", "quoted") or last.upper == "END":
        return None
    if before is None:
        return last.text.replace("``", "`") if last.kind == "quoted" else None
    behind_one = before.kind in ("text", "quoted") or before.text in (")", "]")
    if before.upper in WITHIN or not (behind_one or before.kind == "word"):
        return None
    return last.text.replace("``", "`")


def _is_computed(item: Sequence[Token]) -> bool:
    """Whether Spark calls a nameless column by its expression, with brackets or spaces: what it calls otherwise, or may
    do, is not computed here.
    """
    first = item[0]
    is_star = any(
        token.text == "*" and token.kind == "mark" and (place == 0 or item[place - 1].text == ".")
        for place, token in enumerate(item)
    )
    calls = [
        place for place, token in enumerate(item[:-1]) if token.kind in ("word", "quoted") and _opens(item[place + 1])
    ]
    is_number = len(item) == 2 and item[0].text == "-" and item[1].text[:1].isdigit()
    if (
        is_star
        or is_number
        or (calls[:1] == [0] and (first.name in NAMED or first.upper in ("TRANSFORM", "IDENTIFIER")))
        or _is_plain_cast(item)
    ):
        return False
    operates = any(token.kind == "mark" and token.text in OPERATORS for token in item)
    return bool(calls) or operates or first.upper in ("CASE", "NOT") or any(token.upper in WITHIN for token in item)


def _is_plain_cast(item: Sequence[Token]) -> bool:
    """Whether it is a column as another type, which keeps its name: `CAST(a AS date)`, or `date(a)`."""
    inside = [token.upper for token in item[2:]]
    if item[0].upper in ("CAST", "TRY_CAST") and "AS" in inside:
        column = item[2 : 2 + inside.index("AS")]
    elif item[0].name in CASTING:
        column = item[2:-1]
    else:
        return False
    return all(token.name is not None or token.text == "." for token in column)
