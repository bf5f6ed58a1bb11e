"""Reads suites from files: those that people write in YAML, and those that Great Expectations writes as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from stagehold.code.project import find_module
from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.gates.earlier_figures import COMPARED, COMPARING, NAMES, figures_named
from stagehold.gates.on_fail import (
    consequence,
    expectation_problems,
    is_of_stage,
    on_fail_of,
    row_limit,
    scope_of,
    suite_problems,
)
from stagehold.gates.python_suites import code_of, suite_of_python
from stagehold.gates.suite import FIGURES, Expectation, OnFail, Suite
from stagehold.model.keys.compute_key import digest
from stagehold.spec.suites import is_of_python, suite_files
from stagehold.spec.yaml import Document, Problem, plain_document, read_document

OWN_FIELDS = ("suite", "expectations", "on_fail", "max_quarantined", "modules", "samples")
FIELDS = (*OWN_FIELDS, "name", "id", "meta", "notes", "suite_parameters")
MOST = 1000  # expectations of a suite; each partition has a verdict of each of them
ABOUT = (
    *("type", "severity", "on_fail", "scope", "meta", "kwargs", "id", "notes"),
    *("description", "rendered_content", "expectation_context"),
)
HIDDEN = ("batch_id", "result_format", "catch_exceptions")  # arguments in files that Great Expectations wrote
NAME = "the suite's name"
PLACES = f"in an expectation about {', '.join(FIGURES)}; or as {', '.join(COMPARED)} of {', '.join(COMPARING)}"


def find_suite(gate: str, suites: Path, project: Path) -> Suite:
    """
    :raises InvalidSpec: there is none of that name, or see `load_suite`.
    """
    if is_of_python(gate):
        document = plain_document(suite_of_python(gate, project), gate)
        return _suite(document, (gate.partition(":")[0],), code_of(gate, project))
    return load_suite(suite_files(suites, project).get(gate, suites / f"{gate}.yaml"), project)


def load_suite(path: Path, project: Path) -> Suite:
    """Read a suite; does not import Great Expectations, which takes seconds.

    What arguments an expectation takes, and whether they fit the data, is known when it judges.

    :raises InvalidSpec: with every problem, each with its line and what is allowed there.
    """
    document = read_document(path)
    written = document.data.get("modules") or ()
    modules = tuple(filter(_is_text, written)) if isinstance(written, list) else ()
    gone = [name for name in modules if find_module(name, project) is None]
    if gone:
        raise InvalidSpec(str(path), [_located(document, Problem(("modules",), repr(gone[0]), f"under {project}"))])
    return _suite(document, modules, digest(code_of(name, project) for name in modules))


def _suite(document: Document, modules: tuple[str, ...], code: str) -> Suite:
    problems = [*document.problems, *(_problems(document, modules) if document.data else ())]
    if problems:
        raise InvalidSpec(document.file, [_located(document, problem) for problem in problems])
    data = document.data
    of_suite = on_fail_of(data)
    expectations = (
        _expectation(one, document.line(("expectations", str(index))), of_suite)
        for index, one in enumerate(data["expectations"])
    )
    named, samples = str(data.get("suite") or data["name"]), data.get("samples", True)
    lines = {name: document.line(("modules", str(index))) for index, name in enumerate(data.get("modules") or ())}
    return Suite(
        named,
        tuple(expectations),
        document.file,
        modules,
        code,
        samples,
        max_quarantined=row_limit(data),
        module_lines=lines,
    )


@cache
def expectation_types() -> tuple[str, ...]:
    """Names of all expectations of Great Expectations' core, from the files they are in: those that it offers."""
    package = find_spec("great_expectations")
    if package is None or package.origin is None:
        return ()
    core = Path(package.origin).parent / "expectations" / "core"
    offered = (core / "__init__.py").read_text(encoding="utf-8")
    files = (file.stem for file in core.glob("*expect*.py"))
    return tuple(sorted(name for name in files if f"{name} import" in offered))


