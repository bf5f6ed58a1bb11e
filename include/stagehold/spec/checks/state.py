"""What must hold of the state that a stage keeps from interval to interval."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stagehold.model.keys.interval_key import ONCE
from stagehold.model.stage_state import StateKind
from stagehold.spec.draft import Draft
from stagehold.spec.form import show, suggest
from stagehold.spec.graph import key_of
from stagehold.spec.pipeline import CommitterKind, Exchange, StateForm
from stagehold.spec.yaml import FieldPath, Problem

STATE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # ours begin with an underscore


def check_state(draft: Draft, name: str) -> Iterator[Problem]:
    stage, path = draft.stages[name], ("stages", name, "state")
    if not stage.state:
        return
    yield from _check_order(draft, path)
    yield from _check_output(draft, name)
    for state, form in stage.state.items():
        if draft.is_doubtful(*path, state):
            continue
        if not STATE_NAME.fullmatch(state) or len(state) > 63:
            yield Problem((*path, state), show(state), "lower-case letters, digits and single underscores, at most 63")
        yield from _check_columns(form, (*path, state))
        yield from _check_key(draft, name, form, (*path, state))


def _check_order(draft: Draft, path: FieldPath) -> Iterator[Problem]:
    schedule = draft.form.schedule
    if not draft.is_broken("schedule") and schedule in (None, ONCE):
        yield Problem(path, f"state, with the schedule {show(schedule)}", "a schedule, which puts intervals in order")


def _check_output(draft: Draft, name: str) -> Iterator[Problem]:
    stage, output = draft.stages[name], ("stages", name, "output")
    if not draft.types[name].stored and not draft.is_broken(*output, "type"):
        yield Problem((*output, "type"), draft.types[name], "blocking or blocking_persistent, with state")
    if stage.output.committer is CommitterKind.DELTA_SPARK:
        yield Problem((*output, "committer"), show(str(stage.output.committer)), "staged, with state")
    if stage.per_wave:
        yield Problem(("stages", name, "per_wave"), "true", "false with state, which goes by partition")


def _check_columns(form: StateForm, path: FieldPath) -> Iterator[Problem]:
    if not form.columns:
        yield Problem((*path, "columns"), "nothing", "names and types of one column or more")
    for column in form.columns:
        if not COLUMN_NAME.fullmatch(column):
            yield Problem((*path, "columns", column), show(column), "letters, digits and underscores, a letter first")
    lower = [column.lower() for column in form.columns]
    twice = sorted({column for column in lower if lower.count(column) > 1})
    if twice:
        yield Problem((*path, "columns"), f"{twice[0]} twice", "each name once (case does not count)")


def _check_key(draft: Draft, name: str, form: StateForm, path: FieldPath) -> Iterator[Problem]:
    place, known = (*path, "key"), tuple(form.columns)
    if form.kind is not StateKind.KEYED:
        if form.key:
            yield Problem(place, show(form.key), f"a key only where kind is keyed, not {form.kind}")
        return
    unknown = [column for column in form.key if column not in known]
    if not form.key:
        yield Problem(place, "nothing", f"one of its columns or more: {', '.join(known)}")
    elif unknown and known:
        yield Problem(place, show(unknown[0]), f"its columns: {suggest(unknown[0], known)}")
    elif not draft.is_doubtful("stages", name, "inputs"):
        yield from _check_exchange(draft, name, form, path)


def _check_exchange(draft: Draft, name: str, form: StateForm, path: FieldPath) -> Iterator[Problem]:
    """All rows of a key are in one partition only where they were dealt by it."""
    stage = draft.stages[name]
    keyed = any(edge.exchange is Exchange.KEYED for edge in stage.inputs.values())
    wanted = len(key_of(stage))
    if not keyed and draft.counts.get(name) != 1:
        others = "split, union or broadcast; keyed only where an input is keyed, or with one partition"
        yield Problem((*path, "kind"), "'keyed'", others)
    elif keyed and len(form.key) != wanted:
        columns = f"{wanted} column(s), as in the key of {name}, so that equal keys meet"
        yield Problem((*path, "key"), f"{len(form.key)} column(s)", columns)
