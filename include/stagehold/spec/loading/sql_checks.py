"""Checks of a stage's file of SQL, by its words: nothing of it is run, and no Spark is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stagehold.code.sql_job import OF_THE_RUN, PARAMS, SUFFIX, WrittenStatement, is_sql, names_of_markers, statements
from stagehold.code.sql_text import Intent, is_dynamic, names_in, statement
from stagehold.spec.draft import Draft
from stagehold.spec.form import StageForm, show, suggest
from stagehold.spec.settings.run_settings import Effects
from stagehold.spec.yaml import FieldPath, Problem

FILE = f"a file of SQL below the project, such as sql/clean{SUFFIX}"


def check_sql(draft: Draft, name: str, file: str, frames: Sequence[str] | None) -> Iterator[Problem]:
    """``frames`` are names of the frames that the stage passes; None while they are not known."""
    path = ("stages", name, "sql")
    if not is_sql(file) or Path(file).is_absolute() or ".." in Path(file).parts or ":" in file:
        yield Problem(path, show(file), FILE)
        return
    try:
        text = (draft.project / file).read_text(encoding="utf-8")
    except FileNotFoundError:
        there = sorted(found.relative_to(draft.project).as_posix() for found in _files(draft.project / file))
        yield Problem(path, f"{show(file)}, which is not there", f"{FILE}; there are {suggest(file, tuple(there))}")
    except (OSError, UnicodeDecodeError) as error:
        yield Problem(path, f"{show(file)}, which cannot be read ({error})", FILE)
    else:
        stage = draft.stages[name]
        yield from _check_statements(path, file, statements(text), stage.effects or draft.form.effects)
        yield from _check_markers(path, file, text, (*draft.form.params, *stage.params))
        yield from _check_frames(path, file, text, frames or ())
        yield from _check_state(path, file, stage)


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


def _check_frames(path: FieldPath, file: str, text: str, frames: Sequence[str]) -> Iterator[Problem]:
    unnamed = [] if is_dynamic(text) else [name for name in frames if name not in names_in(text)]
    if unnamed:
        yield Problem(path, f"{file}, which does not name {', '.join(unnamed)}", f"a query of {', '.join(frames)}")


def _check_state(path: FieldPath, file: str, stage: StageForm) -> Iterator[Problem]:
    if stage.state:
        yield Problem(path, f"{file} beside `state`", "a job: a function of Python, which puts what it keeps")
