from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.plan.split.regions import stage_regions
from stagehold.spec.outputs import (
    StageExchange,
    exchange_types,
    output_types,
)
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.output_settings import ReleasedBy, TypeReason
from stagehold.spec.settings.run_settings import ExecutionMode

PROMISES = [
    # type, consumed while produced, re-consumable, bounded, persistent, released by
    (OutputType.BLOCKING, False, True, False, False, ReleasedBy.SCHEDULER),
    (OutputType.BLOCKING_PERSISTENT, False, True, False, True, ReleasedBy.SCHEDULER),
    (OutputType.PIPELINED, True, False, False, False, ReleasedBy.PRODUCER),
    (OutputType.PIPELINED_BOUNDED, True, False, True, False, ReleasedBy.PRODUCER),
]


@pytest.mark.parametrize(
    ("output_type", "while_produced", "reconsumable", "bounded", "persistent", "released_by"), PROMISES
)
def test_each_type_keeps_its_promises(output_type, while_produced, reconsumable, bounded, persistent, released_by):
    assert output_type.consumed_while_produced is while_produced
    assert output_type.reconsumable is reconsumable
    assert output_type.bounded is bounded
    assert output_type.persistent is persistent
    assert output_type.released_by is released_by


def test_every_type_has_properties_and_the_stored_ones_are_those_not_consumed_while_produced():
    assert {kind for kind in OutputType if not kind.consumed_while_produced} == {
        kind for kind in OutputType if kind.stored
    }


PIPELINED, FALLBACK, FORCED, BATCH, BATCH_FORCED, AUTO = ExecutionMode
ARROWS = {">": Exchange.FORWARD, "*": Exchange.KEYED}


def exchanges(text):
    """Exchanges as "a>b" (forward) and "a*b" (keyed)."""
    return [StageExchange(word[0], word[2], ARROWS[word[1]]) for word in text.split()]


def shown(types):
    """Exchanges that flow, as text."""
    signs = {exchange: sign for sign, exchange in ARROWS.items()}
    return " ".join(
        f"{e.producer}{signs[e.exchange]}{e.reader}" for e, kind in types.items() if kind is OutputType.PIPELINED
    )


# source s, map m; m is reduced (r) and filtered (f), both are joined (j); j is mapped (x) and grouped (g) with a
# reduction (q) of f; k, l and n only write.
CLOSED = "s>m m*r m>f r>k r*j f*j f*q j>x x>l j*g q*g g>n"
OPEN = "s>m m>a m*b m>c a>k b>l c>n"

# mode, exchanges -> exchanges that flow
TABLE = [
    (PIPELINED, CLOSED, "s>m r>k r*j j>x x>l j*g q*g g>n"),
    (FALLBACK, CLOSED, "s>m r>k r*j j>x x>l j*g q*g g>n"),
    (AUTO, CLOSED, "s>m r>k r*j j>x x>l j*g q*g g>n"),
    (FORCED, CLOSED, CLOSED),
    (BATCH, CLOSED, "s>m r>k j>x x>l g>n"),
    (BATCH_FORCED, CLOSED, ""),
    (PIPELINED, OPEN, OPEN),
    (FORCED, OPEN, OPEN),
    (BATCH, OPEN, "s>m m>a m>c a>k b>l c>n"),
    (BATCH_FORCED, OPEN, ""),
    (PIPELINED, "a>b a>c a>d b>e c>e", "a>d b>e c>e"),
    (PIPELINED, "a>b a>c b>c", "b>c"),
    (PIPELINED, "a>c b>c", "a>c b>c"),
]


@pytest.mark.parametrize(("mode", "graph", "flowing"), TABLE)
def test_the_type_of_every_exchange(mode, graph, flowing):
    assert shown(exchange_types(exchanges(graph), mode)) == flowing


def chosen_of(graph, mode, given=None, stored="", split=""):
    return output_types(
        exchanges(graph), mode, given=given or {}, stored=dict.fromkeys(stored, TypeReason.GATE), split=split
    )


def flowing_outputs(graph, mode, given=None, stored=""):
    chosen = chosen_of(graph, mode, given, stored)
    return "".join(sorted(stage for stage, (kind, _) in chosen.items() if not kind.stored))


# Branches of two producers that cross: x and z flow to y, what x feeds through a stored output comes back to what z
# feeds.
ZIGZAG = "x>u x>y z>y z>w v>w u>v"

