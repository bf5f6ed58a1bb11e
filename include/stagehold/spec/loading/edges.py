"""What must hold between stages, and between intervals: edges, keys, partition counts, output types, state."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stagehold.errors import InvalidInterval
from stagehold.model.keys.interval_key import ONCE, interval_key, previous_key
from stagehold.model.keys.key_groups import HIGHEST, default_max_parallelism
from stagehold.model.stage_state import StateKind
from stagehold.model.units import AUTO
from stagehold.spec.draft import Draft, key_of
from stagehold.spec.form import show, suggest
from stagehold.spec.loading.task_checks import check_shares
from stagehold.spec.pipeline import Exchange, InputForm, OutputType
from stagehold.spec.settings.output_settings import CommitterKind, StateForm
from stagehold.spec.yaml import FieldPath, Problem

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")  # single underscores: two join the stage names of a region
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # ours begin with an underscore


def check_edges(draft: Draft) -> Iterator[Problem]:
    for cycle in draft.cycles:
        yield Problem(
            ("stages", cycle[-1], "inputs", cycle[-2]),
            f"the cycle {' -> '.join(cycle)}",
            "inputs that do not lead back to the stage",
        )
    for name in draft.stages:
        for producer, edge in draft.edges(name).items():
            yield from _check_edge(draft, name, producer, edge)
        yield from _check_frames(draft, name)
        yield from _check_key(draft, name)
        yield from _check_partitions(draft, name)
        yield from _check_per_wave(draft, name)
        yield from _check_output(draft, name)
    yield from check_shares(draft)


def _check_edge(draft: Draft, name: str, producer: str, edge: InputForm) -> Iterator[Problem]:
    path = ("stages", name, "inputs", producer)
    if producer not in draft.declared:
        yield Problem(path, show(producer), f"a stage: {suggest(producer, draft.declared)}")
    keyed = edge.exchange is Exchange.KEYED
    if keyed != bool(edge.key) and not draft.is_broken(*path, "key"):
        yield Problem(
            (*path, "key"), show(edge.key or None), "columns of the producer for a keyed exchange, and only there"
        )
    read, made = None if draft.auto.get(name) == name else _count(draft, name), _count(draft, producer)
    if edge.exchange is Exchange.FORWARD and read and made and read != made:
        yield Problem(
            path, f"forward from {made} partition(s) to {read}", "equal counts, or keyed, broadcast or gather"
        )
    if edge.exchange is Exchange.GATHER and read not in (None, "1"):
        yield Problem(
            path, f"gather into {read} partitions", "one partition; broadcast gives everything to each of several"
        )


def _check_frames(draft: Draft, name: str) -> Iterator[Problem]:
    """Whether the function can tell its inputs apart by the names that these are given."""
    taken: dict[str, str] = {}
    for producer, edge in draft.stages[name].inputs.items():
        path, given_as = ("stages", name, "inputs", producer, "frame"), edge.frame or producer
        other = taken.setdefault(given_as, producer)
        if other != producer:
            yield Problem(path, show(given_as), f"a name of its own; the input {other} is given as {given_as}, too")
        elif edge.frame and (edge.frame in ("ctx", "source") or not COLUMN_NAME.fullmatch(edge.frame)):
            yield Problem(path, show(edge.frame), "the name of a parameter: letters, digits and underscores; not ctx")


def _check_key(draft: Draft, name: str) -> Iterator[Problem]:
    stage, path = draft.stages[name], ("stages", name, "key")
    keys = {producer: edge.key for producer, edge in stage.inputs.items() if edge.exchange is Exchange.KEYED}
    if draft.is_doubtful(*path) or draft.is_doubtful("stages", name, "inputs") or not all(keys.values()):
        return
    if stage.key and not keys:
        yield Problem(path, show(stage.key), "a key only where an input is keyed")
    wanted = len(key_of(stage))
    for producer, key in keys.items():
        if len(key) != wanted:
            place = ("stages", name, "inputs", producer, "key")
            yield Problem(
                place, f"{len(key)} column(s)", f"{wanted} column(s), as in the key of {name}, so that equal keys meet"
            )


def _check_partitions(draft: Draft, name: str) -> Iterator[Problem]:
    stage, path = draft.stages[name], ("stages", name, "partitions")
    if draft.is_broken(*path):
        return
    if stage.partitions == AUTO or name in draft.auto:
        yield from _check_auto(draft, name)
        return
    splits = stage.source.count if stage.source else None
    if stage.partitions and splits and stage.partitions != splits:
        yield Problem(path, show(stage.partitions), f"source.splits, {splits}; or leave it out")
    keyed = [producer for producer, edge in draft.edges(name).items() if edge.exchange is Exchange.KEYED]
    count = draft.counts[name]
    settled = any(edge.exchange is Exchange.FORWARD for edge in stage.inputs.values()) or draft.is_doubtful(
        "stages", name, "inputs"
    )
    if keyed and count is None and not settled:
        yield Problem(path, "nothing", f"a whole number, 1 or more, because {keyed[0]} is read keyed")
    most = stage.max_parallelism or default_max_parallelism(min(count or 1, HIGHEST))
    if count and count > most and not draft.is_broken("stages", name, "max_parallelism"):
        yield Problem(path, show(count), f"at most max_parallelism, {most}")


def _check_auto(draft: Draft, name: str) -> Iterator[Problem]:
    """A number can be decided when the bytes of the inputs are on record, and one place decides it."""
    stage, root = draft.stages[name], draft.auto[name]
    if root == name:
        yield from _check_auto_inputs(draft, name)
    most = draft.stages[root].max_parallelism or default_max_parallelism(1)
    if (
        stage.max_parallelism
        and stage.max_parallelism < most
        and not draft.is_broken("stages", root, "max_parallelism")
    ):
        path = ("stages", name, "max_parallelism")
        yield Problem(
            path, show(stage.max_parallelism), f"at least that of {root}, {most}, whose number of partitions it takes"
        )


def _check_auto_inputs(draft: Draft, name: str) -> Iterator[Problem]:
    path, edges = ("stages", name, "partitions"), draft.edges(name)
    source = draft.stages[name].source
    if source is not None and source.by_size:
        if draft.stages[name].partitions is not None:
            yield Problem(path, show(draft.stages[name].partitions), "nothing: source.splits says how large they are")
        return
    if draft.is_doubtful("stages", name, "inputs"):
        return
    settling = {
        edge.exchange: producer
        for producer, edge in edges.items()
        if edge.exchange in (Exchange.FORWARD, Exchange.GATHER)
    }
    for exchange, producer in settling.items():
        yield Problem(path, AUTO, f"nothing: the {exchange} input {producer} settles the number")
    if not settling and all(edge.exchange is not Exchange.KEYED for edge in edges.values()):
        yield Problem(path, AUTO, "a whole number, 1 or more; auto only where an input is keyed")
    keyed = [
        producer for producer, edge in edges.items() if edge.exchange is Exchange.KEYED and producer in draft.types
    ]
    unstored = [producer for producer in keyed if not draft.types[producer].stored]
    if unstored:
        yield Problem(
            path,
            AUTO,
            f"a whole number, 1 or more; the bytes of {unstored[0]} are never known, since its output is not stored",
        )


def _count(draft: Draft, name: str) -> str | None:
    """A stage's number of partitions as it is to be compared and shown, None where the file does not tell."""
    if name in draft.auto:
        return f"auto ({draft.auto[name]})"
    count = draft.counts.get(name)
    return None if count is None else str(count)


