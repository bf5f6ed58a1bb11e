from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.topology.graphs import graph

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import AttemptState
from stagehold.plan.imagined.what_if import hypothesis_of, imagined_run, what_if, what_if_graph
from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.run_settings import Failover
from stagehold.spec.settings.source import Source
from stagehold.topology.build import pipeline_topology

TYPES = {">": OutputType.PIPELINED, "!": OutputType.BLOCKING_PERSISTENT}


def pipeline(*stages):
    """Stages as "name[>|!]: input~exchange ...", three partitions each but one after a gather;
    ``>`` flows, ``!`` is published.
    """
    built = []
    for text in stages:
        head, _, inputs = text.partition(":")
        name, kind = head.rstrip(">!"), TYPES.get(head[-1], OutputType.BLOCKING)
        edges = tuple(
            Input(stage=edge.partition("~")[0], exchange=Exchange(edge.partition("~")[2] or "forward"))
            for edge in inputs.split()
        )
        count = 1 if any(edge.exchange is Exchange.GATHER for edge in edges) else 3
        built.append(
            Stage(
                name=name,
                job=f"jobs.x:{name}",
                source=None if edges else Source(kind="parquet", path=f"/raw/{name}", splits=count),
                inputs=edges,
                partitions=count,
                max_parallelism=128,
                output=Output(type=kind, table=f"marts.{name}" if kind is OutputType.BLOCKING_PERSISTENT else None),
            )
        )
    return Pipeline(name="sample", file="sample.yaml", stages=tuple(built))


def asked(declared, fail="", lost="", changed=""):
    return what_if(
        imagined_run(declared), hypothesis_of(declared, failed=fail.split(), lost=lost.split(), changed=changed.split())
    )


def actions(plan):
    """ "stage action partitions", in order, without what is simply reused."""
    said = []
    for stage, decisions in plan.by_stage.items():
        for action in Action:
            which = [decision.partition for decision in decisions if decision.action is action]
            if which and action is not Action.REUSE:
                said.append(f"{stage} {action} {PartitionSet(which)}")
    return said


CHAIN = ("a", "b: a", "c: b~keyed", "d!: c~gather")

TABLE = [
    # pipeline, failed, lost, changed -> all that is not simply reused
    (
        "nothing happened: all that was read may go",
        CHAIN,
        "",
        "",
        "",
        ["a release 0-2", "b release 0-2", "c release 0-2"],
    ),
    ("the last stage failed", CHAIN, "d", "", "", ["a release 0-2", "b release 0-2", "d run 0"]),
    (
        "one partition failed, and all below it reads it",
        CHAIN,
        "b:1",
        "",
        "",
        ["a release 0, 2", "b run 1", "c run 0-2", "d run 0"],
    ),
    ("a source failed", CHAIN, "a:0", "", "", ["a run 0", "a release 1-2", "b run 0", "c run 0-2", "d run 0"]),
    ("what is lost and not needed stays lost", CHAIN, "d", "b:1", "", ["a release 0-2", "b release 0, 2", "d run 0"]),
    ("what is lost and needed is healed", CHAIN, "d", "c:1", "", ["a release 0-2", "c heal 1", "d run 0"]),
    ("what heals needs its own input", CHAIN, "d", "c:1 b:0", "", ["a release 1-2", "b heal 0", "c heal 1", "d run 0"]),
    ("a lost result is wanted for itself", CHAIN, "", "d:0", "", ["a release 0-2", "b release 0-2", "d heal 0"]),
    ("changed code runs all of the stage", CHAIN, "", "", "b", ["b run 0-2", "c run 0-2", "d run 0"]),
    ("a sibling is left alone", ("a", "b: a", "c: a"), "c:0", "", "", ["a release 1-2", "c run 0"]),
    ("a published output is never released", ("a!", "b: a"), "", "", "", []),
    (
        "what runs together fails together",
        ("a", "b>: a", "c: b"),
        "c:1",
        "",
        "",
        ["a release 0, 2", "b run 1", "c run 1"],
    ),
    (
        "also when the first of them fails",
        ("a", "b>: a", "c: b"),
        "b:1",
        "",
        "",
        ["a release 0, 2", "b run 1", "c run 1"],
    ),
    ("several things at once", ("a", "b: a", "c: a"), "b:0 c:1", "a:2", "", ["b run 0", "c run 1"]),
]


