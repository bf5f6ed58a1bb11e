from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topology.graphs import GRAPHS, graph

from stagehold.errors import UnknownName
from stagehold.model.records import AttemptState
from stagehold.topology.failover import (
    FailureSituation,
    Restart,
    RestartCause,
    region_failover,
)
from stagehold.topology.partition_regions import partition_regions

STATES = {".": AttemptState.CREATED, "r": AttemptState.RUNNING, "f": AttemptState.FINISHED}


def situation(reads, states="", lost=()):
    """``states`` as "af br c.": a finished, b running, c never started; all others are running."""
    topology = graph(reads)
    given_states = {text[0]: STATES[text[1]] for text in states.split()}
    known = {vertex: given_states.get(vertex, AttemptState.RUNNING) for vertex in topology.position}
    return FailureSituation(partition_regions(topology), known, lambda partition: partition not in lost)


def restarted(restarts):
    return "".join(sorted(restart.vertex for restart in restarts))


# reads, states, lost partitions, failed vertices, missing partition named by the cause -> restarted
TABLE = [
    ("a lone vertex", "a b", "", "", "a", "", "a"),
    ("a consumer alone while its input is available", "a-b", "af", "", "b", "", "b"),
    ("an input that is gone pulls its producer", "a-b", "af", "a-b", "b", "", "ab"),
    ("inputs that are gone pull all the way to the source", "a-b b-c", "af bf", "a-b b-c", "c", "", "abc"),
    ("all partitions that the cause names", "ax-b", "af xf", "", "b", "a-b x-b", "abx"),
    ("the climb ends where data is available", "a-b b-c", "af bf", "b-c", "c", "", "bc"),
    ("a partition that the cause names pulls its producer", "a-b", "af", "", "b", "a-b", "ab"),
    ("a finished consumer restarts with its producer", "a-b", "af bf", "", "a", "", "ab"),
    ("and so does all that is downstream", "a-b b-c c-d", "af bf cf dr", "", "b", "", "bcd"),
    ("a finished producer does not restart with its consumer", "a-b a-c", "af bf", "", "c", "", "c"),
    ("siblings restart when the shared producer does", "a-bc", "af bf", "a-bc", "c", "", "abc"),
    ("a pipelined region restarts as one", "a>b b-c", "", "", "b", "", "abc"),
    ("a pipelined region pulls for each of its vertices", "x-a a>b y-b", "xf yf", "y-b", "a", "", "aby"),
    ("what was never started is left alone", "a-b b-c", "af b. c.", "", "a", "", "a"),
    ("but what started behind it is not", "a-b b-c", "af b. cr", "", "a", "", "ac"),
    ("a failed vertex that was never started is left alone too", "a", "a.", "", "a", "", ""),
    ("an all-to-all exchange pulls only the lost producers", "abc-de", "af bf cf", "b-de", "d", "", "bde"),
    ("a pointwise exchange pulls its own", "a-c b-d", "af bf", "a-c b-d", "d", "", "bd"),
    ("data that nobody restarted needs is not missed", "a-b c-d", "af cf", "c-d", "b", "", "b"),
    ("the other input of a restarted consumer is asked for too", "a-b x-b", "af xf", "x-b", "a", "", "abx"),
    ("a lost persistent output pulls like any other", "a=b", "af", "a=b", "b", "", "ab"),
    ("a diamond restarts below the lost corner", "s-lr l-t r-t", "sf lf rf", "l-t", "t", "", "lt"),
    ("a diamond restarts whole from its lost top", "s-lr l-t r-t", "sf lf rf", "l-t s-lr", "t", "", "lrst"),
    ("two failures at once", "a-b c-d", "af cf", "a-b", "bd", "", "abd"),
]