def _check_per_wave(draft: Draft, name: str) -> Iterator[Problem]:
    exchanges = [edge.exchange for edge in draft.edges(name).values()]
    if draft.stages[name].per_wave and set(exchanges) - {Exchange.FORWARD, Exchange.BROADCAST}:
        others = ", ".join(sorted({exchange.value for exchange in exchanges if exchange is not Exchange.FORWARD}))
        yield Problem(
            ("stages", name, "per_wave"),
            f"true with {others}",
            "true only where partition i is made from partition i: a source, or forward inputs",
        )


def _check_output(draft: Draft, name: str) -> Iterator[Problem]:
    """A pipelined output is never stored, so nobody may need it later, or judged."""
    path = ("stages", name, "output", "type")
    if draft.is_broken(*path) or draft.types[name] not in (OutputType.PIPELINED, OutputType.PIPELINED_BOUNDED):
        return
    readers = [reader for reader, stage in draft.stages.items() if name in stage.inputs]
    if not readers:
        yield Problem(
            path, "pipelined, read by no stage", "blocking or blocking_persistent for an output without readers"
        )
    if draft.stages[name].gate is not None:
        yield Problem(
            ("stages", name, "gate"),
            show(draft.stages[name].gate),
            "no gate on a pipelined output: it is never stored to be judged",
        )


def check_state(draft: Draft, name: str) -> Iterator[Problem]:
    """What must hold of the state that a stage keeps from interval to interval."""
    stage, path = draft.stages[name], ("stages", name, "state")
    yield from _check_beginning(draft, name)
    if not stage.state:
        return
    yield from _check_order(draft, path)
    yield from _check_output_with_state(draft, name)
    for state, form in stage.state.items():
        if draft.is_doubtful(*path, state):
            continue
        if not is_name(state):
            yield Problem((*path, state), show(state), "lower-case letters, digits and single underscores, at most 63")
        yield from _check_columns(form, (*path, state))
        yield from _check_state_key(draft, name, form, (*path, state))


def _check_order(draft: Draft, path: FieldPath) -> Iterator[Problem]:
    schedule = draft.form.schedule.cron
    if not draft.is_broken("schedule") and schedule in (None, ONCE):
        yield Problem(path, f"state, with the schedule {show(schedule)}", "a schedule, which puts intervals in order")


def _check_beginning(draft: Draft, name: str) -> Iterator[Problem]:
    stage, schedule, path = draft.stages[name], draft.form.schedule.cron, ("stages", name, "state_begins")
    if stage.state_begins is None or draft.is_broken("schedule"):
        return
    if not stage.state:
        yield Problem(path, show(stage.state_begins), "nothing without state")
    elif schedule not in (None, ONCE) and not _is_due(stage.state_begins, schedule):
        yield Problem(path, show(stage.state_begins), f"an interval of the schedule {schedule}, such as 2026-11-01")


def _is_due(interval: str, schedule: str) -> bool:
    try:
        return bool(previous_key(interval_key(interval, schedule), schedule))
    except InvalidInterval:
        return False


def _check_output_with_state(draft: Draft, name: str) -> Iterator[Problem]:
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


def _check_state_key(draft: Draft, name: str, form: StateForm, path: FieldPath) -> Iterator[Problem]:
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


def is_name(text: str) -> bool:
    """Whether stages, states and pipelines may have that name."""
    return len(text) <= 63 and NAME.fullmatch(text) is not None