@pytest.mark.parametrize(
    ("stages", "fail", "lost", "changed", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_would_run(stages, fail, lost, changed, expected):
    assert actions(asked(pipeline(*stages), fail, lost, changed)[0]) == expected


REASONS = [
    ("b:1", "", "", "b:1", "it failed"),
    ("b:1", "", "", "c:0", "reads b[1], which runs again"),
    ("d", "c:1", "", "c:1", "its data is gone from the lake and is needed"),
    ("d", "a:1", "", "a:1", "its data is gone, and nothing that runs reads it"),
    ("d", "", "", "a:1", "nothing that runs reads it, so its data may be deleted"),
    ("d", "", "", "c:1", "consumable, and nothing it follows from changed"),
    ("", "", "b", "b:1", "the code of jobs.x:b changed"),
]


@pytest.mark.parametrize(("fail", "lost", "changed", "place", "reason"), REASONS)
def test_every_partition_has_its_reason(fail, lost, changed, place, reason):
    stage, index = place.split(":")
    assert str(asked(pipeline(*CHAIN), fail, lost, changed)[0].of(stage)[int(index)].reason) == reason


def test_with_full_failover_everything_runs_after_a_failure_and_nothing_more_after_a_loss():
    declared = pipeline(*CHAIN).model_copy(update={"failover": Failover.FULL})
    assert actions(asked(declared, fail="c:1")[0]) == ["a run 0-2", "b run 0-2", "c run 0-2", "d run 0"]
    assert actions(asked(declared, lost="d:0")[0]) == actions(asked(pipeline(*CHAIN), lost="d:0")[0])


def test_what_runs_together_with_a_failure_says_so():
    _, found = asked(pipeline("a", "b>: a", "c: b"), fail="b:1")
    assert [*found.restart.items()] == [
        ("b:1", "it failed"),
        ("c:1", "it runs together with b[1], which failed"),
    ]


def test_the_answer_lists_regions_restarts_and_what_may_be_deleted():
    _, found = asked(pipeline("a", "b>: a", "c: b"), fail="c:0", lost="a:2")
    assert found.regions == (("a:0",), ("a:1",), ("a:2",), ("b:0", "c:0"), ("b:1", "c:1"), ("b:2", "c:2"))
    assert [*found.restart] == ["b:0", "c:0"]
    assert found.releasable == ("a:1",)


REFUSED = [
    ({"failed": ["z"]}, UnknownName, "no stage of sample 'z'. Known: a, b, c"),
    ({"failed": ["a:3"]}, UnknownName, "no partition of a '3'. Known: 0 to 2"),
    ({"failed": ["a:-1"]}, UnknownName, "no partition of a '-1'"),
    ({"failed": ["a:"]}, UnknownName, "no partition of a ''"),
    ({"failed": [""]}, UnknownName, "no stage of sample ''"),
    ({"lost": ["a"]}, InvalidArgument, "--lost is 'a'; allowed: STAGE:PARTITION"),
    ({"lost": ["b:0"]}, InvalidArgument, "whose output is stored"),
    ({"changed": ["a:0"]}, UnknownName, "no stage of sample 'a:0'"),
]


@pytest.mark.parametrize(("given_names", "error", "text"), REFUSED)
def test_names_that_do_not_exist_are_refused(given_names, error, text):
    with pytest.raises(error) as refused:
        hypothesis_of(pipeline("a", "b>: a", "c: b"), **{"failed": [], "lost": [], "changed": [], **given_names})
    assert text in str(refused.value)


PLACES = st.sets(st.sampled_from([f"{stage}:{index}" for stage in "abc" for index in range(3)]), max_size=4)


@settings(max_examples=60, deadline=None)
@given(fail=PLACES, lost=PLACES, changed=st.sets(st.sampled_from("abcd"), max_size=2))
def test_nothing_reuses_what_runs_and_nothing_that_runs_lacks_its_input(fail, lost, changed):
    plan, found = asked(pipeline(*CHAIN), " ".join(fail), " ".join(lost), " ".join(changed))
    decided = {(decision.stage, decision.partition): decision.action for decision in plan.decisions}
    hinging = {(decision.stage, decision.partition) for decision in plan.decisions if decision.hinges_on}
    edges = [(("a", i), ("b", i)) for i in range(3)]
    edges += [(("b", i), ("c", j)) for i in range(3) for j in range(3)] + [(("c", i), ("d", 0)) for i in range(3)]
    for producer, reader in edges:
        if decided[producer].computes:
            assert decided[reader].computes or (reader in hinging and decided[producer] is Action.HEAL)
        if decided[reader].computes:
            assert decided[producer] is not Action.RELEASE
            assert decided[producer].computes or ":".join(map(str, producer)) not in lost
    assert {*found.restart} == {f"{stage}:{index}" for (stage, index), action in decided.items() if action.computes}
    assert decided[("d", 0)] is not Action.RELEASE


def test_in_an_imagined_run_all_that_is_stored_is_consumable_and_unchanged():
    situation = imagined_run(pipeline("a", "b>: a", "c!: b", "d: c~gather"))
    assert {stage: len(one.data.records) for stage, one in situation.stages.items()} == {"a": 3, "b": 0, "c": 3, "d": 1}
    assert {decision.action for decision in resume_plan(situation).decisions} == {Action.REUSE}


STATES = {"f": AttemptState.FINISHED, "r": AttemptState.RUNNING, ".": AttemptState.CREATED}

GRAPHS_TABLE = [
    # graph, states, failed, lost, missing -> restarts, releasable
    ("a lone failure", "a-b", "af br", "b", "", "", "b", ""),
    ("with its input lost", "a-b", "af br", "b", "a-b", "", "a b", ""),
    ("or named as missing", "a-b", "af br", "b", "", "a-b", "a b", ""),
    ("lost data that nobody who restarts reads", "a-b b-c", "af bf cr", "c", "a-b", "", "c", ""),
    ("what every reader has read may be deleted", "a-b b-c", "af bf cr", "c", "", "", "c", "a-b"),
    ("but not when one of them restarts", "a-b b-c", "af bf cf", "b", "", "", "b c", ""),
    ("a finished consumer restarts too", "a-b b-c", "ar bf cf", "a", "", "", "a b c", ""),
    ("what was never started is left alone", "a-b b-c", "ar b. c.", "a", "", "", "a", ""),
    ("nothing failed", "a-b b-c", "af bf cf", "", "", "", "", "a-b b-c"),
]


@pytest.mark.parametrize(
    ("reads", "states", "failed", "lost", "missing", "restart", "releasable"),
    [row[1:] for row in GRAPHS_TABLE],
    ids=[row[0] for row in GRAPHS_TABLE],
)
def test_what_would_restart_in_a_graph(reads, states, failed, lost, missing, restart, releasable):
    found = what_if_graph(
        graph(reads),
        {text[0]: STATES[text[1]] for text in states.split()},
        failed=failed.split(),
        lost=lost.split(),
        missing=missing.split(),
    )
    assert [*found.restart] == restart.split()
    assert found.releasable == tuple(releasable.split())


def test_regions_of_a_graph_and_reasons():
    found = what_if_graph(graph("a>b b-c"), {"a": STATES["r"], "b": STATES["r"]}, failed=["a"])
    assert found.regions == (("a", "b"), ("c",))
    assert found.restart["a"] == "it failed, or runs together with what failed"


@pytest.mark.parametrize(
    "names", [{"failed": ["z"]}, {"failed": ["a"], "lost": ["z"]}, {"failed": ["a"], "missing": ["z"]}]
)
def test_names_a_graph_does_not_have_are_refused(names):
    with pytest.raises(UnknownName, match="'z'"):
        what_if_graph(graph("a-b"), {}, **names)


CUTOFF = [
    # graph, states, failed, lost -> restarts, spared
    ("a finished reader of what was lost stays", "a-b a-c", "af bf cr", "c", "a-c", "a c", "b"),
    ("one at work restarts", "a-b a-c", "af br cr", "c", "a-c", "a b c", ""),
    ("so does one that ran with one at work", "a-b a-c b>d", "af bf cr dr", "c", "a-c", "a b c d", ""),
    ("and one whose input comes from what failed", "a-b b-c", "ar bf cf", "a", "", "a b c", ""),
    ("even if that was lost as well", "x-a a-b a-c x-c", "xr af bf cf", "x", "a-b", "x a b c", ""),
    ("what was found lost first and reads what failed", "f-a a-b a-c", "fr af bf cr", "c f", "a-c", "a b c f", ""),
    ("nothing below one that is spared is looked at", "a-b a-c b-d", "af bf cr df", "c", "a-c", "a c", "b"),
]


@pytest.mark.parametrize(
    ("reads", "states", "failed", "lost", "restart", "spared"),
    [row[1:] for row in CUTOFF],
    ids=[row[0] for row in CUTOFF],
)
def test_early_cutoff_spares_what_has_finished_and_reads_what_was_only_lost(
    reads, states, failed, lost, restart, spared
):
    known = {text[0]: STATES[text[1]] for text in states.split()}
    found = what_if_graph(graph(reads), known, failed=failed.split(), lost=lost.split(), early_cutoff=True)
    assert sorted(found.restart) == sorted(restart.split())
    assert [*found.spared] == spared.split()
    by_flink = what_if_graph(graph(reads), known, failed=failed.split(), lost=lost.split())
    assert {*found.restart} <= {*by_flink.restart}
    assert by_flink.spared == {}


SHAPES = [
    CHAIN,
    ("a", "b: a", "c: a", "d: b c"),
    ("a", "b: a~gather", "c: a", "d: c~keyed b~broadcast"),
    ("a", "b>: a", "c: b", "d: a c"),
]
NAMED = st.sets(st.sampled_from([f"{stage}:{index}" for stage in "abcd" for index in range(3)]), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(shape=st.sampled_from(SHAPES), fail=NAMED, lost=NAMED)
def test_a_resume_and_region_failover_go_by_one_rule(shape, fail, lost):
    """With early cutoff said in both: what failed has left nothing, what was lost comes out equal."""
    declared = pipeline(*shape)
    stored = {stage.name: stage for stage in declared.stages if stage.output.type.stored}
    there = {f"{stage.name}:{index}" for stage in declared.stages for index in range(stage.partitions)}
    # What nothing reads is wanted for itself when it is lost, which is no failure.
    gone = {name for name in lost & there if name[0] in stored and any(declared.readers(name[0]))}
    failed = fail & there
    _, resumed = asked(declared, " ".join(failed), " ".join(gone))
    topology = pipeline_topology(declared)
    states = {vertex.id: STATES["r" if vertex.id in failed else "f"] for vertex in topology.vertices}
    parts = [part.id for part in topology.partitions if part.id in gone]
    found = what_if_graph(topology, states, failed=sorted(failed), lost=parts, early_cutoff=True)
    assert {*resumed.restart} == {*found.restart}
    assert {*found.spared} <= {*resumed.spared}