OUTPUTS = [
    ("one type for all readers", BATCH, "a>b a*c", {}, "", ""),
    ("forward to all readers flows", BATCH, "a>b a>c", {}, "", "a"),
    ("a gate needs it stored", BATCH, "a>b b>c", {}, "a", "b"),
    ("a shuffle flows where the mode says so", PIPELINED, "a*b b>c", {}, "", "ab"),
    ("also when it is forced", FORCED, "a*b b>c", {}, "", "ab"),
    ("and is stored in batch", BATCH, "a*b b>c", {}, "", "b"),
    ("a branch of shuffles that is joined again is stored", PIPELINED, "a*b a*c b>d c>d", {}, "", "bc"),
    ("so is one with a stored path", PIPELINED, "a>b a*c b>d c>d", {"b": OutputType.BLOCKING}, "", "c"),
    (
        "a given type stays",
        PIPELINED,
        "a>b b>c",
        {"a": OutputType.BLOCKING_PERSISTENT, "c": OutputType.BLOCKING},
        "",
        "b",
    ),
    (
        "also one that flows where the mode would store",
        BATCH_FORCED,
        "a>b b>c",
        {"b": OutputType.PIPELINED_BOUNDED},
        "",
        "b",
    ),
    ("a branch that is joined again is stored", PIPELINED, "a>b a>c b>d c>d", {}, "", "bc"),
    ("but flows when forced", FORCED, "a>b a>c b>d c>d", {}, "", "abc"),
    ("crossing branches are cut at the first", PIPELINED, ZIGZAG, {"u": OutputType.BLOCKING}, "", "vz"),
    (
        "unless their types are given",
        PIPELINED,
        ZIGZAG,
        {"x": OutputType.PIPELINED, "u": OutputType.BLOCKING},
        "",
        "vx",
    ),
    (
        "all of them: then it stays refused",
        PIPELINED,
        ZIGZAG,
        dict.fromkeys("xz", OutputType.PIPELINED) | {"u": OutputType.BLOCKING},
        "",
        "vxz",
    ),
]


@pytest.mark.parametrize(
    ("mode", "graph", "given", "stored", "flowing"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS]
)
def test_the_type_of_every_output(mode, graph, given, stored, flowing):
    assert flowing_outputs(graph, mode, given, stored) == flowing


GRAPHS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.sampled_from(list(ARROWS.values()))), max_size=12)


NAMES = "abcdefghijk"


def edges_of(reads):
    found = {(NAMES[producer], NAMES[producer + step]): exchange for producer, step, exchange in reads}
    return [StageExchange(producer, reader, exchange) for (producer, reader), exchange in found.items()]


@given(GRAPHS)
def test_what_flows_in_batch_flows_pipelined_and_all_of_it_when_forced(reads):
    edges = edges_of(reads)
    flowing = [
        {name for name, (kind, _) in output_types(edges, mode, given={}, stored={}).items() if not kind.stored}
        for mode in (BATCH_FORCED, BATCH, PIPELINED, FORCED)
    ]
    assert flowing[0] == set()
    assert flowing[3] == {edge.producer for edge in edges}
    assert flowing[1] <= flowing[3]
    assert flowing[2] <= flowing[3]


B, BOUNDED = OutputType.BLOCKING, OutputType.PIPELINED_BOUNDED
REASONS = [
    # mode, exchanges, given, split -> type and reason of a
    (PIPELINED, "a*b", {}, "", (OutputType.PIPELINED, TypeReason.MODE)),
    (PIPELINED, "a*b a*c", {}, "", (BOUNDED, TypeReason.MODE)),
    (PIPELINED, "a>b a>c", {}, "", (OutputType.PIPELINED, TypeReason.MODE)),
    (PIPELINED, "a>b a>c b>d c>d", {}, "", (B, TypeReason.JOINED_AGAIN)),
    (BATCH, "a>b a>c b>d c>d", {}, "", (B, TypeReason.JOINED_AGAIN)),
    (BATCH, "a*b", {}, "", (B, TypeReason.MODE)),
    (BATCH_FORCED, "a>b", {}, "", (B, TypeReason.MODE)),
    (PIPELINED, "a*b", {"a": B}, "", (B, TypeReason.DECLARED)),
    (FORCED, "a>b a*c", {"a": B}, "", (B, TypeReason.DECLARED)),
    (PIPELINED, "a*b", {}, "a", (B, TypeReason.TASKS)),
    (FORCED, "a*b b>c", {}, "c", (B, TypeReason.TASKS)),
    (PIPELINED, "a>b", {}, "a", (OutputType.PIPELINED, TypeReason.MODE)),
    (PIPELINED, "a*b x>y", {}, "y", (OutputType.PIPELINED, TypeReason.MODE)),
    (PIPELINED, "a>u a>y z>y z>w v>w u>v", {"u": B}, "", (B, TypeReason.DEADLOCK)),
]


@pytest.mark.parametrize(("mode", "graph", "given", "split", "chosen"), REASONS)
def test_the_reason_of_a_type(mode, graph, given, split, chosen):
    assert chosen_of(graph, mode, given, split=split)["a"] == chosen


def test_what_has_to_be_stored_is_with_the_reason_that_is_given():
    assert chosen_of("a*b", PIPELINED, stored="a")["a"] == (B, TypeReason.GATE)


@given(GRAPHS, st.sampled_from([PIPELINED, BATCH, BATCH_FORCED]), st.sets(st.sampled_from("abcdef")))
def test_what_the_safe_modes_choose_never_makes_regions_wait_for_each_other(reads, mode, blocking):
    edges = edges_of(reads)
    types = output_types(edges, mode, given=dict.fromkeys(blocking, OutputType.BLOCKING), stored={}, split="")
    stages = tuple(
        Stage(
            name=name,
            job="jobs.x:y",
            partitions=1,
            max_parallelism=128,
            inputs=tuple(Input(stage=edge.producer, exchange=edge.exchange) for edge in edges if edge.reader == name),
            output=Output(type=types.get(name, (OutputType.BLOCKING, TypeReason.UNREAD))[0]),
        )
        for name in NAMES
    )
    assert stage_regions(Pipeline(name="p", file="p.yaml", stages=stages))
