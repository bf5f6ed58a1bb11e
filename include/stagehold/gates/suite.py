"""A gate's suite: what a stage's partitions have to meet, in Great Expectations' words, and how much each matters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.gates.earlier_figures import PARAMETER, EarlierFigures, figures_named
from stagehold.model.choices import Severity
from stagehold.model.keys.compute_key import digest
from stagehold.plan.split.regions import sources_within, stage_regions
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.output_settings import CommitterKind
from stagehold.spec.settings.run_settings import Failover

# Facts of a partition itself. Each is judged like a column with one value. No column can have such a name.
FIGURES = ("partition(rows)", "partition(bytes)", "partition(seconds)")
OF_TABLES = "expect_table_"  # how names of expectations begin that see no value of a row
DOMAIN = ("column", "column_A", "column_B", "column_list")  # the arguments that name columns


class OnFail(StrEnum):
    """What becomes of a partition that does not meet an expectation."""

    BLOCK = "block"  # nobody reads the partition
    WARN = "warn"  # people are told, and the partition is published
    QUARANTINE = "quarantine"  # unexpected rows are set aside, and the others are published


class Scope(StrEnum):
    """Which rows an expectation judges together."""

    PARTITION = "partition"
    STAGE = "stage"  # all of the stage's output for the interval


@dataclass(frozen=True)
class RowLimit:
    """How many of a partition's rows may be set aside: a number of rows, or a percentage."""

    amount: float
    of_hundred: bool = False

    def __str__(self) -> str:
        return f"{self.amount:g}%" if self.of_hundred else f"{self.amount:g}"

    def allows(self, rows: int, of_all: int) -> bool:
        return rows <= (self.amount * of_all / 100 if self.of_hundred else self.amount)


MOST_ROWS = 20  # of a partition that a verdict shows


@dataclass(frozen=True)
class Samples:
    """What verdicts show of unexpected values: at most ``rows`` rows of a partition, each with the columns that are its
    ``keys``. Of columns that are ``mask``ed they show only how many values are unexpected.
    """

    rows: int = MOST_ROWS
    keys: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()

    def hides(self, expectation: Expectation) -> tuple[str, ...]:
        """The masked columns whose values the result of an expectation may have: those that the expectation names
        anywhere, or all of them if nobody can say which columns it reads, as of a query.
        """
        if not self.mask or expectation.is_of_figures:
            return ()
        if not expectation.columns and not expectation.type.startswith(OF_TABLES):
            return self.mask
        return tuple(name for name in self.mask if _mentions(expectation, name))


def within_one(one: str, other: str) -> bool:
    """Whether one of two columns is the other, or a part of it. Spark ignores case in names."""
    long, short = sorted((one.lower(), other.lower()), key=len, reverse=True)
    return long == short or long.startswith(f"{short}.")


def _mentions(expectation: Expectation, column: str) -> bool:
    if any(within_one(column, one) for one in expectation.columns):
        return True
    named = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    return named.search(str(expectation.kwargs)) is not None


@dataclass(frozen=True)
class Expectation:
    """An expectation; ``kwargs`` are Great Expectations' own, ``line`` is its line in the file. If a partition does not
    meet an expectation that ``sets_aside``, the rows that are to blame are taken out of it. ``scope`` says which rows
    are judged together.
    """

    type: str
    kwargs: Mapping[str, Any]
    severity: Severity = Severity.CRITICAL
    line: int = 0
    sets_aside: bool = False
    scope: Scope = Scope.PARTITION

    def __str__(self) -> str:
        """The expectation in words, short enough for one line of an error."""
        about = [str(text) for name, text in self.kwargs.items() if name in DOMAIN]
        limits = [f"{name}={_in_words(text)}" for name, text in self.kwargs.items() if name not in DOMAIN]
        return f"{self.type}({', '.join(about + limits)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expectation names."""
        named = (self.kwargs.get(argument, ()) for argument in DOMAIN)
        names = [name for given in named for name in (given if isinstance(given, list | tuple) else (given,))]
        return tuple(name for name in names if isinstance(name, str))  # others are parameters

    @property
    def is_of_figures(self) -> bool:
        """Whether the expectation judges facts of the partition itself, and no rows."""
        return bool(self.columns) and set(self.columns) <= set(FIGURES)

    @cached_property
    def earlier_figures(self) -> tuple[str, ...]:
        """Names of the figures of earlier intervals without which the expectation cannot be judged."""
        return tuple(dict.fromkeys(name for names in figures_named(self.kwargs).values() for name in names))


