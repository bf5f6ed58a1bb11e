"""Reads gate suites: which Great Expectations a stage's partitions have to meet, and how much each matters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.model.compute_key import digest
from stagehold.spec.yaml import Document, Problem, read_document

FIELDS = ("suite", "expectations")
TO_EXIST = "expect_column_to_exist"  # asks which metrics there are, and every partition has the same
# Beginnings of those that look at one row of metrics, which is one partition. All others look at many rows at once, and
# which partitions are judged together depends on the waves, so the same data could pass or fail.
ONE_ROW = (
    "expect_column_value",
    "expect_column_pair_values",
    "expect_multicolumn_sum_to_equal",
    "expect_select_column_values",
)
MANY_ROWS = tuple(
    f"expect_column_{about}"
    for about in (
        *("values_to_be_unique", "values_to_be_increasing", "values_to_be_decreasing"),
        *("values_to_not_be_outliers", "value_z_scores_to_be_less_than"),
    )
)
INSTEAD = (
    "an expectation about each partition, as {type: expect_column_values_to_be_between, column: rows, min_value: 1} "
    "is; this one counts over the partitions of a wave, whichever those are, and about a whole table a gate cannot say "
    "anything yet"
)


class Severity(StrEnum):
    """Only a critical expectation blocks a partition; the others are recorded and shown."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Expectation:
    """One expectation of the metrics frame; ``kwargs`` are Great Expectations' own."""

    type: str
    kwargs: Mapping[str, Any]
    severity: Severity = Severity.CRITICAL

    def __str__(self) -> str:
        """What it says, short enough for one line of an error."""
        about = [str(text) for name, text in self.kwargs.items() if name in ("column", "column_A", "column_B")]
        limits = [
            f"{name}={text}" for name, text in self.kwargs.items() if name not in ("column", "column_A", "column_B")
        ]
        return f"{self.type}({', '.join(about + limits)})"


@dataclass(frozen=True)
class Suite:
    """The expectations of one gate, in the order of the file."""

    name: str
    expectations: tuple[Expectation, ...]


def load_suite(path: Path) -> Suite:
    """Read a suite; does not import Great Expectations, which takes seconds.

    Arguments of expectations, and the metrics they name, can only be checked by `judge`.

    :raises InvalidSpec: with every problem, each with its line and what is allowed there.
    """
    document = read_document(path)
    problems = [*document.problems, *(_problems(document) if document.data else ())]
    if problems:
        raise InvalidSpec(str(path), [_located(document, problem) for problem in problems])
    return Suite(str(document.data["suite"]), tuple(_expectation(one) for one in document.data["expectations"]))


def suite_fingerprint(path: Path) -> str:
    """Changes when the gate could decide otherwise; comments and order of fields do not count."""
    suite = load_suite(path)
    return digest(
        json.dumps([one.type, one.severity, one.kwargs], sort_keys=True, default=str) for one in suite.expectations
    )


def judges_one_partition(expectation_type: str) -> bool:
    """Whether its verdict about a partition is the same whichever others are judged with it."""
    return expectation_type == TO_EXIST or (expectation_type.startswith(ONE_ROW) and expectation_type not in MANY_ROWS)


@cache
def expectation_types() -> tuple[str, ...]:
    """Names of all expectations, from the files they are in."""
    package = find_spec("great_expectations")
    if package is None or package.origin is None:
        return ()
    return tuple(
        sorted(file.stem for file in (Path(package.origin).parent / "expectations" / "core").glob("expect_*.py"))
    )


def _expectation(fields: Mapping[str, Any]) -> Expectation:
    kwargs = {name: value for name, value in fields.items() if name not in ("type", "severity")}
    return Expectation(fields["type"], kwargs, Severity(fields.get("severity", Severity.CRITICAL)))


def _problems(document: Document) -> Iterator[Problem]:
    for name in document.data:
        if name not in FIELDS:
            yield Problem((name,), "an unknown field", " or ".join(FIELDS))
    if not isinstance(document.data.get("suite"), str):
        yield Problem(("suite",), repr(document.data.get("suite")), "the suite's name")
    expectations = document.data.get("expectations")
    if not isinstance(expectations, list) or not expectations:
        yield Problem(("expectations",), repr(expectations), "a list of at least one expectation")
        return
    for index, fields in enumerate(expectations):
        yield from _expectation_problems(("expectations", str(index)), fields)


def _expectation_problems(path: tuple[str, ...], fields: Any) -> Iterator[Problem]:
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        yield Problem(path, repr(fields), "fields of one expectation, of which `type` is one")
        return
    if fields["type"] not in expectation_types():
        yield Problem((*path, "type"), repr(fields["type"]), _offer(fields["type"]))
    elif not judges_one_partition(fields["type"]):
        yield Problem((*path, "type"), repr(fields["type"]), INSTEAD)
    if "mostly" in fields:
        yield Problem(
            (*path, "mostly"),
            repr(fields["mostly"]),
            "nothing: it is a share of the partitions of a wave, whichever those are",
        )
    if fields.get("severity", Severity.CRITICAL) not in tuple(Severity):
        yield Problem((*path, "severity"), repr(fields["severity"]), ", ".join(Severity))


def _offer(given: str) -> str:
    close = get_close_matches(given, expectation_types(), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"an expectation of Great Expectations{hint}"


def _located(document: Document, problem: Problem) -> SpecProblem:
    return SpecProblem(document.line(problem.path), ".".join(problem.path) or "file", problem.given, problem.allowed)
