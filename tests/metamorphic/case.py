"""One case: a small pipeline of which the middle is made up, rendered as a module,
a declaration and one DuckDB query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.metamorphic.algebra import Given, Operator, Script
from tests.metamorphic.source_data import LEFT, RIGHT, SMALL, SourceTable

MAX_PARALLELISM = 128
SOURCES = {"left": LEFT, "right": RIGHT, "small": SMALL}
HEAD = """\
import pandas as pd
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from stagehold import stage
"""


class Trap(StrEnum):
    """What is wrong with the output's declared key: rows leave the partition that they were computed for."""

    NULL_SIDE = "of the side that may have no row"
    SHIFTED = "computed from the key"
    OTHER = "another column"
    FINER = "the key and another column"


@dataclass(frozen=True)
class Second:
    """The stage after the made-up one; its tree reads what is given as `first`."""

    exchange: str
    tree: Operator
    reads_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One way to run a case. Its stages have names that begin with its letter."""

    letter: str
    partitions: int
    waves_of_one: bool

    def name(self, stage: str) -> str:
        return f"{self.letter}_{stage}"

    def __str__(self) -> str:
        return f"{self.partitions} partitions {'in waves of one' if self.waves_of_one else 'in one wave'}"


@dataclass(frozen=True)
class Case:
    """``keys`` are the columns that each keyed input is exchanged by;
    ``before`` makes the left rows, unstored, if there is one.
    """

    name: str
    keys: Mapping[str, tuple[str, ...]]
    first: Operator
    key: tuple[str, ...]
    before: Operator | None = None
    second: Second | None = None
    trap: Trap | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the first stage reads."""
        read = {one.name for one in _leaves(self.first)}
        return tuple(name for name in SOURCES if name in read)

    @property
    def loose(self) -> bool:
        return self.first.loose or (self.second is not None and self.second.tree.loose)

    @property
    def comparable(self) -> bool:
        """Whether there is one answer whatever the number of partitions, which DuckDB knows.
        A trap may hold no row of these.
        """
        return not self.loose

    @property
    def _prepares(self) -> bool:
        return self.before is not None and "left" in self.inputs

    @property
    def last(self) -> str:
        return "second" if self.second else "first"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the last stage."""
        return self.second.tree.names if self.second else self.first.names

    def check(self) -> None:
        for tree in filter(None, (self.before, self.first, self.second and self.second.tree)):
            tree.check()
        assert set(self.key) <= set(self.first.names)
        if self.second:
            assert all(one.given == self.first.columns for one in _leaves(self.second.tree))
            assert set(self.second.reads_by) <= set(self.first.names)
            assert set(self.second.key) <= set(self.second.tree.names)

    def sql(self, folder: Path) -> str:
        """What the last stage gives, in DuckDB's words."""
        scans = {name: table.scan(folder) for name, table in SOURCES.items()}
        if self.before:
            scans["left"] = self.before.sql(scans)
        first = self.first.sql(scans)
        return self.second.tree.sql({"first": first}) if self.second else first

    def module(self, variants: tuple[Variant, ...]) -> str:
        sources = (_function(table.name, ("source",), ["return source"]) for table in self.tables)
        made = (text for variant in variants for text in self._functions(variant))
        return "\n\n".join((HEAD, *sources, *made))

    def text(self) -> str:
        """What somebody needs to see to understand it."""
        variants = (Variant("x", 5, False),)
        return f"{self.module(variants)}\n{self.stages(variants, Path('rows'))}\n{self.sql(Path('rows'))}"

    @property
    def tables(self) -> tuple[SourceTable, ...]:
        return tuple(SOURCES[name] for name in self.inputs)

    def stages(self, variants: tuple[Variant, ...], folder: Path) -> dict[str, Any]:
        """The declaration's stages."""
        found: dict[str, Any] = {
            table.name: {"source": table.spec(folder), "output": {"type": "blocking"}} for table in self.tables
        }
        for variant in variants:
            found |= self._stages(variant)
        return {name: {"job": f"{self.name}:{name}", **fields} for name, fields in found.items()}

    def _stages(self, variant: Variant) -> dict[str, Any]:
        reads = self._reads(variant)
        keyed = {"partitions": variant.partitions, "max_parallelism": MAX_PARALLELISM}
        found: dict[str, Any] = {}
        if self._prepares:
            found[variant.name("before")] = {"inputs": {LEFT.name: "forward"}, "output": {"type": "pipelined"}}
        inputs = {
            reads[name]: {"exchange": "keyed", "key": list(key)} for name, key in self.keys.items() if name in reads
        }
        inputs |= {reads["small"]: {"exchange": "broadcast"}} if "small" in self.inputs else {}
        found[variant.name("first")] = {"inputs": inputs, "key": list(self.key), **keyed}
        if self.second:
            edge = {"exchange": self.second.exchange} | (
                {"key": list(self.second.reads_by)} if self.second.reads_by else {}
            )
            key = {"key": list(self.second.key), **keyed} if self.second.key else {}
            found[variant.name("second")] = {"inputs": {variant.name("first"): edge}, **key}
        return found

    def _functions(self, variant: Variant) -> list[str]:
        reads = self._reads(variant)
        found = []
        if self._prepares:
            assert self.before is not None
            found.append(_stage_function(variant.name("before"), self.before, {"left": LEFT.name}))
        found.append(_stage_function(variant.name("first"), self.first, reads))
        if self.second:
            found.append(_stage_function(variant.name("second"), self.second.tree, {"first": variant.name("first")}))
        return found

    def _reads(self, variant: Variant) -> dict[str, str]:
        """The stage behind each input of the first stage, which is the parameter's name, too."""
        names = {name: SOURCES[name].name for name in self.inputs}
        return names | ({"left": variant.name("before")} if self._prepares else {})


def _leaves(tree: Operator) -> Iterator[Given]:
    if isinstance(tree, Given):
        yield tree
    for one in tree.inputs:
        yield from _leaves(one)


def _stage_function(name: str, tree: Operator, parameters: Mapping[str, str]) -> str:
    script = Script(parameters)
    made = tree.spark(script)
    return _function(name, tuple(parameters.values()), [*script.lines, f"return {made}"])


def _function(name: str, parameters: tuple[str, ...], lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"@stage\ndef {name}(ctx, {', '.join(parameters)}):\n{body}\n"
