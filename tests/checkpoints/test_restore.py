from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stagehold.checkpoints.checkpoint import (
    Checkpoint,
    Finished,
    KeyedState,
    ListState,
    SnapshotKind,
    StageSnapshot,
)
from stagehold.checkpoints.restore import ALLOW_FLAG, Misfit, require_restorable, restore_plan
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.checkpoints.state_rescale import KeyedPart, ListKind
from stagehold.errors import RestoreRefused
from stagehold.model.key_groups import default_max_parallelism
from stagehold.model.records import Cell, PartitionRecord, PartitionState
from stagehold.model.source_position import VersionsRead
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.source import Source

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pipeline(*stages):
    """Stages as "name[#uid][>][*partitions][/max]: input~exchange ...";
    ``>`` pipelines the output, the function is the name.
    """
    built = []
    for text in stages:
        head, _, inputs = text.partition(":")
        head, _, most = head.partition("/")
        head, _, partitions = head.partition("*")
        name, _, uid = head.rstrip(">").partition("#")
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
    return PartitionRecord(
        Cell("sample", stage, "2026-01-01"),
        partition,
        state,
        "run",
        "attempt",
        1,
        0,
        "table",
        3,
        (),
        10,
        "print",
        "key",
        NOW,
    )


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
    ("a stage was removed", OLD, ("a", "b#bee: a"), "a b", "", ["no_stage c: its state is kept under c-"]),
    (
        "all unmatched ids are listed at once",
        OLD,
        ("x",),
        "",
        "x",
        [
            "no_stage a: its state is kept under a-",
            "no_stage b: its state is kept under bee",
            "no_stage c: its state is kept under c-",
        ],
    ),
    ("a uid given later finds the older state", ("a",), ("a#mine",), "a", "", []),
    ("fewer partitions than the state's max", ("a*4/8",), ("a*2/8",), "a", "", []),
    (
        "more partitions than the state's max, whatever is configured",
        ("a*2/8",),
        ("a*9/16",),
        "a",
        "",
        ["too_many_partitions a: 9 partitions are more than"],
    ),
    (
        "another configured max parallelism",
        ("a*2/8",),
        ("a*2/16",),
        "a",
        "",
        ["other_max_parallelism a: max_parallelism 16 differs from 8"],
    ),
    (
        "one that equals the default, and yet was configured",
        ("a*2/8",),
        ("a*2/128",),
        "a",
        "",
        ["other_max_parallelism a: max_parallelism 128 differs from 8"],
    ),
    ("a default max parallelism gives way", ("a*2/8",), ("a*2",), "a", "", []),
    ("the same one, configured now", ("a*2",), ("a*2/128",), "a", "", []),
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


def test_state_under_the_uid_is_preferred():
    then = taken(pipeline("a"))
    (old,) = then.stages
    newer = StageSnapshot(stage_shapes(pipeline("a#mine"))[0], 2, 128, (record("a", 0),))
    both = Checkpoint(
        8, SnapshotKind.SAVEPOINT, "sample", "2026-01-01", "run", NOW, (old, newer), name="before the move"
    )
    plan = restore_plan(both, pipeline("a#mine"))
    assert [restore.snapshot for restore in plan.stages] == [newer]
    assert plan.problems == plan.left_behind == ()


def test_the_state_keeps_its_max_parallelism_for_ever():
    plan = restore_plan(taken(pipeline("a*2/8")), pipeline("a*3"))
    assert (plan.stages[0].max_parallelism, plan.stages[0].rescaled) == (8, True)
    assert not restore_plan(taken(pipeline("a*2/8")), pipeline("a*2")).stages[0].rescaled


EMPTINESS = [
    ("nothing at all", {}, 0),
    ("a partition", {"partitions": (record("gone", 0),)}, 1),
    ("keyed state", {"keyed": (KeyedState("seen", (KeyedPart(range(8), "file"),)),)}, 1),
    ("list state", {"lists": (ListState("files", ListKind.SPLIT, (("x",), None)),)}, 1),
    ("only a source position", {"position": VersionsRead(None, 3)}, 1),
]


@pytest.mark.parametrize(("held", "problems"), [row[1:] for row in EMPTINESS], ids=[row[0] for row in EMPTINESS])
def test_state_without_a_stage_is_a_problem_unless_there_is_none(held, problems):
    gone = StageSnapshot(stage_shapes(pipeline("gone"))[0], 2, 128, **held)
    checkpoint = Checkpoint(1, SnapshotKind.CHECKPOINT, "sample", "i", "run", NOW, (gone,))
    assert len(restore_plan(checkpoint, pipeline("a")).problems) == problems


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
        require_restorable(restore_plan(taken(pipeline("a*2/8", "b: a")), pipeline("a*9/16")))
    assert refused.value.flag is None
    assert ALLOW_FLAG not in str(refused.value)


