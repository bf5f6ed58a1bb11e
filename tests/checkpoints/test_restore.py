from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.made_records import partition_record

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.restore import ALLOW_FLAG, Misfit, require_restorable, restore_plan
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.errors import RestoreRefused
from stagehold.model.keys.key_groups import default_max_parallelism
from stagehold.model.records import Cell
from stagehold.model.source_position import VersionsRead
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.run_settings import MatchPolicy
from stagehold.spec.settings.source import Source

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pipeline(*stages):
    """Stages as "name[#uid][=was,was][>][*partitions][/max]: input~exchange ...";
    ``>`` pipelines the output, the function is the name.
    """
    built = []
    for text in stages:
        head, _, inputs = text.partition(":")
        head, _, most = head.partition("/")
        head, _, partitions = head.partition("*")
        head_of_ids, _, was = head.rstrip(">").partition("=")
        name, _, uid = head_of_ids.partition("#")
        count = int(partitions or 2)
        edges = tuple(
            Input(stage=edge.partition("~")[0], exchange=Exchange(edge.partition("~")[2] or "forward"))
            for edge in inputs.split()
        )
        built.append(
            Stage(
                name=name,
                job=f"jobs.x:{name}",
                uid=uid or None,
                was=tuple(filter(None, was.split(","))),
                source=None if edges else Source(kind="parquet", path=f"/raw/{name}", splits=count),
                inputs=edges,
                partitions=count,
                max_parallelism=int(most or default_max_parallelism(count)),
                max_parallelism_declared=bool(most),
                output=Output(type=OutputType.PIPELINED if head.endswith(">") else OutputType.BLOCKING),
            )
        )
    return Pipeline(name="sample", file="sample.yaml", stages=tuple(built))


def record(stage, partition, state=PartitionState.CONSUMABLE):
    return partition_record(partition, Cell("sample", stage, "2026-01-01"), state=state)


def taken(built, **finished):
    """A checkpoint of the pipeline; ``finished`` says how many partitions of a stage are, by default all."""
    snapshots = []
    for stage, shape in zip(built.stages, stage_shapes(built), strict=True):
        count = finished.get(stage.name, stage.partitions)
        snapshots.append(
            StageSnapshot(
                shape,
                stage.partitions,
                stage.max_parallelism,
                tuple(record(stage.name, index) for index in range(count)),
            )
        )
    return Checkpoint(7, SnapshotKind.CHECKPOINT, "sample", "2026-01-01", "run", NOW, tuple(snapshots))


OLD = ("a", "b#bee: a", "c: b~keyed")

