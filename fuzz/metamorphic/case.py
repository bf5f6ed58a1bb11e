"""One case: a small pipeline of which the middle is made up, rendered as a module,
a declaration and one DuckDB query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fuzz.metamorphic.algebra import Given, Operator, Script
from fuzz.metamorphic.habits.habit import Habit, habits_of
from fuzz.metamorphic.source_data import FILES, LEFT, RIGHT, SMALL, SourceTable

MAX_PARALLELISM = 128
SOURCES = {"left": LEFT, "right": RIGHT, "small": SMALL}
HEAD = """\
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Observation, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from stagehold import stage


def beside(name):
    return str(Path(__file__).with_name(name))
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
class Flow:
    """How outputs go on to their readers, by type, and into how many shares a stage's partitions are cut at most."""

    before: str = "pipelined"
    first: str | None = None
    tasks: int = 1


@dataclass(frozen=True)
class Case:
    """``keys`` are the columns that each keyed input is exchanged by; ``sources`` are the functions of source stages
    that do something, and ``before`` that of a stage which makes the left rows, if there is one: they are given the
    rows of one file, and give rows of the same columns.
    """

    name: str
    keys: Mapping[str, tuple[str, ...]]
    first: Operator
    key: tuple[str, ...]
    before: Operator | None = None
    second: Second | None = None
    trap: Trap | None = None
    sources: Mapping[str, Operator] = field(default_factory=dict)
    flow: Flow = Flow()

    @property
    def trees(self) -> dict[str, Operator]:
        """What is made up, by its place: how its stage reads."""
        found = {f"source {side}": tree for side, tree in self.sources.items() if side in self.inputs}
        found |= {"forward of files": self.before} if self.before and self._prepares else {}
        found["keyed"] = self.first
        return found | ({f"{self.second.exchange} second": self.second.tree} if self.second else {})

    @property
    def habits(self) -> tuple[tuple[str, Habit], ...]:
        """With the place of each."""
        return tuple((place, habit) for place, tree in self.trees.items() for habit in habits_of(tree))

    def stage_at(self, place: str, variant: Variant) -> str:
        """The stage whose function is made up in this place."""
        kind, _, rest = place.partition(" ")
        if kind == "source":
            return SOURCES[rest].name
        return variant.name({"keyed": "first", "forward of files": "before"}.get(place, "second"))

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
        for tree in filter(None, (*self.sources.values(), self.before, self.first, self.second and self.second.tree)):
            tree.check()
        for side, tree in (*self.sources.items(), *([("left", self.before)] if self.before else [])):
            assert tree.columns == SOURCES[side].columns
        assert set(self.key) <= set(self.first.names)
        if self.second:
            assert all(one.given == self.first.columns for one in _leaves(self.second.tree))
            assert set(self.second.reads_by) <= set(self.first.names)
            assert set(self.second.key) <= set(self.second.tree.names)

    def sql(self, folder: Path) -> str:
        """What the last stage gives, in DuckDB's words."""
        scans = {name: self._scan(name, folder) for name in SOURCES}
        first = self.first.sql(scans)
        return self.second.tree.sql({"first": first}) if self.second else first

    def _scan(self, side: str, folder: Path) -> str:
        """What the first stage reads of one side: where something was made of it, file by file."""
        made = [tree for tree in (self.sources.get(side), self.before if side == "left" else None) if tree]
        if not made:
            return SOURCES[side].scan(folder)
        files = []
        for number in range(FILES):
            text = SOURCES[side].scan(folder, number)
            for tree in made:
                text = tree.sql({side: text})
            files.append(f"SELECT * FROM ({text})")
        return " UNION ALL ".join(files)

    def module(self, variants: tuple[Variant, ...]) -> str:
        sources = (self._source_function(side) for side in self.inputs)
        made = (text for variant in variants for text in self._functions(variant))
        return "\n\n".join((HEAD, *sources, *made))

    def _source_function(self, side: str) -> str:
        name = SOURCES[side].name
        if side in self.sources:
            return _stage_function(name, self.sources[side], {side: "source"})
        return _function(name, ("source",), ["return source"])

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
            table.name: {"source": table.spec(folder), "output": {"type": "blocking"}, **self._tasks(FILES)}
            for table in self.tables
        }
        for variant in variants:
            found |= self._stages(variant)
        return {name: {"job": f"{self.name}:{name}", **fields} for name, fields in found.items()}

    def _tasks(self, partitions: int) -> dict[str, int]:
        tasks = min(self.flow.tasks, partitions)
        return {"max_parallel_tasks": tasks} if tasks > 1 else {}

    def _stages(self, variant: Variant) -> dict[str, Any]:
        reads = self._reads(variant)
        keyed = {"partitions": variant.partitions, "max_parallelism": MAX_PARALLELISM}
        found: dict[str, Any] = {}
        if self._prepares:
            found[variant.name("before")] = {"inputs": {LEFT.name: "forward"}, "output": {"type": self.flow.before}}
        inputs = {
            reads[name]: {"exchange": "keyed", "key": list(key)} for name, key in self.keys.items() if name in reads
        }
        inputs |= {reads["small"]: {"exchange": "broadcast"}} if "small" in self.inputs else {}
        tasks = self._tasks(variant.partitions) if self._is_cut_alike else {}
        found[variant.name("first")] = {"inputs": inputs, "key": list(self.key), **keyed, **tasks}
        if self.second:
            found[variant.name("first")] |= {"output": {"type": self.flow.first}} if self.flow.first else {}
            edge = {"exchange": self.second.exchange} | (
                {"key": list(self.second.reads_by)} if self.second.reads_by else {}
            )
            key = {"key": list(self.second.key), **keyed} if self.second.key else {}
            found[variant.name("second")] = {"inputs": {variant.name("first"): edge}, **key}
        return found

    @property
    def _is_cut_alike(self) -> bool:
        """Whether shares of the first stage need nothing of others: all that runs with it is read forward."""
        alone = not self._prepares or self.flow.before == "blocking"
        flows = self.flow.first in ("pipelined", "pipelined_bounded")
        return alone and (self.second is None or self.second.exchange == "forward" or not flows)

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