def _expectation(fields: Mapping[str, Any], line: int, of_suite: OnFail | None) -> Expectation:
    follows = consequence(fields, of_suite)
    scope = scope_of(fields)
    return Expectation(fields["type"], _arguments(fields), follows.severity, line, follows.sets_aside, scope)


def _arguments(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    written = fields.get("kwargs") or {name: value for name, value in fields.items() if name not in ABOUT}
    return {name: value for name, value in written.items() if name not in HIDDEN}


def _problems(document: Document, modules: Sequence[str]) -> Iterator[Problem]:
    for name in document.data:
        if name not in FIELDS:
            yield Problem((name,), "an unknown field", ", ".join(OWN_FIELDS))
    yield from suite_problems(document.data)
    written = document.data.get("modules") or []
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        yield Problem(("modules",), repr(written), "a list of modules of the project that define expectations")
    named = document.data.get("suite", document.data.get("name"))
    if not isinstance(named, str):
        yield Problem(("suite",), repr(named), NAME)
    if not isinstance(document.data.get("samples", True), bool):
        yield Problem(("samples",), repr(document.data["samples"]), "on or off")
    expectations = document.data.get("expectations")
    if not isinstance(expectations, list) or not expectations:
        yield Problem(("expectations",), repr(expectations), "a list of at least one expectation")
        return
    if len(expectations) > MOST:
        yield Problem(("expectations",), f"{len(expectations)} expectations", f"at most {MOST}")
    for index, fields in enumerate(expectations):
        yield from _expectation_problems(("expectations", str(index)), fields, own=bool(modules))


def _expectation_problems(path: tuple[str, ...], fields: Any, *, own: bool) -> Iterator[Problem]:
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        yield Problem(path, repr(fields), "fields of one expectation, of which `type` is one")
        return
    if fields["type"] not in expectation_types() and not own:
        yield Problem((*path, "type"), repr(fields["type"]), _offer(fields["type"]))
    if "kwargs" in fields and not isinstance(fields["kwargs"], dict):
        yield Problem((*path, "kwargs"), repr(fields["kwargs"]), "a mapping of arguments")
        return
    yield from expectation_problems(path, fields)
    for name in Expectation(fields["type"], _arguments(fields)).columns:
        if name.startswith("partition(") and name not in FIGURES:
            yield Problem(path, repr(name), f"a column, or one of {', '.join(FIGURES)}")
    yield from _parameter_problems((*path, "kwargs") if fields.get("kwargs") else path, fields)
    yield from _stage_problems((*path, "kwargs") if fields.get("kwargs") else path, fields)


def _parameter_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Figures of earlier intervals that do not exist, or stand where they would cost a query for each partition."""
    expectation = Expectation(fields["type"], _arguments(fields))
    for argument, names in figures_named(expectation.kwargs).items():
        for name in sorted(set(names) - set(NAMES)):
            yield Problem((*path, argument), repr(name), ", ".join(NAMES))
        if not expectation.is_of_figures and (argument not in COMPARED or expectation.type not in COMPARING):
            said = f"{names[0]} as {argument} of {expectation.type}"
            yield Problem((*path, argument), said, f"{names[0]} {PLACES}")


def _stage_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    """What is known of a partition alone, in an expectation about all of a stage."""
    if not is_of_stage(fields):
        return
    expectation = Expectation(fields["type"], _arguments(fields))
    for name in expectation.columns:
        if name in FIGURES:
            yield Problem(
                path, f"{name}, with scope: stage", "a column; how many rows there are, a table's row count says"
            )
    for argument, names in figures_named(expectation.kwargs).items():
        yield Problem((*path, argument), f"{names[0]}, with scope: stage", "a number, or scope: partition")


def _is_text(written: object) -> TypeGuard[str]:
    return isinstance(written, str)


def _offer(given: str) -> str:
    close = get_close_matches(given, expectation_types(), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"an expectation of Great Expectations, or one of a module in `modules`{hint}"


def _located(document: Document, problem: Problem) -> SpecProblem:
    return SpecProblem(document.line(problem.path), ".".join(problem.path) or "file", problem.given, problem.allowed)
