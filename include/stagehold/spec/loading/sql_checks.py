"""A stage's query, checked by its words: nothing of it is run, and no Spark is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stagehold.code.project import read_sql
from stagehold.code.sql_columns import selected_columns
from stagehold.code.sql_job import (
    OF_THE_RUN,
    PARAMS,
    SUFFIX,
    WrittenStatement,
    is_text,
    module_of,
    names_of_markers,
    statements,
)
from stagehold.code.sql_text import Intent, is_dynamic, names_in, statement, tokens
from stagehold.spec.draft import Draft
from stagehold.spec.form import StageForm, show, suggest
from stagehold.spec.loading.variables import VARIABLE
from stagehold.spec.settings.output_settings import NO_NAME, fit_name, is_fit_name
from stagehold.spec.settings.run_settings import Effects
from stagehold.spec.yaml import FieldPath, Problem

FILE = f"a file of SQL below the project, such as sql/clean{SUFFIX}"


def check_sql(draft: Draft, name: str, sql: str, frames: Sequence[str] | None) -> Iterator[Problem]:
    """``frames`` are names of the frames that the stage passes; None while they are not known."""
    path, file = ("stages", name, "sql"), draft.file_of_project if is_text(sql) else sql
    if file is None:
        yield Problem(path, show(sql), f"{FILE}; a query itself may stand in a pipeline's file below {draft.project}")
        return
    if not is_text(sql) and (
        not file.endswith(SUFFIX) or Path(file).is_absolute() or ".." in Path(file).parts or ":" in file
    ):
        yield Problem(path, show(file), f"{FILE}, or a query, such as SELECT * FROM source")
        return
    try:
        text = read_sql(module_of(sql, name, file), draft.project)
    except FileNotFoundError:
        there = sorted(found.relative_to(draft.project).as_posix() for found in _files(draft.project / file))
        yield Problem(path, f"{show(file)}, which is not there", f"{FILE}; there are {suggest(file, tuple(there))}")
    except (OSError, ValueError) as error:
        yield Problem(path, f"{show(file)}, which cannot be read ({error})", FILE)
    else:
        stage = draft.stages[name]
        yield from _check_statements(path, file, statements(text), stage.effects or draft.form.effects)
        yield from _check_markers(path, file, text, (*draft.form.params, *stage.params))
        yield from _check_no_variables(path, file, text)
        yield from _check_frames(path, file, text, frames or ())
        yield from _check_state(path, file, stage)
        if draft.types[name].stored:
            yield from _check_names(path, file, text)


def _files(missing: Path) -> Iterator[Path]:
    return missing.parent.glob(f"*{SUFFIX}")


def _check_statements(
    path: FieldPath, file: str, found: Sequence[WrittenStatement], effects: Effects
) -> Iterator[Problem]:
    if not found:
        yield Problem(path, f"{show(file)} without a statement", "a query, such as SELECT * FROM source")
        return
    for written in found[:-1]:
        said = statement(written.text)
        if said.intent is Intent.WRITES and effects is not Effects.ALLOWED:
            given = f"{said.verb} in {file}, line {written.line}"
            yield Problem(path, given, "queries and what ends with the call; for what lasts, `effects: allowed`")
    last = statement(found[-1].text)
    if last.intent is not Intent.QUERY:
        given = f"{last.verb} at the end of {file}, line {found[-1].line}"
        yield Problem(path, given, "a query as the last statement: it is the output")


def _check_markers(path: FieldPath, file: str, text: str, params: Sequence[str]) -> Iterator[Problem]:
    known = (*OF_THE_RUN, *(f"{PARAMS}{name}" for name in params))
    for marker in names_of_markers(text):
        if marker not in known:
            given = marker if marker == "?" else f":{marker}"
            yield Problem(path, f"{given} in {file}", f"behind a colon: {suggest(marker, known)}")


def _check_no_variables(path: FieldPath, file: str, text: str) -> Iterator[Problem]:
    """A query gets values bound, and never pasted: what a variable says reaches it as a parameter."""
    words = tokens(text)
    for found in VARIABLE.finditer(text):
        if any(word.start <= found.start() < word.end for word in words):
            name, line = found[2], text[: found.start()].count("\n") + 1
            allowed = f":{PARAMS}{name}, a value that is bound, with `params: {{{name}: {found[0]}}}` of the stage"
            yield Problem(path, f"{found[0]} in {file}, line {line}", allowed)


def _check_frames(path: FieldPath, file: str, text: str, frames: Sequence[str]) -> Iterator[Problem]:
    unnamed = [] if is_dynamic(text) else [name for name in frames if name not in names_in(text)]
    if unnamed:
        yield Problem(path, f"{file}, which does not name {', '.join(unnamed)}", f"a query of {', '.join(frames)}")


def _check_names(path: FieldPath, file: str, text: str) -> Iterator[Problem]:
    """Columns of the output that no table can have, as far as the query shows what they are called."""
    for written in statements(text)[-1:]:
        for name, expression, start in selected_columns(written.text):
            called = expression if name is None else name
            if name is None or not is_fit_name(name):
                line = written.line + written.text[:start].count("\n")
                given = f"a column called {show(called)} in {file}, line {line}"
                yield Problem(path, given, f"a name that a table can have: `AS {fit_name(called)}`; {NO_NAME}")


def _check_state(path: FieldPath, file: str, stage: StageForm) -> Iterator[Problem]:
    if stage.state:
        yield Problem(path, f"{file} beside `state`", "a job: a function of Python, which puts what it keeps")
