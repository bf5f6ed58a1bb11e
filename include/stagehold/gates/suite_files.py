"""Reads suites: YAML files that people write, JSON files that Great Expectations writes, and objects of Python.

The project's code makes an object of Python in a process of its own; then it is read as a file is.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from stagehold.code.project import find_module, places_text
from stagehold.code.stage_code import code_fingerprint
from stagehold.code.unchanging_files import text_in_file
from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.gates.earlier_figures import COMPARED, COMPARING, NAMES, figures_named
from stagehold.gates.earlier_suites import as_written_now
from stagehold.gates.suite import FIGURES, MOST_ROWS, Expectation, OnFail, RowLimit, Samples, Scope, Suite, within_one
from stagehold.model.choices import Severity
from stagehold.model.keys.compute_key import digest
from stagehold.settings import Settings
from stagehold.spec.loading.variables import put_in
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.suites import is_of_python, suite_files
from stagehold.spec.yaml import Document, Problem, plain_document, read_document

OWN_FIELDS = ("suite", "expectations", "on_fail", "max_quarantined", "modules", "samples")
FIELDS = (*OWN_FIELDS, "name", "id", "meta", "notes", "suite_parameters")
OF_SAMPLES = ("keys", "mask", "rows")
MOST = 1000  # expectations of a suite; each partition has a verdict of each of them
ABOUT = (
    *("type", "severity", "on_fail", "scope", "meta", "kwargs", "id", "notes"),
    *("description", "rendered_content", "expectation_context"),
)
HIDDEN = ("batch_id", "result_format", "catch_exceptions")  # arguments in files that Great Expectations wrote
NAME = "the suite's name"
PLACES = f"in an expectation about {', '.join(FIGURES)}; or as {', '.join(COMPARED)} of {', '.join(COMPARING)}"


OWN_PART = "stagehold"  # the name below `meta` in files of Great Expectations where our fields are
LIMIT = re.compile(r"(?P<amount>\d+(\.\d+)?)(?P<percent>%?)")
LIMITS = "a number of rows, or a share such as 1%"
SEVERITIES = {OnFail.BLOCK: Severity.CRITICAL, OnFail.WARN: Severity.WARNING, OnFail.QUARANTINE: Severity.WARNING}
# Expectations that say of each row whether it is expected. Those of `NOT_OF_ROWS` are judged by the schema, or by all
# rows at once.
OF_ROWS = re.compile(
    r"expect_(column_values?_|column_pair_values_|multicolumn_|compound_columns_|select_column_values_).*"
)
NOT_OF_ROWS = ("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list")
MOST_SECONDS = 120  # to make a suite in Python
MARK_OF_SUITE = "stagehold suite: "  # before the line with the suite, among whatever an import prints
EXPORT = f"""
import importlib, json, sys
from pathlib import Path
from stagehold.code.project import find_modules_of
gate, project = sys.argv[1:]
find_modules_of(Path(project))
module, _, name = gate.partition(":")
found = getattr(importlib.import_module(module), name)
suite = found() if callable(found) else found
print({MARK_OF_SUITE!r} + json.dumps(suite.to_json_dict()))
"""


def suite_of(pipeline: Pipeline, gate: str, settings: Settings) -> Suite:
    """The suite that a pipeline calls ``gate``, with the pipeline's variables put in.

    :raises InvalidSpec: see `find_suite`
    """
    return find_suite(gate, Path(settings.suites), Path(settings.project), pipeline.known_variables)


def find_suite(gate: str, suites: Path, project: Path, variables: Mapping[str, Any] | None = None) -> Suite:
    """
    :param variables: what `${vars.NAME}` and `${env.NAME}` in its file stand for: those of the pipeline.
    :raises InvalidSpec: there is none of that name, or see `load_suite`.
    """
    if is_of_python(gate):
        document = plain_document(suite_of_python(gate, project), gate)
        return _suite(document, (gate.partition(":")[0],), code_of(gate, project))
    return load_suite(suite_files(suites, project).get(gate, suites / f"{gate}.yaml"), project, variables)


def load_suite(path: Path, project: Path, variables: Mapping[str, Any] | None = None) -> Suite:
    """Read a suite, without importing Great Expectations, which takes seconds.

    Which arguments an expectation takes, and whether they fit the data, is known only when it judges.

    :raises InvalidSpec: with every problem, each with its line and what is allowed there.
    """
    document = as_written_now(put_in(read_document(path), variables or {}))
    written = document.data.get("modules") or ()
    modules = tuple(filter(_is_text, written)) if isinstance(written, list) else ()
    gone = [name for name in modules if find_module(name, project) is None]
    if gone:
        raise InvalidSpec(str(path), [_located(document, Problem(("modules",), repr(gone[0]), places_text(project)))])
    return _suite(document, modules, digest(code_of(name, project) for name in modules))


def _suite(document: Document, modules: tuple[str, ...], code: str) -> Suite:
    is_read = bool(document.data) or not document.problems  # what cannot be read has no fields that could be wrong
    problems = [*document.problems, *(_problems(document, modules) if is_read else ())]
    if problems:
        raise InvalidSpec(document.file, [_located(document, problem) for problem in problems])
    data = document.data
    of_suite = on_fail_of(data)
    expectations = (
        _expectation(fields, document.line(("expectations", str(index))), of_suite)
        for index, fields in enumerate(data["expectations"])
    )
    named, samples = str(data.get("suite") or data["name"]), _samples(_own_fields(data).get("samples", True))
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
        samples_line=document.line(("samples",)),
    )


@cache
def expectation_types() -> tuple[str, ...]:
    """Names of all expectations of Great Expectations' core that it offers, from the files that they are in. None where
    it is not installed: then only whoever judges knows them.
    """
    package = find_spec("great_expectations")
    if package is None or package.origin is None:
        return ()
    core = Path(package.origin).parent / "expectations" / "core"
    offered = (core / "__init__.py").read_text(encoding="utf-8")
    files = (file.stem for file in core.glob("*expect*.py"))
    return tuple(sorted(name for name in files if f"{name} import" in offered))


def _expectation(fields: Mapping[str, Any], line: int, of_suite: OnFail | None) -> Expectation:
    severity, sets_aside = consequence(fields, of_suite)
    return Expectation(fields["type"], _arguments(fields), severity, line, sets_aside, scope_of(fields))


def _arguments(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    written = fields.get("kwargs") or {name: value for name, value in fields.items() if name not in ABOUT}
    return {name: value for name, value in written.items() if name not in HIDDEN}


def _problems(document: Document, modules: Sequence[str]) -> Iterator[Problem]:
    for name in document.data:
        if name not in FIELDS:
            yield Problem((name,), "an unknown field", ", ".join(OWN_FIELDS))
    yield from suite_problems(document.data)
    written = document.data.get("modules") or []
    if not isinstance(written, list) or not all(isinstance(name, str) for name in written):
        yield Problem(("modules",), repr(written), "a list of modules of the project that define expectations")
    named = document.data.get("suite", document.data.get("name"))
    if not isinstance(named, str):
        yield Problem(("suite",), repr(named), NAME)
    yield from _sample_problems(_own_fields(document.data).get("samples", True))
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
    types = expectation_types()
    if types and fields["type"] not in types and not own:
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


def _samples(written: Any) -> Samples:
    """The samples that a field without problems declares."""
    fields = written if isinstance(written, dict) else {"rows": written}
    rows = fields.get("rows", True)
    return Samples(
        rows=MOST_ROWS if rows is True else int(rows),
        keys=tuple(fields.get("keys") or ()),
        mask=tuple(fields.get("mask") or ()),
    )


def _sample_problems(written: Any) -> Iterator[Problem]:
    if isinstance(written, bool):
        return
    if not isinstance(written, dict):
        yield Problem(("samples",), repr(written), f"on, off, or fields: {', '.join(OF_SAMPLES)}")
        return
    for name in written:
        if name not in OF_SAMPLES:
            yield Problem(("samples", str(name)), "an unknown field", ", ".join(OF_SAMPLES))
    keys, mask = written.get("keys") or [], written.get("mask") or []
    wrong = {name: columns for name, columns in (("keys", keys), ("mask", mask)) if not _are_columns(columns)}
    for name, columns in wrong.items():
        yield Problem(("samples", name), repr(columns), "a list of names of columns")
    yield from _row_problems(written.get("rows", True), has_keys=bool(keys))
    for key in keys if not wrong else ():
        if any(within_one(key, masked) for masked in mask):
            yield Problem(("samples", "keys"), f"{key!r}, which is masked", "columns that are not in mask")


def _row_problems(rows: Any, *, has_keys: bool) -> Iterator[Problem]:
    if not isinstance(rows, int) or not 0 <= rows <= MOST_ROWS:
        yield Problem(("samples", "rows"), repr(rows), f"off, or a number of rows from 1 to {MOST_ROWS}")
    elif not rows and has_keys:
        yield Problem(("samples", "keys"), "keys, with rows: off", "keys with some rows, or rows: off alone")


def _are_columns(written: Any) -> bool:
    return isinstance(written, list) and all(isinstance(one, str) and one for one in written)


def _parameter_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Figures of earlier intervals that do not exist, or would cost a query for each partition where they stand."""
    expectation = Expectation(fields["type"], _arguments(fields))
    for argument, names in figures_named(expectation.kwargs).items():
        for name in sorted(set(names) - set(NAMES)):
            yield Problem((*path, argument), repr(name), ", ".join(NAMES))
        if not expectation.is_of_figures and (argument not in COMPARED or expectation.type not in COMPARING):
            said = f"{names[0]} as {argument} of {expectation.type}"
            yield Problem((*path, argument), said, f"{names[0]} {PLACES}")