PLANS = [
    # name, pipeline then, pipeline now, restored, starts empty, kinds and texts of the problems
    ("nothing changed", OLD, OLD, "a b c", "", []),
    ("a stage was added below", OLD, (*OLD, "d: c"), "a b c", "d", []),
    ("a stage was removed", OLD, ("a", "b#bee: a"), "a b", "", ["no_stage c: the pipeline has no such stage"]),
    (
        "all unmatched ids are listed at once",
        OLD,
        ("x",),
        "",
        "x",
        [
            "no_stage a: the pipeline has no such stage",
            "no_stage b: the pipeline has no such stage",
            "no_stage c: the pipeline has no such stage",
        ],
    ),
    ("a stage got a uid", ("a", "b: a"), ("a", "b#bee: a"), "a b", "", []),
    ("a stage lost its uid", OLD, ("a", "b: a", "c: b~keyed"), "a b c", "", []),
    (
        "a stage got the uid of another one",
        ("a", "b: a"),
        ("a#b", "b#a: a"),
        "a b",
        "",
        [],
    ),
    (
        "a new stage has the name that one had whose uid is kept elsewhere",
        ("a", "b#bee: a"),
        ("a", "c#bee: a", "b: c"),
        "a c",
        "b",
        [],
    ),
    ("a stage was renamed and says so", ("a", "b: a"), ("a", "two=b: a"), "a two", "", []),
    ("a stage lost its uid and its name", OLD, ("a", "two=bee: a", "c: two~keyed"), "a two c", "", []),
    ("a stage got another uid", ("a", "b#bee: a"), ("a", "b#bumble=bee: a"), "a b", "", []),
    ("a stage got a uid, and counts by its name", ("a", "b: a"), ("a", "b#bee=b: a"), "a b", "", []),
    ("only a younger of its names is there", ("a", "two: a"), ("a", "three=two,b: a"), "a three", "", []),
    (
        "of two of its names the oldest counts",
        ("a", "b", "two: b"),
        ("a", "three=two,b: a"),
        "a three",
        "",
        ["no_stage two"],
    ),
    ("two stages changed names", ("a", "b: a"), ("b#a", "a#b: b"), "b a", "", []),
    ("a stage was added above what is finished", ("b",), ("a", "b: a"), "b", "a", []),
    ("a stage moved", OLD, ("a", "c: a~keyed", "b#bee: c"), "a c b", "", []),
    ("fewer partitions than the state's max", ("a", "b*4/8: a~keyed"), ("a", "b*2/8: a~keyed"), "a b", "", []),
    (
        "more partitions than the state's max, whatever is configured",
        ("a", "b*2/8: a~keyed"),
        ("a", "b*9/16: a~keyed"),
        "a b",
        "",
        ["too_many_partitions b: 9 partitions are more than"],
    ),
    (
        "another configured max parallelism",
        ("a", "b*2/8: a~keyed"),
        ("a", "b*2/16: a~keyed"),
        "a b",
        "",
        ["other_max_parallelism b: max_parallelism 16 differs from 8"],
    ),
    (
        "one that equals the default, and yet was configured",
        ("a", "b*2/8: a~keyed"),
        ("a", "b*2/128: a~keyed"),
        "a b",
        "",
        ["other_max_parallelism b: max_parallelism 128 differs from 8"],
    ),
    ("a default max parallelism gives way", ("a", "b*2/8: a~keyed"), ("a", "b*2: a~keyed"), "a b", "", []),
    ("the same one, configured now", ("a", "b*2: a~keyed"), ("a", "b*2/128: a~keyed"), "a b", "", []),
    ("nothing goes by key group, so nothing speaks against other numbers", ("a*2/8",), ("a*9/16",), "a", "", []),
]


@pytest.mark.parametrize(
    ("then", "now", "restored", "empty", "problems"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS]
)
def test_matching(then, now, restored, empty, problems):
    plan = restore_plan(taken(pipeline(*then)), pipeline(*now))
    assert [restore.stage for restore in plan.stages] == restored.split()
    assert list(plan.starts_empty) == empty.split()
    assert len(plan.problems) == len(problems)
    for problem, expected in zip(plan.problems, problems, strict=True):
        assert f"{problem.kind} {problem}".startswith(expected)


PLACES = [
    # name, pipeline then, pipeline now, restored and what that was called, starts empty
    ("all were renamed", ("a", "b: a", "c: b"), ("x", "y: x", "z: y"), "x=a y=b z=c", ""),
    ("one was renamed above others", ("a", "b: a", "c: b"), ("a", "y: a", "c: y"), "a y=b c", ""),
    ("a name counts before a place", ("a", "b: a", "c: a"), ("a", "c: a", "b: a"), "a c b", ""),
    ("of two equal ones the order of the file decides", ("a", "b: a", "c: a"), ("a", "x: a", "y: a"), "a x=b y=c", ""),
    ("a stage in front shifts those behind it", ("a", "b: a"), ("a", "new: a", "y: new"), "a new=b", "y"),
    ("a uid is no place", ("a", "b#bee: a"), ("a", "y: a"), "a", "y"),
    ("nor has a stage with a uid one", ("a", "b: a"), ("a", "y#why: a"), "a", "y"),
    ("what is behind a stage with a uid keeps its place", ("a#one", "b: a"), ("x#one", "y: x"), "x=a y=b", ""),
    ("other inputs are another place", ("a", "b", "c: a b"), ("a", "b", "z: a"), "a b", "z"),
]


