"""The author's own failure rules, `failures:` of a pipeline: read and checked one by one, so that each has its line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stagehold.code.project import load_module
from stagehold.model.records import FailureClass
from stagehold.spec.draft import Draft
from stagehold.spec.form import TEXTS, show, suggest
from stagehold.spec.settings.restart import FailureDeclaration
from stagehold.spec.yaml import MAPPING, FieldPath, Problem

FIELDS = ("error", "text", "class")
# Data that is gone is named by stage and partition, which no rule of an author can say.
CLASSES = tuple(kind.value for kind in FailureClass if kind is not FailureClass.PARTITION_DATA_MISSING)
ERROR = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def declared_failures(given: Any) -> tuple[FailureDeclaration, ...]:
    """The rules of a list that has no problem."""
    return tuple(
        FailureDeclaration(error=one.get("error"), text=one.get("text"), kind=FailureClass(one["class"]))
        for one in given
    )


def check_failures(draft: Draft) -> Iterator[Problem]:
    given = draft.form.failures
    if not isinstance(given, list | tuple):
        yield Problem(
            ("failures",), show(given), "a list of rules such as {error: jobs.errors:BadInput, class: non_recoverable}"
        )
        return
    for number, rule in enumerate(given):
        path = ("failures", str(number))
        if isinstance(rule, Mapping):
            yield from _check_rule(rule, path, draft.project)
        else:
            yield Problem(path, show(rule), MAPPING)


def _check_rule(rule: Mapping[str, Any], path: FieldPath, project: Path) -> Iterator[Problem]:
    for name in rule:
        if name not in FIELDS:
            yield Problem((*path, name), show(rule[name]), suggest(name, FIELDS))
    if rule.get("error") is None and rule.get("text") is None:
        yield Problem(path, "neither error nor text", "error, text or both: what the rule is for")
    if rule.get("class") not in CLASSES:
        yield Problem((*path, "class"), show(rule.get("class")), suggest(str(rule.get("class")), CLASSES))
    if rule.get("error") is not None:
        yield from _check_error(rule["error"], (*path, "error"), project)
    if rule.get("text") is not None:
        yield from _check_text(rule["text"], (*path, "text"))


def _check_error(error: object, path: FieldPath, project: Path) -> Iterator[Problem]:
    """A class of the project has to be there; one of a library is taken as it is, since nothing is imported."""
    if not isinstance(error, str) or not ERROR.fullmatch(error):
        yield Problem(path, show(error), "module:Class, such as jobs.errors:BadInput or builtins:ValueError")
        return
    module, _, wanted = error.partition(":")
    try:
        found = load_module(module, project)
    except (SyntaxError, ValueError, OSError) as problem:
        yield Problem(
            path, f"{show(error)}, whose module cannot be parsed ({problem})", "a module that Python can read"
        )
        return
    classes = tuple(node.name for node in ast.walk(found.tree) if isinstance(node, ast.ClassDef)) if found else ()
    if found and wanted.partition(".")[0] not in classes:
        yield Problem(path, show(error), f"a class defined in {module}: {suggest(wanted, classes)}")


def _check_text(text: object, path: FieldPath) -> Iterator[Problem]:
    if not isinstance(text, str) or not text:
        yield Problem(path, show(text), TEXTS["string_type"])
        return
    try:
        re.compile(text)
    except re.error as problem:
        yield Problem(path, f"{show(text)}, which is no pattern ({problem})", "text, or a regular expression")
