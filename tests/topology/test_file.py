from __future__ import annotations

import contextlib
import json
import random

import pytest

from stagehold.errors import InvalidTopology
from stagehold.model.records import AttemptState
from stagehold.spec.pipeline import OutputType
from stagehold.topology.file import parse_topology
from stagehold.topology.topology import ExchangeGroup, ResultPartition, Vertex

VALID = {
    "vertices": ["a", {"id": "b", "state": "FINISHED"}, {"id": "c", "state": "created", "co_location": "x"}],
    "partitions": [
        {"id": "p", "producer": "a", "type": "BLOCKING", "consumers": ["b", "c"]},
        {"id": "q", "producer": "b", "type": "pipelined_bounded", "consumers": ["c"]},
        {"id": "r", "producer": "c", "type": "BLOCKING_PERSISTENT"},
    ],
}


def parse(document):
    return parse_topology(json.dumps(document).encode(), file="graph.json")


def test_a_document_says_vertices_states_partitions_and_reads():
    topology, states = parse(VALID)
    assert topology.vertices == (Vertex("a", "a"), Vertex("b", "b"), Vertex("c", "c", co_location="x"))
    assert states == {"a": AttemptState.RUNNING, "b": AttemptState.FINISHED, "c": AttemptState.CREATED}
    assert topology.partitions[2] == ResultPartition("r", "c", OutputType.BLOCKING_PERSISTENT)
    assert topology.groups[0] == ExchangeGroup(("p",), ("b", "c"), OutputType.BLOCKING)


REFUSED = [
    ("not JSON", b"{", "document: got b'{'; allowed: Invalid JSON"),
    ("not UTF-8", b'{"vertices": ["\xff"]}', "allowed: Invalid JSON"),
    ("nested without end", b"[" * 100_000, "recursion limit"),
    ("no vertices", b"{}", "vertices: got nothing; allowed: a value; it is required"),
    ("a vertex that is a number", b'{"vertices": [1]}', "vertices[0]: got 1; allowed: an object"),
    (
        "a negative parallelism",
        b'{"vertices": [{"id": "a", "parallelism": -1}]}',
        "vertices[0].parallelism: got -1; allowed: no such field here",
    ),
    (
        "an unknown state",
        b'{"vertices": [{"id": "a", "state": "DONE"}]}',
        "vertices[0].state: got 'done'; allowed: 'created', 'scheduled'",
    ),
    (
        "an unknown type",
        b'{"vertices": ["a"], "partitions": [{"id": "p", "producer": "a", "type": "HYBRID_FULL"}]}',
        "partitions[0].type: got 'hybrid_full'; allowed: 'blocking', 'blocking_persistent', 'pipelined' or "
        "'pipelined_bounded'",
    ),
    (
        "an unknown vertex",
        b'{"vertices": ["a"], "partitions": [{"id": "p", "producer": "z", "type": "BLOCKING"}]}',
        "graph.json: partitions[0].producer: got 'z'; allowed: the id of a vertex",
    ),
]


@pytest.mark.parametrize(("document", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_told_with_file_field_given_and_allowed(document, text):
    with pytest.raises(InvalidTopology) as refused:
        parse_topology(document, file="graph.json")
    assert text in str(refused.value)


ODD_VALUES = [
    None,
    -1,
    0,
    1.5,
    True,
    "",
    "a",
    "z",
    "BLOCKING",
    "pipelined",
    "\x00",
    [],
    ["a"],
    [["a"]],
    {},
    {"id": "a"},
    "x" * 200,
    10**30,
]


def places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def mutated(chance):
    """VALID with one to three places replaced, removed, repeated or given a strange name."""
    document = json.loads(json.dumps(VALID))
    for _ in range(chance.randint(1, 3)):
        path = chance.choice([path for path in places(document) if path] or [None])
        if path is None:
            return document
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        change = chance.choice(["replace", "remove", "repeat", "rename"])
        if change == "replace":
            parent[path[-1]] = chance.choice(ODD_VALUES)
        elif change == "remove":
            del parent[path[-1]]
        elif isinstance(parent, list):
            parent.append(parent[path[-1]])
        else:
            parent[chance.choice(["id", "type", "consumers", "strange"])] = parent.pop(path[-1])
    return document


@pytest.mark.slow
def test_ten_thousand_mutations_are_read_or_refused_with_our_error():
    chance = random.Random(4)
    refused = 0
    for _ in range(10_000):
        try:
            parse(mutated(chance))
        except InvalidTopology:
            refused += 1
    assert 5_000 < refused < 10_000


def test_any_bytes_are_read_or_refused_with_our_error():
    chance = random.Random(5)
    text = json.dumps(VALID).encode()
    for _ in range(5_000):
        document = bytearray(text)
        for _ in range(chance.randint(1, 4)):
            document[chance.randrange(len(document))] = chance.randrange(256)
        with contextlib.suppress(InvalidTopology):
            parse_topology(bytes(document), file="graph.json")
