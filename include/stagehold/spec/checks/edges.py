"""What must hold between stages: edges, keys, partition counts, output types."""

from __future__ import annotations

from collections.abc import Iterator

from stagehold.model.keys.key_groups import HIGHEST, default_max_parallelism
from stagehold.model.units import AUTO
from stagehold.spec.checks.shares import check_shares
from stagehold.spec.draft import Draft
from stagehold.spec.form import show, suggest
from stagehold.spec.graph import key_of
from stagehold.spec.pipeline import Exchange, InputForm, OutputType
from stagehold.spec.yaml import Problem


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
