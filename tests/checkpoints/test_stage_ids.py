from __future__ import annotations

import pytest

from stagehold.checkpoints.stage_ids import find_renames, stage_shapes
from stagehold.errors import DuplicateStageId
from stagehold.spec.pipeline import Exchange, Input, Pipeline, Stage
from stagehold.spec.source import Source


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

UNCHANGED = [
    ("other stages come, before and beside", ("z other", *BASE, "y last: c"), {}),
    ("inputs are listed the other way round", ("a read", "b clean: a", "c join: b a"), {}),
    (
        "partitions, keys, parameters and the like change",
        BASE,
        {"partitions": 4, "key": ("k",), "params": {"x": 1}, "gate": "g"},
    ),
]


@pytest.mark.parametrize(("stages", "changed"), [row[1:] for row in UNCHANGED], ids=[row[0] for row in UNCHANGED])
def test_a_derived_id_stays_when(stages, changed):
    before, after = ids(*BASE), ids(*stages, **changed)
    assert {name: after[name] for name in before} == before


def test_a_derived_id_stays_when_the_stage_is_renamed():
    assert set(ids("one read", "two clean: one").values()) == set(ids("a read", "b clean: a").values())


def test_a_derived_id_does_not_depend_on_the_exchange():
    keyed = pipeline("a read", "b clean: a")
    changed = keyed.stages[1].model_copy(update={"inputs": (Input(stage="a", exchange=Exchange.KEYED, key=("k",)),)})
    after = stage_shapes(keyed.model_copy(update={"stages": (keyed.stages[0], changed)}))
    assert after == stage_shapes(keyed)


def test_a_derived_id_names_the_function_so_that_people_can_read_it():
    assert ids(*BASE)["b"].startswith("clean-")


CHANGED = [
    ("its function is renamed, and all below it change too", ("a read", "b scrub: a", "c join: a b"), "b c"),
    ("its source is another", ("a read2", "b clean: a", "c join: a b"), "a b c"),
    ("it reads one input less", ("a read", "b clean: a", "c join: b"), "c"),
    ("a stage in the middle gets its first uid", ("a read", "b#mine clean: a", "c join: a b"), "b c"),
]


@pytest.mark.parametrize(("stages", "changed"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_a_derived_id_changes_when(stages, changed):
    before, after = ids(*BASE), ids(*stages)
    assert [name for name in before if before[name] != after[name]] == changed.split()


def test_a_uid_is_the_id_and_shields_what_is_below_it():
    before = ids("a read", "b#mine clean: a", "c join: b")
    after = ids("a read2", "b#mine scrub: a", "c join: b")
    assert before["b"] == after["b"] == "mine"
    assert before["c"] == after["c"]


def test_state_from_before_a_uid_is_still_known():
    (_, plain), (_, named) = (
        stage_shapes(pipeline("a read", "b clean: a")),
        stage_shapes(pipeline("a read", "b#mine clean: a")),
    )
    assert named.known_ids == ("mine", plain.id)
    assert plain.known_ids == (plain.id,)


def test_state_that_could_be_that_of_two_stages_is_nobodys():
    _, first, second = stage_shapes(pipeline("a read", "b#one clean: a", "c#two clean: a"))
    assert (first.known_ids, second.known_ids) == (("one",), ("two",))


def test_one_function_twice_on_the_same_input_is_told_apart_by_name():
    alone, twice = ids("a read", "b clean: a"), ids("a read", "b clean: a", "c clean: a", "d join: b c")
    assert (twice["b"], twice["c"]) == (f"{alone['b']}-b", f"{alone['b']}-c")
    assert ids("a read", "c clean: a", "b clean: a", "d join: b c") == twice
    assert ids("a read", "b clean: a", "c#mine clean: a")["b"] == alone["b"]


REFUSED = [
    ("one uid twice", ("a#x read", "b#x clean: a"), "Stages a and b of pipeline sample have the same uid"),
    (
        "a uid that another stage derives",
        ("a read", "b clean: a", f"c#{ids('a read')['a']} clean: b"),
        "have the same uid",
    ),
]


@pytest.mark.parametrize(("stages", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_duplicates_are_refused(stages, text):
    with pytest.raises(DuplicateStageId, match=text) as refused:
        stage_shapes(pipeline(*stages))
    assert "Give each of them its own uid" in str(refused.value)


RENAMES = [
    ("nothing changed", BASE, BASE, []),
    ("a stage was renamed: its id stays", BASE, ("one read", "two clean: one", "three join: one two"), []),
    (
        "a function was renamed, and what is below it follows",
        BASE,
        ("a read", "b scrub: a", "c join: a b"),
        ["b b", "c c"],
    ),
    ("a uid was renamed", ("a#x read",), ("a#y read",), ["a a"]),
    ("a function moved to another module", ("a read", "b clean: a"), ("a read", "b jobs.y/clean: a"), ["b b"]),
    ("a stage was given a uid: its old id is still known", ("a read",), ("a#x read",), []),
    ("a stage was removed", BASE, ("a read", "b clean: a"), []),
    ("a stage was added", ("a read",), ("a read", "b clean: a"), []),
    (
        "a stage was replaced by an unlike one",
        ("a read", "b clean: a", "c join: b"),
        ("a read", "x other", "y last: x"),
        [],
    ),
    ("two old stages are equally alike", ("a read", "b f: a", "c g: a"), ("a read", "d h: a"), []),
]


@pytest.mark.parametrize(("old", "new", "renamed"), [row[1:] for row in RENAMES], ids=[row[0] for row in RENAMES])
def test_renames_are_detected(old, new, renamed):
    found = find_renames(stage_shapes(pipeline(*old)), stage_shapes(pipeline(*new)))
    assert [f"{rename.old.name} {rename.new.name}" for rename in found] == renamed


def test_a_rename_says_what_speaks_for_it():
    (rename,) = find_renames(
        stage_shapes(pipeline("a read", "b#x clean: a")), stage_shapes(pipeline("a read", "c#y jobs.y/clean: a"))
    )
    assert str(rename) == "b (x) looks like c (y): same job function, reads the same, read by the same"