@pytest.mark.parametrize(
    ("then", "now", "restored", "empty"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_a_stage_that_no_name_fits_takes_what_its_place_gives_it_if_its_pipeline_says_so(then, now, restored, empty):
    by_place = pipeline(*now).model_copy(update={"match": MatchPolicy.STRUCTURE})
    plan = restore_plan(taken(pipeline(*then)), by_place, allow_non_restored=True)
    found = {restore.stage: restore.snapshot.shape.name for restore in plan.stages}
    assert [name if name == was else f"{name}={was}" for name, was in found.items()] == restored.split()
    assert list(plan.starts_empty) == empty.split()
    unasked = restore_plan(taken(pipeline(*then)), pipeline(*now), allow_non_restored=True)
    assert len(unasked.stages) <= len(plan.stages)


def test_the_state_keeps_its_max_parallelism_for_ever():
    plan = restore_plan(taken(pipeline("a*2/8")), pipeline("a*3"))
    assert (plan.stages[0].max_parallelism, plan.stages[0].rescaled) == (8, True)
    assert not restore_plan(taken(pipeline("a*2/8")), pipeline("a*2")).stages[0].rescaled


EMPTINESS = [
    ("nothing at all", {}, 0),
    ("a partition", {"partitions": (record("gone", 0),)}, 1),
    ("only a source position", {"position": VersionsRead(None, 3)}, 1),
]


@pytest.mark.parametrize(("held", "problems"), [row[1:] for row in EMPTINESS], ids=[row[0] for row in EMPTINESS])
def test_state_without_a_stage_is_a_problem_unless_there_is_none(held, problems):
    gone = StageSnapshot(stage_shapes(pipeline("gone"))[0], 2, 128, **held)
    checkpoint = Checkpoint(1, SnapshotKind.CHECKPOINT, "sample", "i", "run", NOW, (gone,))
    assert len(restore_plan(checkpoint, pipeline("a")).problems) == problems


def test_what_a_stage_had_before_its_uid_is_its_own_under_that():
    plan = restore_plan(taken(pipeline("a", "b: a")), pipeline("a", "b#bee: a"))
    assert [(stage.stage, stage.snapshot.shape.id) for stage in plan.stages] == [("a", "a"), ("b", "bee")]
    assert (plan.left_behind, plan.renames) == ((), ())


def test_state_is_left_behind_only_when_allowed_and_then_named():
    plan = restore_plan(taken(pipeline(*OLD)), pipeline("a"), allow_non_restored=True)
    assert require_restorable(plan) is plan
    assert [snapshot.shape.name for snapshot in plan.left_behind] == ["b", "c"]


def test_the_flag_is_named_only_where_it_would_help():
    removed = restore_plan(taken(pipeline(*OLD)), pipeline("a"))
    with pytest.raises(RestoreRefused) as refused:
        require_restorable(removed)
    assert refused.value.flag == ALLOW_FLAG
    assert f"add {ALLOW_FLAG}" in str(refused.value)
    assert len(refused.value.problems) == 2
    with pytest.raises(RestoreRefused) as refused:
        require_restorable(
            restore_plan(taken(pipeline("x", "a*2/8: x~keyed", "b: a")), pipeline("x", "a*9/16: x~keyed"))
        )
    assert refused.value.flag is None
    assert ALLOW_FLAG not in str(refused.value)


RENAMED = [
    ("a stage without a uid", ("a", "b: a"), ("a", "two: a"), "two looks like b renamed", "put `was: b` there"),
    ("a uid", ("a", "b#bee: a"), ("a", "b#bumble: a"), "b looks like b renamed", "put `was: bee` there"),
]


@pytest.mark.parametrize(
    ("then", "now", "alike", "way_out"), [row[1:] for row in RENAMED], ids=[row[0] for row in RENAMED]
)
def test_what_was_renamed_is_explained_with_the_way_to_keep_its_state(then, now, alike, way_out):
    with pytest.raises(RestoreRefused) as refused:
        require_restorable(restore_plan(taken(pipeline(*then)), pipeline(*now)))
    assert alike in str(refused.value)
    assert way_out in str(refused.value)


def test_keyed_state_of_another_hash_is_refused():
    foreign = StateShape("seen", StateKind.KEYED, (StateColumn("k", "bigint"),), ("k",), hash_name="murmur")
    snapshot = StageSnapshot(stage_shapes(pipeline("a"))[0], 2, 128, states=(foreign,))
    plan = restore_plan(Checkpoint(1, SnapshotKind.CHECKPOINT, "sample", "i", "run", NOW, (snapshot,)), pipeline("a"))
    assert [problem.kind for problem in plan.problems] == [Misfit.OTHER_HASH]
    assert [str(problem) for problem in plan.problems] == [
        "a: its keyed state was written with the hash murmur; this version finds keys by xxhash64-canonical-1"
    ]
