"""YAML as plain data that still knows on which line each field stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from stagehold.model.kept import Shelf

FieldPath = tuple[str, ...]
# libyaml's, which takes a tenth of the time; a PyYAML that was built without it has none.
Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAPPING = "a mapping of fields"
MOST_NESTED = 1000
MOST_VALUES = 100_000  # of a file, each alias counted with all that it stands for; 500 stages have some 15,000
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # what no text can be stored or shown with


@dataclass(frozen=True)
class Problem:
    """Something that is wrong at a field; its line is looked up when all are known."""

    path: FieldPath
    given: str
    allowed: str


@dataclass(frozen=True)
class Document:
    """What a file says, before anything of it is believed. A second value for the same key is a problem and is left
    out. ``parts`` are what other files say at a field. Fields that a stage has ``taken`` over are written elsewhere.
    """

    file: str
    data: Mapping[str, Any]
    lines: Mapping[FieldPath, int]
    problems: tuple[Problem, ...] = ()
    parts: Mapping[FieldPath, Document] = field(default_factory=dict)
    taken: Mapping[FieldPath, FieldPath] = field(default_factory=dict)

    def origin(self, path: FieldPath) -> FieldPath:
        """Where a field is written that may have been taken over."""
        while around := next((path[:end] for end in range(len(path), 0, -1) if path[:end] in self.taken), None):
            path = (*self.taken[around], *path[len(around) :])
        return path

    def said_by(self, path: FieldPath) -> tuple[Document, FieldPath]:
        """The document that says a field, and what that calls it."""
        for at, part in self.parts.items():
            if path[: len(at)] == at and (path[len(at) :][:1] or ("",))[0] in ("", *part.data):
                return part, path[len(at) :]
        return self, path

    def line(self, path: FieldPath) -> int:
        """Line of ``path``, or of the nearest field around it that was written down."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def read_document(path: Path) -> Document:
    """Read a file; never raises for its content or its absence."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return _unreadable(str(path), 1, _reason(error), "a readable UTF-8 file")
    return parse_document(text, str(path))


def parse_document(text: str, file: str) -> Document:
    """A plan reads each suite anew, so a text that was parsed before is not parsed again."""
    parsed = _PARSED.get((text, file))
    if parsed is None:
        parsed = _parsed(text, file)
        _PARSED.put((text, file), parsed)
    return replace(parsed, data=deepcopy(parsed.data))


_PARSED = Shelf[Document]("texts in YAML")


def _parsed(text: str, file: str) -> Document:
    try:
        return _read(*_composed(text), file)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return _unreadable(file, mark.line + 1 if mark else 1, _reason(error), "YAML")
    except RecursionError:
        return _unreadable(file, 1, "nested too deeply", "YAML")
    except TooManyValues:
        return _unreadable(file, 1, f"more than {MOST_VALUES:,} values, aliases included", "YAML with fewer")


def _read(loader: yaml.SafeLoader, root: yaml.Node | None, file: str) -> Document:
    if not isinstance(root, yaml.MappingNode):
        return _unreadable(file, 1, "nothing" if root is None else root.tag.rpartition(":")[2], MAPPING)
    reader = _Reader(loader)
    data = reader.value(root, ())
    return Document(file, data, reader.lines, tuple(reader.problems))


def _composed(text: str) -> tuple[yaml.SafeLoader, yaml.Node | None]:
    """A text that libyaml refuses is read once more by PyYAML's own reader, which says better why and where. So is one
    that may be nested so deeply that libyaml ends the process.
    """
    if is_shallow(text):
        with suppress(yaml.YAMLError):
            loader = Loader(text)
            return loader, loader.get_single_node()
    loader = yaml.SafeLoader(text)
    return loader, loader.get_single_node()


def is_shallow(text: str) -> bool:
    """Whether no value is nested more deeply than some 2000 times: each level takes a bracket, or a column."""
    return (
        text.count("[") + text.count("{") <= MOST_NESTED and max(map(len, text.splitlines()), default=0) <= MOST_NESTED
    )


def plain_data(text: str) -> Any:
    """What a text says, without its lines.

    :raises yaml.YAMLError: it is no YAML
    :raises RecursionError: it is nested too deeply
    """
    return yaml.load(text, Loader=Loader if is_shallow(text) else yaml.SafeLoader)  # noqa: S506 - both are safe


def plain_document(data: Mapping[str, Any], file: str) -> Document:
    """A document made in Python; it has no lines, so all are 0."""
    return Document(file, data, {path: 0 for path in _paths(data, ())})


class TooManyValues(Exception):
    """A text stands for more values than any file has."""


class _Reader:
    """Turns composed nodes into plain data, keys always as text (``on`` and ``1`` are names too)."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.loader = loader
        self.lines: dict[FieldPath, int] = {}
        self.problems: list[Problem] = []
        self.around: list[yaml.Node] = []
        self.values = 0

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        """:raises TooManyValues: aliases of aliases can make a short text endless."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise TooManyValues
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if any(node is outer for outer in self.around):
            return self.refuse(path, "an alias of what it stands in", "a value that does not contain itself")
        self.around.append(node)
        try:
            return self.mapping(node, path) if isinstance(node, yaml.MappingNode) else self.sequence(node, path)
        finally:
            self.around.pop()

    def scalar(self, node: yaml.ScalarNode, path: FieldPath) -> Any:
        try:
            found = self.loader.construct_object(node)
            if isinstance(found, str) and HALF_CHARACTER.search(found):
                return self.refuse(path, repr(found), "text, without halves of characters")
            return found
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            return self.refuse(path, _reason(error), "a plain value, in quotes if it is text")
        except (LookupError, AttributeError):  # what the loader makes of a tag whose text is none of its kind
            return self.refuse(path, f"{node.value!r} as {node.tag}", "a plain value, in quotes if it is text")

    def sequence(self, node: yaml.Node, path: FieldPath) -> list[Any]:
        return [self.value(item, (*path, str(index))) for index, item in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, item in node.value:
            place = (*path, str(key.value)) if isinstance(key, yaml.ScalarNode) else path
            line = key.start_mark.line + 1
            if place == path or HALF_CHARACTER.search(place[-1]):
                self.refuse(path, f"a key on line {line} that is no text", "text as key")
            elif place[-1] in data:
                self.refuse(place, f"{place[-1]!r} again on line {line}", "each name once")
            else:
                self.lines[place] = line
                data[place[-1]] = self.value(item, place)
        return data

    def refuse(self, path: FieldPath, given: str, allowed: str) -> None:
        self.problems.append(Problem(path, given, allowed))


def _unreadable(file: str, line: int, given: str, allowed: str) -> Document:
    return Document(file, {}, {(): line}, (Problem((), given, allowed),))


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return getattr(error, "strerror", None) or str(error).splitlines()[0]


def _paths(data: object, path: FieldPath) -> Iterator[FieldPath]:
    yield path
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list | tuple) else ()
    for key, item in items:
        yield from _paths(item, (*path, str(key)))