@pytest.mark.parametrize(
    ("reads", "states", "lost", "failed", "missing", "expected"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_the_failed_region_what_it_lacks_and_all_below_restart(reads, states, lost, failed, missing, expected):
    restarts = region_failover(situation(reads, states, lost.split()), failed, missing.split())
    assert restarted(restarts) == expected


def test_each_restart_says_why():
    restarts = region_failover(situation("a-b b-c", "af", ["a-b"]), "b")
    assert restarts == (
        Restart("a", RestartCause.INPUT_LOST, "a-b"),
        Restart("b", RestartCause.FAILED),
        Restart("c", RestartCause.UPSTREAM_RESTARTS, "b-c"),
    )
    assert [restart.reason for restart in restarts] == [
        "a-b is needed and is not available",
        "it failed, or runs together with what failed",
        "b-c, which its region reads, will be produced again",
    ]


def test_every_cause_has_its_words():
    assert len({Restart("a", cause, "p").reason for cause in RestartCause}) == len(RestartCause)


def test_a_missing_partition_counts_for_the_failure_that_names_it_only():
    now = situation("a-b", "af")
    assert restarted(region_failover(now, "b", ["a-b"])) == "ab"
    assert restarted(region_failover(now, "b")) == "b"


def test_availability_is_asked_anew_at_every_failure_and_once_per_partition():
    asked = []
    gone = set()

    def available(partition):
        asked.append(partition)
        return partition not in gone

    topology = graph("ab-cd c-e")
    now = FailureSituation(
        partition_regions(topology), dict.fromkeys(topology.position, AttemptState.RUNNING), available
    )
    assert restarted(region_failover(now, "c")) == "ce"
    gone.add("b-cd")
    assert restarted(region_failover(now, "c")) == "bcde"
    assert asked == ["a-cd", "b-cd", "c-e"] * 2


def test_a_sequence_of_failures_is_answered_by_what_is_true_each_time():
    lost = set()
    topology = graph("a-b b-c")
    states = {"a": AttemptState.FINISHED, "b": AttemptState.FINISHED, "c": AttemptState.RUNNING}
    now = FailureSituation(partition_regions(topology), states, lambda partition: partition not in lost)
    steps = []
    for vertex, newly_lost in [("c", set()), ("c", {"b-c"}), ("b", {"a-b"}), ("a", set())]:
        lost |= newly_lost
        steps.append(restarted(region_failover(now, [vertex])))
        lost.clear()
    assert steps == ["c", "bc", "abc", "abc"]


@pytest.mark.parametrize("failure", [(["z"], []), (["a"], ["z"])])
def test_unknown_names_are_refused(failure):
    with pytest.raises(UnknownName, match="'z'"):
        region_failover(situation("a-b"), *failure)


def oracle(topology, regions, failed, states, unavailable):
    """The rules as a fixed point over every read, one vertex at a time."""
    together = {vertex: set(region) for region in regions.regions for vertex in region}
    producer = {partition.id: partition.producer for partition in topology.partitions}
    reads = [(name, consumer) for group in topology.groups for name in group.partitions for consumer in group.consumers]
    taken = set(together[failed])
    while True:
        more = {member for vertex in taken for member in together[vertex]}
        more |= {producer[name] for name, consumer in reads if consumer in taken and name in unavailable}
        more |= {consumer for name, consumer in reads if producer[name] in taken}
        if more <= taken:
            return {vertex for vertex in taken if states[vertex] is not AttemptState.CREATED}
        taken |= more


@given(GRAPHS, st.data())
def test_the_restart_set_is_the_fixed_point_of_the_rules(topology, data):
    regions = partition_regions(topology)
    states = {vertex: data.draw(st.sampled_from(sorted(STATES.values()))) for vertex in topology.position}
    lost = data.draw(st.sets(st.sampled_from(sorted(topology.partition_position)))) if topology.partitions else set()
    failed = data.draw(st.sampled_from(sorted(topology.position)))
    streamed = {partition.id for partition in topology.partitions if not partition.type.reconsumable}
    restarts = region_failover(FailureSituation(regions, states, lambda partition: partition not in lost), [failed])
    assert {restart.vertex for restart in restarts} == oracle(topology, regions, failed, states, lost | streamed)