@dataclass(frozen=True)
class Suite:
    """The expectations of one gate, in the order of the file. ``modules`` are modules of the project that define some
    of them, and ``module_lines`` are their lines in the file; ``code`` changes when these modules do. ``samples``, on
    ``samples_line``, says which unexpected values verdicts show. A `{$PARAMETER: name}` names one of ``parameters``, or
    a figure of ``earlier`` intervals. A partition of which more rows than ``max_quarantined`` are set aside is blocked.
    """

    name: str
    expectations: tuple[Expectation, ...]
    file: str = ""
    modules: tuple[str, ...] = ()
    code: str = ""
    samples: Samples = field(default_factory=Samples)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    max_quarantined: RowLimit | None = None
    module_lines: Mapping[str, int] = field(default_factory=dict)
    samples_line: int = 0
    earlier: EarlierFigures = field(default_factory=EarlierFigures)

    @property
    def setting_aside(self) -> tuple[Expectation, ...]:
        return tuple(expectation for expectation in self.expectations if expectation.sets_aside)

    @property
    def of_partitions(self) -> Suite:
        """The expectations that judge each partition by itself; none if all are about the stage."""
        return self._with(Scope.PARTITION)

    @property
    def of_stage(self) -> Suite | None:
        """The expectations that judge all partitions together; None if there are none."""
        found = self._with(Scope.STAGE)
        return found if found.expectations else None

    def _with(self, scope: Scope) -> Suite:
        return replace(
            self, expectations=tuple(expectation for expectation in self.expectations if expectation.scope is scope)
        )

    @property
    def quarantine(self) -> str:
        """A fingerprint that changes when other rows could be set aside, since what is published follows from that.
        Empty if no rows ever are.
        """
        said = [*map(_said, self.setting_aside)]
        return digest((*said, str(self.max_quarantined), *([self.code] if self.modules else ()))) if said else ""

    def place(self, expectation: Expectation) -> str:
        """The file and line where the expectation is."""
        return self._at(expectation.line)

    @property
    def place_of_samples(self) -> str:
        return self._at(self.samples_line)

    def place_of_module(self, module: str) -> str:
        return self._at(self.module_lines.get(module, 0))

    def _at(self, line: int) -> str:
        return f"{self.file}:{line}" if line else self.file or self.name

    @property
    def compares(self) -> bool:
        """Whether any verdict depends on earlier intervals."""
        return any(expectation.earlier_figures for expectation in self.expectations)

    def unjudged(self, partitions: Sequence[int]) -> Mapping[str, list[int]]:
        """By expectation, the partitions that it cannot judge, because figures of earlier intervals are missing."""
        found = {
            str(expectation): [
                number for number in partitions if self.earlier.of(number, expectation.earlier_figures) is None
            ]
            for expectation in self.expectations
        }
        return {expectation: unjudged for expectation, unjudged in found.items() if unjudged}

    @property
    def fingerprint(self) -> str:
        """A fingerprint that changes when the gate could decide otherwise; comments, notes and the order of fields do
        not count.
        """
        return digest(
            (*map(_said, self.expectations), *filter(None, (self.quarantine,)), *([self.code] if self.modules else ()))
        )


def _said(expectation: Expectation) -> str:
    return json.dumps([expectation.type, expectation.severity, expectation.kwargs], sort_keys=True, default=str)


def _in_words(argument: Any) -> str:
    given = argument.get(PARAMETER) if isinstance(argument, Mapping) else None
    return str(argument if given is None else given)


def check_scope(suite: Suite, stage: Stage, pipeline: Pipeline) -> None:
    """Refuse a gate that cannot judge all partitions of a stage together.

    :raises InvalidSpec: the suite has expectations about all of the stage, and something of the pipeline does not go
        with that.
    """
    whole = suite.of_stage
    if whole is None:
        return
    line, where = whole.expectations[0].line, f"stage {stage.name} of {pipeline.file}"
    problems = [
        SpecProblem(line, "scope", f"stage, with {obstacle} ({where})", "partition, or a pipeline without that")
        for obstacle in _obstacles(stage, pipeline)
    ]
    if problems:
        raise InvalidSpec(suite.file or suite.name, problems)


def _obstacles(stage: Stage, pipeline: Pipeline) -> Iterator[str]:
    """What does not go together with judging a stage as a whole: the partitions have to be there when the last one is
    computed, and nobody may read them before.
    """
    if pipeline.speculation is not None:
        yield "speculation"
    if pipeline.failover is Failover.FULL:
        yield "failover: full"
    if stage.output.committer is CommitterKind.DELTA_SPARK:
        yield f"committer: {stage.output.committer}"
    if stage.states:
        yield "state"
    if stage.max_parallel_tasks > 1:
        yield f"max_parallel_tasks: {stage.max_parallel_tasks}"
    if any(source.source is not None and source.source.incremental for source in sources_within(stage, pipeline)):
        yield "an incremental source"
    region = next(cut for cut in stage_regions(pipeline) if stage.name in cut.stages)
    for reader in pipeline.readers(stage.name):
        if reader.name in region.stages:
            yield f"{reader.name}, which reads it in the same task,"
