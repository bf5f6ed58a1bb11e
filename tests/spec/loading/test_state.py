"""What is wrong with the state that a stage declares, each with its line and what is allowed."""

from __future__ import annotations

import pytest
from tests.spec.samples import Project, edited

from stagehold.model.stage_state import StateKind

KEYED = "seen: {key: id, columns: {id: bigint, at: timestamp}}"
LIST = "files: {kind: split, columns: {path: string}}"
PATH = "stages.joined.state"
MISTAKES = [
    ("seen: {columns: {id: bigint}}", f"{PATH}.seen.key", "nothing | one of its columns or more: id"),
    ("seen: {key: ids, columns: {id: bigint}}", f"{PATH}.seen.key", "'ids' | its columns: id (did you mean id?)"),
    ("seen: {key: [id, at], columns: {id: bigint, at: date}}", f"{PATH}.seen.key", "2 column(s) | 1 column(s), as in"),
    ("seen: {key: id}", f"{PATH}.seen.columns", "nothing | names and types of one column or more"),
    ("seen: {key: id, columns: {id: long}}", f"{PATH}.seen.columns.id", "'long' | one of boolean, tinyint"),
    ("seen: {key: id, columns: {id: 'decimal(39,2)'}}", f"{PATH}.seen.columns.id", "'decimal(39,2)' | one of"),
    ("seen: {key: id, columns: {id: int, _at: date}}", f"{PATH}.seen.columns._at", "'_at' | letters, digits"),
    ("seen: {key: id, columns: {id: int, ID: date}}", f"{PATH}.seen.columns", "id twice | each name once"),
    ("Seen: {key: id, columns: {id: int}}", f"{PATH}.Seen", "'Seen' | lower-case"),
    ("files: {kind: lists, columns: {path: string}}", f"{PATH}.files.kind", "'lists' | keyed, split, union, broadcast"),
    ("files: {kind: split, key: path, columns: {path: string}}", f"{PATH}.files.key", "['path'] | a key only where"),
    ("files: {kind: split, colums: {path: string}}", f"{PATH}.files.colums", "| kind, key, columns (did you mean"),
]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def with_state(*states: str, below: str = "gate: joined") -> str:
    lines = "".join(f"\\n      {state}" for state in states)
    return edited(f"    {below} =>     {below}\\n    state:{lines}")


def test_state_is_read_with_its_defaults(project):
    stage = project.load(with_state(KEYED, LIST)).stage("joined")
    seen, files = stage.states
    assert (seen.name, seen.kind, seen.key) == ("seen", StateKind.KEYED, ("id",))
    assert [(column.name, column.type) for column in seen.columns] == [("id", "bigint"), ("at", "timestamp")]
    assert (files.kind, files.key, files.hash_name) == (StateKind.SPLIT, (), None)


@pytest.mark.parametrize(("state", "field", "text"), MISTAKES)
def test_a_mistake_is_named_with_what_is_allowed(project, state, field, text):
    ((line, found, said),) = project.problems(with_state(state))
    assert (line, found) == (30, field)
    assert text in said


@pytest.mark.parametrize(
    ("edits", "field", "text"),
    [
        (('schedule: "0 2 * * *"\\n => ',), PATH, "state, with the schedule nothing | a schedule, which puts"),
        (('schedule: "0 2 * * *" => schedule: "@once"',), PATH, "state, with the schedule '@once' | a schedule"),
        (
            ("partitions: 8 => partitions: 8\\n    output: {type: pipelined}", "    gate: joined\\n => "),
            "stages.joined.output.type",
            "pipelined | blocking or blocking_persistent, with state",
        ),
        (
            ("partitions: 8 => partitions: 8\\n    output: {committer: delta_spark}",),
            "stages.joined.output.committer",
            "'delta_spark' | staged, with state",
        ),
    ],
)
def test_a_stage_that_cannot_keep_state_is_refused(project, edits, field, text):
    state = f"max_parallelism: 64 => max_parallelism: 64\\n    state: {{{KEYED}}}"
    told = [(found, said) for _, found, said in project.problems(edited(state, *edits))]
    assert [found for found, _ in told] == [field]
    assert text in told[0][1]


def test_keys_of_partitions_that_were_not_dealt_by_key_are_refused(project):
    text = with_state(KEYED, below='source: {kind: parquet, path: "${lake}/raw/lineitem/*.parquet", splits: 4}')
    ((_, field, said),) = project.problems(text)
    assert (field, said[:38]) == ("stages.lineitem.state.seen.kind", "'keyed' | split, union or broadcast; k")
    one = text.replace("splits: 4}", "splits: 1}")
    assert project.load(one).stage("lineitem").states[0].kind is StateKind.KEYED
    assert project.load(with_state(KEYED, below="inputs: {cleaned: gather}")).stage("top").states


def test_a_function_that_goes_by_waves_keeps_no_state(project):
    ((_, field, said),) = project.problems(with_state(LIST, below="inputs: {joined: forward}"))
    assert (field, said) == ("stages.cleaned.per_wave", "true | false with state, which goes by partition")


@pytest.mark.parametrize("written", ["2026-11-01", "'2026-11-01'", "2026-11-01T02:00:00Z"])
def test_state_begins_with_an_interval_of_the_schedule(project, written):
    text = with_state(KEYED, below="gate: joined").replace("    state:", f"    state_begins: {written}\n    state:")
    assert project.load(text).stage("joined").state_begins in ("2026-11-01", "2026-11-01T02:00:00+00:00")


@pytest.mark.parametrize("written", ["2026-11-01T03:00:00Z", "whole", "'2026-02-30'"])
def test_another_interval_is_refused(project, written):
    text = with_state(KEYED).replace("    state:", f"    state_begins: {written}\n    state:")
    ((_, field, said),) = project.problems(text)
    assert field == "stages.joined.state_begins"
    assert "an interval of the schedule 0 2 * * *, such as 2026-11-01" in said


def test_without_state_none_begins(project):
    text = edited("    gate: joined =>     gate: joined\\n    state_begins: 2026-11-01")
    assert [said[1:] for said in project.problems(text)] == [
        ("stages.joined.state_begins", "'2026-11-01' | nothing without state")
    ]