def _stage_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Facts of a single partition, in an expectation about all of a stage."""
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


def suite_of_python(gate: str, project: Path) -> dict[str, Any]:
    """The fields of the suite ``module:name``, an object or a function that makes one, as a file would have them.

    :raises InvalidSpec: there is no suite of that name; with what Python said.
    :raises PackageMissing: Great Expectations is not installed.
    """
    from stagehold.extras import Extra, require  # not for a plan: its suites are files

    require(Extra.GATES)
    return dict(_exported(gate, project, code_of(gate, project)))


def code_of(gate: str, project: Path) -> str:
    """A fingerprint that changes when any code of the project changes that makes the suite; if that code cannot be
    followed, when the module's file does.
    """
    file = find_module(gate.partition(":")[0], project)
    own = text_in_file(file) if file and file.is_file() else ""
    return code_fingerprint(gate, project).value or digest((own,))


@lru_cache(maxsize=64)
def _exported(gate: str, project: Path, code: str) -> tuple[tuple[str, Any], ...]:  # noqa: ARG001 - another code, another suite
    command = [sys.executable, "-c", EXPORT, gate, str(project)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, cwd=project, check=False)
    except subprocess.TimeoutExpired as error:
        raise _of_python(gate, f"it took more than {MOST_SECONDS} seconds") from error
    told = [line.removeprefix(MARK_OF_SUITE) for line in done.stdout.splitlines() if line.startswith(MARK_OF_SUITE)]
    if done.returncode or not told:
        raise _of_python(gate, (done.stderr.strip().splitlines() or ["it made nothing"])[-1])
    return tuple(json.loads(told[-1]).items())


def _of_python(gate: str, why: str) -> InvalidSpec:
    return InvalidSpec(gate, [SpecProblem(0, "gate", why, "an ExpectationSuite, or a function that returns one")])


def consequence(fields: Mapping[str, Any], of_suite: OnFail | None) -> tuple[Severity, bool]:
    """How severe it is if an expectation with these fields, which have no problems, is not met; and whether rows are
    set aside then. The suite's own `on_fail` is for expectations that have neither `on_fail` nor `severity`. Its
    quarantine blocks instead where no row is to blame, and where an expectation is about a whole stage.
    """
    said, severity = _own_fields(fields).get("on_fail"), fields.get("severity")
    if said is not None:
        word = OnFail(said)
        return Severity(severity) if severity else SEVERITIES[word], word is OnFail.QUARANTINE
    if severity is not None or of_suite is None:
        return Severity(severity or Severity.CRITICAL), False
    if of_suite is OnFail.QUARANTINE and (not is_of_rows(fields["type"]) or is_of_stage(fields)):
        return Severity.CRITICAL, False
    return SEVERITIES[of_suite], of_suite is OnFail.QUARANTINE


def is_of_rows(kind: str) -> bool:
    return OF_ROWS.fullmatch(kind) is not None and kind not in NOT_OF_ROWS


def scope_of(fields: Mapping[str, Any]) -> Scope:
    return Scope(_own_fields(fields).get("scope", Scope.PARTITION))


def is_of_stage(fields: Mapping[str, Any]) -> bool:
    return bool(_own_fields(fields).get("scope") == Scope.STAGE)


def on_fail_of(suite: Mapping[str, Any]) -> OnFail | None:
    said = _own_fields(suite).get("on_fail")
    return OnFail(said) if said is not None else None


def row_limit(suite: Mapping[str, Any]) -> RowLimit | None:
    said = _own_fields(suite).get("max_quarantined")
    return _row_limit_of(said) if said is not None else None


def suite_problems(suite: Mapping[str, Any]) -> Iterator[Problem]:
    said = _own_fields(suite)
    if said.get("on_fail", OnFail.BLOCK) not in tuple(OnFail):
        yield Problem(("on_fail",), repr(said["on_fail"]), ", ".join(OnFail))
    if "max_quarantined" in said and _row_limit_of(said["max_quarantined"]) is None:
        yield Problem(("max_quarantined",), repr(said["max_quarantined"]), LIMITS)


def expectation_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    severity, on_fail = fields.get("severity"), _own_fields(fields).get("on_fail", OnFail.BLOCK)
    scope = _own_fields(fields).get("scope", Scope.PARTITION)
    if scope not in tuple(Scope):
        yield Problem((*path, "scope"), repr(scope), ", ".join(Scope))
    if (severity or Severity.CRITICAL) not in tuple(Severity):
        yield Problem((*path, "severity"), repr(severity), ", ".join(Severity))
    elif on_fail not in tuple(OnFail):
        yield Problem((*path, "on_fail"), repr(on_fail), ", ".join(OnFail))
    elif severity and "on_fail" in _own_fields(fields) and not _go_together(OnFail(on_fail), Severity(severity)):
        problem = f"{on_fail}, with the severity {severity}"
        yield Problem((*path, "on_fail"), problem, "block with critical, warn with warning or info, or one of the two")
    elif on_fail == OnFail.QUARANTINE and is_of_stage(fields):
        yield Problem((*path, "on_fail"), f"{on_fail}, with scope: stage", "block or warn, or scope: partition")
    elif on_fail == OnFail.QUARANTINE and fields["type"] in NOT_OF_ROWS:
        yield Problem((*path, "on_fail"), on_fail, "block or warn: no row is to blame for a type")


def _go_together(word: OnFail, severity: Severity) -> bool:
    return word is OnFail.QUARANTINE or (word is OnFail.BLOCK) == (severity is Severity.CRITICAL)


def _own_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that are ours: our own names, or what lies below `meta` in a file that Great Expectations wrote."""
    meta = fields.get("meta")
    own = meta.get(OWN_PART) if isinstance(meta, dict) else None
    return {**(own if isinstance(own, dict) else {}), **fields}


def _row_limit_of(said: object) -> RowLimit | None:
    found = LIMIT.fullmatch(str(said).replace(" ", "")) if not isinstance(said, bool) else None
    return RowLimit(float(found["amount"]), bool(found["percent"])) if found else None
