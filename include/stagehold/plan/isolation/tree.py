"""A plan as Spark prints it, read back as a tree, and the few forms of expressions that tell where a key goes; and what
a plan does not tell of the frames that a function was given.

The text is no language: names and literals stand in it as they are, and nothing quotes them. What does not have the
expected form is `Unreadable`; what could have it by chance has to be kept out by asking `is_plain` of every name and
literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

ANALYZED, OPTIMIZED = "== Analyzed Logical Plan ==\n", "\n== Optimized Logical Plan =="
LINE = re.compile(r"(?P<indent>(?:(?:[: ] {2})*[:+]- )?)(?P<name>[A-Za-z]\w*)(?: (?P<text>.*))?")
STEP = 3  # characters by which a child is indented
ATTRIBUTE = re.compile(r"(?P<name>[^#]*)#(?P<id>\d+)L?")
ALIAS = re.compile(r"(?P<expression>.*) AS (?P<name>[^#]*)#(?P<id>\d+)L?")
CALL = re.compile(r"(?P<function>cast|coalesce)\((?P<inside>.*)\)")
NOT_NULL = re.compile(r"(?:isnotnull\(|atleastnnonnulls\((?P<least>\d+), )(?P<inside>.*)\)")
RESULT = re.compile(r"\)#(?P<id>\d+)")
FUNCTION = re.compile(r"[^ ,(\[]*$")
CLOSING = {"(": ")", "[": "]"}


class Unreadable(Exception):
    """The text does not have the expected form; never leaves this package."""


@dataclass
class Node:
    """An operator. ``inner`` are the plans of the subqueries in its expressions."""

    name: str
    text: str
    children: list[Node] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)

    @property
    def arguments(self) -> tuple[str, ...]:
        return split(self.text)

    def __str__(self) -> str:
        return f"{self.name} {self.text}".strip()


@dataclass(frozen=True)
class Named:
    """An element of a list of expressions: the attribute that it makes or passes on, and what that is made of."""

    id: int
    name: str
    expression: str


@dataclass(frozen=True)
class Operand:
    """An attribute, by the name it has here, and the types that it is cast to, the first one first.

    Who takes it for the attribute has to know its name: ``-key#1`` looks like one, too.
    """

    id: int
    name: str
    casts: tuple[str, ...] = ()


def analyzed(explained: str) -> str:
    """The analysed plan in what `explain(extended)` gives, without its first line, which is the schema."""
    begin, end = explained.find(ANALYZED), explained.find(OPTIMIZED)
    if not 0 <= begin < end:
        raise Unreadable
    return explained[begin + len(ANALYZED) : end].partition("\n")[2]


def parse_tree(text: str) -> Node:
    """A child is one step further right than its parent, and the plan of a subquery two."""
    lines = [line for line in text.split("\n") if line]
    path: list[tuple[int, Node]] = []
    for line in lines:
        depth, node = _read_line(line)
        while path and path[-1][0] >= depth:
            path.pop()
        if path:
            above, parent = path[-1]
            _below(parent, depth - above).append(node)
        elif depth or line is not lines[0]:
            raise Unreadable
        path.append((depth, node))
    if not path:
        raise Unreadable
    return path[0][1]


def _read_line(line: str) -> tuple[int, Node]:
    """A node without anything below it yet, and how many steps it is to the right."""
    found = LINE.fullmatch(line)
    if found is None:
        raise Unreadable
    return len(found["indent"]) // STEP, Node(found["name"], found["text"] or "")


def _below(parent: Node, steps: int) -> list[Node]:
    match steps:
        case 1:
            return parent.children
        case 2:
            return parent.inner
    raise Unreadable


def split(text: str, separator: str = ", ") -> tuple[str, ...]:
    """``text`` cut where the separator is outside of all brackets."""
    parts, start, open_ = list[str](), 0, list[str]()
    for place, character in enumerate(text):
        if character in CLOSING:
            open_.append(CLOSING[character])
        elif character in CLOSING.values() and (not open_ or open_.pop() != character):
            raise Unreadable
        elif not open_ and place >= start and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
    if open_:
        raise Unreadable
    return (*parts, text[start:]) if text else ()


def elements(text: str) -> tuple[str, ...]:
    """The elements of a list in brackets."""
    if not (text.startswith("[") and text.endswith("]")):
        raise Unreadable
    return split(text[1:-1])


def named(element: str) -> Named:
    """An element of a `Project`: ``name#1``, or ``expression AS name#1``."""
    if found := ATTRIBUTE.fullmatch(element):
        return Named(int(found["id"]), found["name"], element)
    if found := ALIAS.fullmatch(element):
        return Named(int(found["id"]), found["name"], found["expression"])
    raise Unreadable