def test_a_renamed_uid_is_explained_with_the_way_to_keep_its_state():
    with pytest.raises(RestoreRefused) as refused:
        require_restorable(restore_plan(taken(pipeline("a", "b#bee: a")), pipeline("a", "b#bumble: a")))
    assert "b (bee) looks like b (bumble): same name" in str(refused.value)
    assert "give the new one uid: bee to keep its state" in str(refused.value)


def test_keyed_state_of_another_hash_is_refused():
    foreign = KeyedState("seen", (KeyedPart(range(8), "file"),), hash_name="murmur")
    snapshot = StageSnapshot(stage_shapes(pipeline("a"))[0], 2, 128, keyed=(foreign,))
    plan = restore_plan(Checkpoint(1, SnapshotKind.CHECKPOINT, "sample", "i", "run", NOW, (snapshot,)), pipeline("a"))
    assert [problem.kind for problem in plan.problems] == [Misfit.OTHER_HASH]
    assert [str(problem) for problem in plan.problems] == [
        "a: its keyed state was written with the hash murmur; this version finds keys by xxhash64-canonical-1"
    ]


FINISHED = [
    # exchange, partitions of the input that are finished, of the reader, allowed
    ("keyed", 2, 2, True),
    ("keyed", 2, 1, True),
    ("keyed", 2, 0, True),
    ("keyed", 1, 2, False),
    ("keyed", 1, 1, False),
    ("keyed", 1, 0, True),
    ("keyed", 0, 1, False),
    ("broadcast", 1, 1, False),
    ("gather", 1, 1, False),
    ("forward", 1, 2, False),
    ("forward", 1, 1, True),
    ("forward", 0, 1, False),
    ("forward", 0, 0, True),
]


@pytest.mark.parametrize(("exchange", "above", "below", "allowed"), FINISHED)
def test_what_is_finished_follows_only_what_could_have_been(exchange, above, below, allowed):
    built = pipeline("a", f"b: a~{exchange}")
    plan = restore_plan(taken(built, a=above, b=below), built)
    assert (plan.problems == ()) is allowed
    if not allowed:
        assert plan.problems[0].kind is Misfit.FINISHED_BEFORE_INPUT
        assert f"but its input a, read {exchange}, is" in str(plan.problems[0])


def test_a_new_stage_cannot_go_above_a_finished_one():
    plan = restore_plan(taken(pipeline("b#bee")), pipeline("a", "b#bee: a"))
    assert [str(problem) for problem in plan.problems] == [
        "b: it is fully finished, but its input a, read forward, is not finished"
    ]


def test_stages_that_run_together_are_finished_alike():
    built = pipeline("a>", "b: a")
    assert restore_plan(taken(built), built).problems == ()
    (problem,) = restore_plan(taken(built, a=2, b=1), built).problems
    assert problem.kind is Misfit.FINISHED_UNLIKE
    assert (
        str(problem) == "a__b: its stages run together and must be finished alike, but a is fully finished, b is "
        "partially finished"
    )


def test_how_much_of_a_stage_is_finished():
    shape = stage_shapes(pipeline("a"))[0]
    states = [(), ("blocked",), ("consumable",), ("released", "consumable"), ("consumable", "blocked")]
    snapshots = [
        StageSnapshot(shape, 2, 128, tuple(record("a", i, PartitionState(state)) for i, state in enumerate(each)))
        for each in states
    ]
    assert [snapshot.finished for snapshot in snapshots] == [
        Finished.NONE, Finished.NONE, Finished.SOME, Finished.ALL, Finished.SOME,
    ]  # fmt: skip


def test_a_region_failover_restores_its_stages_and_leaves_source_positions_alone():
    shapes = stage_shapes(pipeline("a", "b: a"))
    position = VersionsRead(None, 3)
    snapshots = tuple(
        StageSnapshot(shape, 2, 128, (record(shape.name, 0), record(shape.name, 1)), position=position)
        for shape in shapes
    )
    plan = restore_plan(
        Checkpoint(7, SnapshotKind.CHECKPOINT, "sample", "i", "run", NOW, snapshots), pipeline("a", "b: a")
    )
    (only,) = plan.only(frozenset({"a"}))
    assert (only.stage, only.snapshot.position, len(only.snapshot.partitions)) == ("a", None, 2)
    assert plan.only(frozenset({"a", "b"})) == plan.stages


def test_checkpoint_ids_go_on_after_the_restored_one():
    plan = restore_plan(taken(pipeline("a")), pipeline("a"))
    assert plan.next_checkpoint_id == 8
    assert str(plan.checkpoint) == "checkpoint 7 of run run"
