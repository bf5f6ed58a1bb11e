"""Notifiers of a pipeline: looked up by name, each with its line. Nothing is imported, so nothing of theirs runs when
Airflow reads the file.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stagehold.code.project import load_module
from stagehold.spec.draft import Draft
from stagehold.spec.form import TEXTS, show, suggest
from stagehold.spec.settings.fields import field_names
from stagehold.spec.settings.notifiers import Hook, NotifierDeclaration
from stagehold.spec.yaml import MAPPING, FieldPath, Problem

FIELDS = field_names(NotifierDeclaration)
CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
FORM = "module:Class, such as airflow.providers.smtp.notifications.smtp:SmtpNotifier"


def declared_notifiers(given: object) -> tuple[NotifierDeclaration, ...]:
    """Those of a hook that has no problem; one may stand there without a list."""
    return tuple(NotifierDeclaration.model_validate(one) for one in _listed(given))


def check_notifiers(draft: Draft) -> Iterator[Problem]:
    for hook in Hook:
        given = getattr(draft.form, hook)
        for number, one in enumerate(_listed(given)):
            path = (hook.value, str(number)) if isinstance(given, list | tuple) else (hook.value,)
            if isinstance(one, Mapping):
                yield from _check_notifier(one, path, draft.project)
            else:
                yield Problem(path, show(one), f"{MAPPING}, such as {{notifier: {FORM.rpartition(' ')[2]}}}")


def _listed(given: object) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else (given,)


def _check_notifier(given: Mapping[str, Any], path: FieldPath, project: Path) -> Iterator[Problem]:
    for name in given:
        if name not in FIELDS:
            yield Problem((*path, name), show(given[name]), suggest(name, FIELDS))
    arguments = given.get("arguments", {})
    if not isinstance(arguments, Mapping):
        yield Problem((*path, "arguments"), show(arguments), MAPPING)
    elif not _is_json(arguments):
        yield Problem((*path, "arguments"), show(arguments), TEXTS["invalid-json-value"])
    notifier = given.get("notifier")
    if not isinstance(notifier, str) or not CLASS.fullmatch(notifier):
        yield Problem((*path, "notifier"), show(notifier), FORM if notifier is not None else f"needed: {FORM}")
    else:
        yield from _check_class(notifier, (*path, "notifier"), project)


def _is_json(arguments: Mapping[str, Any]) -> bool:
    try:
        NotifierDeclaration(notifier="", arguments=arguments)
    except ValidationError:
        return False
    return True


def _check_class(notifier: str, path: FieldPath, project: Path) -> Iterator[Problem]:
    module, _, wanted = notifier.partition(":")
    try:
        names = _names_in(module, project)
    except (SyntaxError, ValueError, OSError) as problem:
        yield Problem(
            path, f"{show(notifier)}, whose module cannot be parsed ({problem})", "a module that Python can read"
        )
        return
    if names is None:
        yield Problem(path, show(notifier), f"a class of a module that is installed or in the project; not {module}")
    elif names and wanted not in names:
        yield Problem(path, show(notifier), f"a class of {module}: {suggest(wanted, tuple(sorted(names)))}")


def _names_in(module: str, project: Path) -> frozenset[str] | None:
    """What the module defines or imports by name; nothing if that cannot be told without running it. None if there is
    no such module, where a task would look for it.
    """
    for folder in (project, *map(Path, filter(None, sys.path))):
        place = folder.joinpath(*module.split("."))
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            found = load_module(module, folder)
            return _names(found.tree) if found else None
    return None


def _names(tree: ast.Module) -> frozenset[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.ImportFrom)]
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes):
        return frozenset()
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    imported = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    return frozenset({*classes, *(alias.asname or alias.name for alias in imported)})
