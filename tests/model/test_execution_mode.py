from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.execution_mode import StageExchange, exchange_types, mode_after_failure, output_types
from stagehold.model.spec import Exchange, ExecutionMode, Input, Output, OutputType, Pipeline, Stage
from stagehold.plan.regions import stage_regions

PIPELINED, FORCED, FALLBACK, BATCH, BATCH_FORCED = ExecutionMode
ARROWS = {">": Exchange.FORWARD, "*": Exchange.KEYED}


def exchanges(text):
    """Exchanges as "a>b" (forward) and "a*b" (keyed)."""
    return [StageExchange(word[0], word[2], ARROWS[word[1]]) for word in text.split()]


def shown(types):
    """Exchanges that flow, as text."""
    signs = {exchange: sign for sign, exchange in ARROWS.items()}
    return " ".join(f"{e.producer}{signs[e.exchange]}{e.reader}" for e, kind in types.items() if kind is OutputType.PIPELINED)


# source s, map m; m is reduced (r) and filtered (f), both are joined (j); j is mapped (x) and grouped (g) with a reduction (q) of f;
# k, l and n only write.
CLOSED = "s>m m*r m>f r>k r*j f*j f*q j>x x>l j*g q*g g>n"
OPEN = "s>m m>a m*b m>c a>k b>l c>n"

# mode, exchanges -> exchanges that flow
TABLE = [
    (PIPELINED, CLOSED, "s>m r>k r*j j>x x>l j*g q*g g>n"),
    (FORCED, CLOSED, CLOSED),
    (FALLBACK, CLOSED, "s>m r>k r*j j>x x>l j*g q*g g>n"),
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


@pytest.mark.parametrize("mode", list(ExecutionMode))
def test_only_the_fallback_changes_after_a_failure(mode):
    assert mode_after_failure(mode) is (BATCH if mode is FALLBACK else mode)


def flowing_outputs(graph, mode, given=None, stored=()):
    types = output_types(exchanges(graph), mode, given=given or {}, stored=stored)
    return "".join(sorted(stage for stage, kind in types.items() if not kind.stored))


# Branches of two producers that cross: x and z flow to y, what x feeds through a stored output comes back to what z feeds.
ZIGZAG = "x>u x>y z>y z>w v>w u>v"

OUTPUTS = [
    ("one type for all readers", BATCH, "a>b a*c", {}, "", ""),
    ("forward to all readers flows", BATCH, "a>b a>c", {}, "", "a"),
    ("a gate needs it stored", BATCH, "a>b b>c", {}, "a", "b"),
    ("a shuffle is stored even where it might flow", FORCED, "a*b b>c", {}, "", "b"),
    ("a given type stays", PIPELINED, "a>b b>c", {"a": OutputType.BLOCKING_PERSISTENT, "c": OutputType.BLOCKING}, "", "b"),
    ("also one that flows where the mode would store", BATCH_FORCED, "a>b b>c", {"b": OutputType.PIPELINED_BOUNDED}, "", "b"),
    ("a branch that is joined again is stored", PIPELINED, "a>b a>c b>d c>d", {}, "", "bc"),
    ("but flows when forced", FORCED, "a>b a>c b>d c>d", {}, "", "abc"),
    ("crossing branches are cut at the first", PIPELINED, ZIGZAG, {"u": OutputType.BLOCKING}, "", "vz"),
    ("unless their types are given", PIPELINED, ZIGZAG, {"x": OutputType.PIPELINED, "u": OutputType.BLOCKING}, "", "vx"),
    (
        "all of them: then it stays refused",
        PIPELINED,
        ZIGZAG,
        dict.fromkeys("xz", OutputType.PIPELINED) | {"u": OutputType.BLOCKING},
        "",
        "vxz",
    ),
]


@pytest.mark.parametrize(("mode", "graph", "given", "stored", "flowing"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS])
def test_the_type_of_every_output(mode, graph, given, stored, flowing):
    assert flowing_outputs(graph, mode, given, stored) == flowing


GRAPHS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.sampled_from(list(ARROWS.values()))), max_size=12)


@given(GRAPHS, st.sampled_from([PIPELINED, FALLBACK, BATCH, BATCH_FORCED]), st.sets(st.sampled_from("abcdef")))
def test_what_the_safe_modes_choose_never_makes_regions_wait_for_each_other(reads, mode, blocking):
    names = "abcdefghijk"
    found = {(names[producer], names[producer + step]): exchange for producer, step, exchange in reads}
    edges = [StageExchange(producer, reader, exchange) for (producer, reader), exchange in found.items()]
    types = output_types(edges, mode, given=dict.fromkeys(blocking, OutputType.BLOCKING), stored=())
    stages = tuple(
        Stage(
            name=name,
            job="jobs.x:y",
            partitions=1,
            max_parallelism=128,
            inputs=tuple(Input(stage=edge.producer, exchange=edge.exchange) for edge in edges if edge.reader == name),
            output=Output(type=types.get(name, OutputType.BLOCKING)),
        )
        for name in names
    )
    assert stage_regions(Pipeline(name="p", file="p.yaml", stages=stages))
