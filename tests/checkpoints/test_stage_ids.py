from __future__ import annotations

import pytest

from stagehold.checkpoints.stage_ids import find_renames, stage_shapes
from stagehold.spec.pipeline import Input, Pipeline, Stage
from stagehold.spec.settings.source import Source


def pipeline(*stages, **changed):
    """Stages as "name[#uid] function: input input"; one without inputs reads the path named like its function."""
    built = []
    for text in stages:
        head, _, inputs = text.partition(":")
        name, function = head.split()
        name, _, uid = name.partition("#")
        source = None if inputs.strip() else Source(kind="parquet", path=f"/raw/{function}", splits=2)
        job = function if "." in function else f"jobs.x:{function}"
        edges = tuple(Input(stage=stage) for stage in inputs.split())
        built.append(
            Stage(
                **{
                    "name": name,
                    "job": job.replace("/", ":"),
                    "uid": uid or None,
                    "source": source,
                    "inputs": edges,
                    "partitions": 2,
                    "max_parallelism": 128,
                    **changed,
                }
            )
        )
    return Pipeline(name="sample", file="sample.yaml", stages=tuple(built))


def ids(*stages, **changed):
    return {shape.name: shape.id for shape in stage_shapes(pipeline(*stages, **changed))}


BASE = ("a read", "b clean: a", "c join: a b")

CHANGED = ("z other", "a read2", "b scrub: z a", "c join: b a")


def test_a_name_is_the_id_whatever_else_changes():
    assert ids(*BASE) == {"a": "a", "b": "b", "c": "c"}
    after = ids(*CHANGED, partitions=4, key=("k",), params={"x": 1}, gate="g")
    assert {name: after[name] for name in "abc"} == ids(*BASE)


def test_a_uid_is_the_id_whatever_the_name():
    assert ids("a read", "b#mine clean: a")["b"] == ids("a read", "new#mine clean: a")["new"] == "mine"


def test_a_shape_reads_ids_and_places():
    a, _, c = stage_shapes(pipeline("a read", "b#mine clean: a", "c join: a b"))
    assert (a.reads, c.reads) == ({"/raw/read"}, {"a", "mine"})


RENAMES = [
    ("nothing changed", BASE, BASE, []),
    ("all were renamed", BASE, ("one read", "two clean: one", "three join: one two"), ["a one", "b two", "c three"]),
    ("one in the middle was renamed", BASE, ("a read", "two clean: a", "c join: a two"), ["b two"]),
    ("it was renamed along with its function", BASE, ("a read", "two scrub: a", "c join: a two"), ["b two"]),
    ("a uid was renamed", ("a#x read",), ("a#y read",), ["a a"]),
    ("it moved to another module", ("a read", "b clean: a"), ("a read", "two jobs.y/clean: a"), ["b two"]),
    ("a stage was given a uid", ("a read",), ("a#x read",), ["a a"]),
    ("only a function was renamed", BASE, ("a read", "b scrub: a", "c join: a b"), []),
    ("two swapped their names", ("a read", "b read2"), ("b read", "a read2"), []),
    ("a stage was removed", BASE, ("a read", "b clean: a"), []),
    ("a stage was added", ("a read",), ("a read", "b clean: a"), []),
    (
        "a stage was replaced by an unlike one",
        ("a read", "b clean: a", "c join: b"),
        ("a read", "x other", "y last: x"),
        [],
    ),
    ("two old stages are equally alike", ("a read", "b f: a", "c f: a"), ("a read", "d f: a"), []),
]


@pytest.mark.parametrize(("old", "new", "renamed"), [row[1:] for row in RENAMES], ids=[row[0] for row in RENAMES])
def test_renames_are_detected(old, new, renamed):
    found = find_renames(stage_shapes(pipeline(*old)), stage_shapes(pipeline(*new)))
    assert [f"{rename.old.name} {rename.new.name}" for rename in found] == renamed


def test_a_rename_says_what_speaks_for_it():
    (rename,) = find_renames(
        stage_shapes(pipeline("a read", "b#x clean: a")), stage_shapes(pipeline("a read", "c#y jobs.y/clean: a"))
    )
    assert str(rename) == (
        "c looks like b renamed (same job function, reads the same, read by the same): put `was: x` there"
    )