def operands(expression: str) -> tuple[Operand, ...]:
    """The attributes of which the expression is the first that is not null; none if it is anything else."""
    if found := ATTRIBUTE.fullmatch(expression):
        return (Operand(int(found["id"]), found["name"]),)
    found = CALL.fullmatch(expression)
    if found is None or not is_balanced(found["inside"]):
        return ()
    if found["function"] == "coalesce":
        parts = [operands(part) for part in split(found["inside"])]
        return tuple(operand for part in parts for operand in part) if all(parts) else ()
    inside, _, kind = found["inside"].rpartition(" as ")
    return tuple(replace(operand, casts=(*operand.casts, kind)) for operand in operands(inside))


def conjuncts(condition: str) -> Iterator[str]:
    """Everything that has to be true for the condition to be."""
    inside = _unwrapped(condition)
    parts = split(inside, " AND ")
    if len(parts) < 2:
        yield inside
        return
    for part in parts:
        yield from conjuncts(part)


def equality(condition: str) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]] | None:
    """Both sides of a comparison and ``=`` or ``<=>``."""
    for sign in ("=", "<=>"):
        sides = split(condition, f" {sign} ")
        if len(sides) == 2:
            return operands(sides[0]), sign, operands(sides[1])
    return None


def not_null(condition: str) -> tuple[int, ...]:
    """The attributes that are not null where the condition is true."""
    found = NOT_NULL.fullmatch(condition)
    attributes = (
        [ATTRIBUTE.fullmatch(part) for part in split(found["inside"])] if found and is_balanced(found["inside"]) else []
    )
    if found is None or (found["least"] and int(found["least"]) != len(attributes)):
        return ()
    return tuple(int(attribute["id"]) for attribute in attributes if attribute)


def results(text: str) -> Iterator[tuple[int, int]]:
    """Where something in parentheses ends that has an id, and that id:
    a column's name may end so, or a call in Python.
    """
    return ((found.start(), int(found["id"])) for found in RESULT.finditer(text))


def function_before(text: str, end: int) -> str:
    """The name of the function whose call ends with the parenthesis at ``end``."""
    depth = 0
    for place in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if not depth:
            return FUNCTION.search(text[:place])[0]  # type: ignore[index]  # it fits anything, if only nothing
    raise Unreadable


def is_balanced(text: str) -> bool:
    try:
        return bool(split(text)) or not text
    except Unreadable:
        return False


def is_plain(text: str) -> bool:
    """Whether a name or a literal can stand in a plan without looking like a part of it."""
    return "#" not in text and len(text.splitlines()) < 2 and is_balanced(text)


def _unwrapped(condition: str) -> str:
    """The text without the parentheses around all of it."""
    inside = condition[1:-1]
    return (
        _unwrapped(inside)
        if condition.startswith("(") and condition.endswith(")") and is_balanced(inside)
        else condition
    )


MARK = "_stagehold_input_"


@dataclass(frozen=True)
class GivenInput:
    """A frame that the function was given, under the alias `mark`.

    ``key`` are the columns it is exchanged by; empty if it holds the partitions' rows without being keyed, and None if
    it is the same whatever partitions are computed. ``types`` are those columns' types as far as they are known.
    """

    stage: str
    key: tuple[str, ...] | None
    types: Mapping[str, str] = field(default_factory=dict)


def mark(place: int) -> str:
    """The alias of the input at that place."""
    return f"{MARK}{place}"
