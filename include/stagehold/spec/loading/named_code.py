"""Checks of code that a file names: jobs, callbacks, classes of the author's failure rules, notifiers.

The code is read and never imported, so nothing of it runs when Airflow reads the file. Rules and notifiers are checked
one by one, so that each has its line.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stagehold.code.project import Function, code_folders, functions, load_module, places_text
from stagehold.code.script_job import OUTPUT, job_of_script, variables_of
from stagehold.model.records import FailureClass
from stagehold.spec.draft import Draft
from stagehold.spec.form import TEXTS, show, suggest
from stagehold.spec.pipeline import Exchange
from stagehold.spec.settings.airflow_settings import Hook, NotifierDeclaration
from stagehold.spec.settings.fields import field_names
from stagehold.spec.settings.restart import FailureDeclaration
from stagehold.spec.yaml import MAPPING, FieldPath, Problem

SHAPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
A_SCRIPT = "a script of Python below the project, such as jobs/old_job.py"
RULE_FIELDS = ("error", "text", "class")
# Data that is gone is named by stage and partition, which no rule of an author can say.
FAILURE_CLASSES = tuple(kind.value for kind in FailureClass if kind is not FailureClass.PARTITION_DATA_MISSING)
ERROR_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NOTIFIER_FIELDS = field_names(NotifierDeclaration)
NOTIFIER_SHAPE = "module:Class, such as airflow.providers.smtp.notifications.smtp:SmtpNotifier"


def job_problem(job: str, frames: Sequence[str] | None, project: Path) -> tuple[str, str] | None:
    """What was given and what is allowed, or None when the job is fine.

    :param frames: names of the frames the stage passes; None while they are not known, then only the name is checked
    """
    if not SHAPE.fullmatch(job):
        return show(job), "module:function, such as jobs.tpch:orders"
    name, _, wanted = job.partition(":")
    try:
        module = load_module(name, project)
    except (SyntaxError, ValueError, OSError) as error:
        return _unparsable(job, error)
    if module is None:
        return f"{show(job)}, but there is no {name.replace('.', '/')}.py", f"a module {places_text(project)}"
    known = functions(module)
    if wanted not in known:
        return show(job), f"a function defined in {name}: {suggest(wanted, tuple(known))}"
    return None if frames is None else _signature_problem(known[wanted], frames)


def check_script(draft: Draft, name: str, script: str) -> Iterator[Problem]:
    path, stage, file = ("stages", name, "script"), draft.stages[name], Path(script)
    parts = file.with_suffix("").parts
    if file.suffix != ".py" or not all(part.isidentifier() for part in parts):
        yield Problem(path, show(script), f"{A_SCRIPT}, in folders whose names Python can import")
        return
    try:
        if load_module(job_of_script(script).partition(":")[0], draft.project) is None:
            there = sorted(found.relative_to(draft.project).as_posix() for found in _beside(draft.project / file))
            yield Problem(path, f"{show(script)}, which is not there", f"{A_SCRIPT}: {suggest(script, tuple(there))}")
            return
    except (SyntaxError, ValueError, OSError) as error:
        yield Problem(path, f"{show(script)}, which cannot be read ({error})", "a script that Python can read")
        return
    if not any(OUTPUT in variables_of(argument) for argument in stage.args):
        given = show(stage.args) if stage.args else "no `args`"
        yield Problem((*path[:2], "args"), given, "arguments with ${output}, the folder that the script writes to")
    yield from _check_one_partition(draft, name, path)


def _beside(missing: Path) -> Iterator[Path]:
    return missing.parent.glob("*.py")


def _check_one_partition(draft: Draft, name: str, path: FieldPath) -> Iterator[Problem]:
    """A script is run once, with all rows."""
    stage, count = draft.stages[name], draft.counts.get(name)
    if draft.auto.get(name) or count not in (None, 1):
        given = "partitions decided later" if draft.auto.get(name) else f"{count} partitions"
        yield Problem(path, given, "one partition: `splits: 1` of a source, inputs by gather")
    for producer, edge in draft.edges(name).items():
        if edge.exchange is Exchange.KEYED:
            yield Problem((*path[:2], "inputs", producer, "exchange"), show(edge.exchange.value), "gather or broadcast")
    for field in ("state", "per_wave"):
        if getattr(stage, field):
            yield Problem((*path[:2], field), show(getattr(stage, field)), f"no {field} with a script")
    if not draft.types[name].stored:
        yield Problem((*path[:2], "output", "type"), str(draft.types[name]), "blocking or blocking_persistent")


def _unparsable(given: str, error: Exception) -> tuple[str, str]:
    return f"{show(given)}, whose module cannot be parsed ({error})", "a module that Python can read"


def _signature_problem(function: Function, frames: Sequence[str]) -> tuple[str, str] | None:
    arguments = function.args
    positional = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    required = set(positional[: len(positional) - len(arguments.defaults)])
    required |= {
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    }
    by_name = {argument.arg for argument in arguments.args + arguments.kwonlyargs} - set(positional[:1])
    takes = arguments.kwarg is not None or by_name >= set(frames)
    if isinstance(function, ast.FunctionDef) and positional[:1] == ["ctx"] and takes and required <= {"ctx", *frames}:
        return None
    keyword = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{keyword} {function.name}({ast.unparse(arguments)})", f"def {function.name}({', '.join(['ctx', *frames])})"


def declared_failures(given: Any) -> tuple[FailureDeclaration, ...]:
    """The rules of a list that has no problem."""
    return tuple(
        FailureDeclaration(error=rule.get("error"), text=rule.get("text"), kind=FailureClass(rule["class"]))
        for rule in given
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
        if name not in RULE_FIELDS:
            yield Problem((*path, name), show(rule[name]), suggest(name, RULE_FIELDS))
    if rule.get("error") is None and rule.get("text") is None:
        yield Problem(path, "neither error nor text", "error, text or both: what the rule is for")
    if rule.get("class") not in FAILURE_CLASSES:
        yield Problem((*path, "class"), show(rule.get("class")), suggest(str(rule.get("class")), FAILURE_CLASSES))
    if rule.get("error") is not None:
        yield from _check_error(rule["error"], (*path, "error"), project)
    if rule.get("text") is not None:
        yield from _check_text(rule["text"], (*path, "text"))


def _check_error(error: object, path: FieldPath, project: Path) -> Iterator[Problem]:
    """A class of the project has to be there; one of a library is taken as it is, since nothing is imported."""
    if not isinstance(error, str) or not ERROR_CLASS.fullmatch(error):
        yield Problem(path, show(error), "module:Class, such as jobs.errors:BadInput or builtins:ValueError")
        return
    module, _, wanted = error.partition(":")
    try:
        found = load_module(module, project)
    except (SyntaxError, ValueError, OSError) as problem:
        yield Problem(path, *_unparsable(error, problem))
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


def declared_notifiers(given: object) -> tuple[NotifierDeclaration, ...]:
    """The notifiers of a hook that has no problem; a single one may stand there without a list."""
    return tuple(NotifierDeclaration.model_validate(notifier) for notifier in _listed(given))


def check_notifiers(draft: Draft) -> Iterator[Problem]:
    for hook in Hook:
        given = getattr(draft.form, hook)
        for number, notifier in enumerate(_listed(given)):
            path = (hook.value, str(number)) if isinstance(given, list | tuple) else (hook.value,)
            if isinstance(notifier, Mapping):
                yield from _check_notifier(notifier, path, draft.project)
            else:
                yield Problem(
                    path, show(notifier), f"{MAPPING}, such as {{notifier: {NOTIFIER_SHAPE.rpartition(' ')[2]}}}"
                )


def _listed(given: object) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else (given,)


def _check_notifier(given: Mapping[str, Any], path: FieldPath, project: Path) -> Iterator[Problem]:
    for name in given:
        if name not in NOTIFIER_FIELDS:
            yield Problem((*path, name), show(given[name]), suggest(name, NOTIFIER_FIELDS))
    arguments = given.get("arguments", {})
    if not isinstance(arguments, Mapping):
        yield Problem((*path, "arguments"), show(arguments), MAPPING)
    elif not _is_json(arguments):
        yield Problem((*path, "arguments"), show(arguments), TEXTS["invalid-json-value"])
    notifier = given.get("notifier")
    if not isinstance(notifier, str) or not SHAPE.fullmatch(notifier):
        yield Problem(
            (*path, "notifier"), show(notifier), NOTIFIER_SHAPE if notifier is not None else f"needed: {NOTIFIER_SHAPE}"
        )
    else:
        yield from _check_notifier_class(notifier, (*path, "notifier"), project)


def _is_json(arguments: Mapping[str, Any]) -> bool:
    try:
        NotifierDeclaration(notifier="", arguments=arguments)
    except ValidationError:
        return False
    return True


def _check_notifier_class(notifier: str, path: FieldPath, project: Path) -> Iterator[Problem]:
    if problem := class_problem(notifier, project):
        yield Problem(path, *problem)


def class_problem(given: str, project: Path) -> tuple[str, str] | None:
    """What is wrong with a class as `module:Class`, and what is allowed; None when it is fine."""
    module, _, wanted = given.partition(":")
    if not SHAPE.fullmatch(given):
        return show(given), "module:Class, such as airflow.sdk:CronDataIntervalTimetable"
    try:
        names = _names_in(module, project)
    except (SyntaxError, ValueError, OSError) as problem:
        return _unparsable(given, problem)
    if names is None:
        return show(given), f"a class of a module that is installed or in the project; not {module}"
    if names and wanted not in names:
        return show(given), f"a class of {module}: {suggest(wanted, tuple(sorted(names)))}"
    return None


def _names_in(module: str, project: Path) -> frozenset[str] | None:
    """What the module defines or imports by name; nothing if that cannot be told without running it. None if there is
    no such module, where a task would look for it.
    """
    for folder in (*code_folders(project), *map(Path, filter(None, sys.path))):
        place = folder.joinpath(*module.split("."))
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            found = load_module(module, folder)
            return _names_of(found.tree) if found else None
    return None


def _names_of(tree: ast.Module) -> frozenset[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.ImportFrom)]
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes):
        return frozenset()
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    imported = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    return frozenset({*classes, *(alias.asname or alias.name for alias in imported)})
