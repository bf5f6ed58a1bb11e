"""What partitions begin with of what their stage kept before, as tables and as a property over all cuts."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made_records import partition_record
from tests.plan.resume.situations import (
    altered,
    changed,
    fresh,
    gather,
    record,
    source,
    stage,
    with_facts,
    with_records,
)

from stagehold.model.keys.key_groups import index_of_group, range_of
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell, DataFile, PartitionRecord, StatePart
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.plan.state.earlier_state import Cut, Earlier, Gap, earlier_of
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.output_settings import StateForm

NOW = datetime(2026, 11, 20, tzinfo=UTC)
KEYED = StateShape("seen", StateKind.KEYED, (), ("id",))
MOST = 128


def kept(
    partition: int, partitions: int, *, rows: int = 1, most: int = MOST, epoch: int = 1, **facts
) -> PartitionRecord:
    part = StatePart("seen", (DataFile(f"f{partition}", 9, rows),), rows, f"s{partition}", partitions, most, began="")
    return partition_record(partition, Cell("p", "s", "monday"), epoch=epoch, kept=(part,), **facts)


def all_of(partitions: int, **facts) -> list[PartitionRecord]:
    return [kept(number, partitions, **facts) for number in range(partitions)]


@pytest.mark.parametrize(
    ("records", "gap", "text"),
    [
        ([], Gap("monday"), "monday has to run first: it kept nothing yet"),
        (
            all_of(4)[:2],
            Gap("monday", PartitionSet((2, 3))),
            "monday has to run first: it lacks what partitions 2-3 kept",
        ),
        (
            [replace(kept(0, 2), state=PartitionState.BLOCKED), kept(1, 2)],
            Gap("monday", PartitionSet((0,))),
            "monday has to run first: it lacks what partitions 0 kept",
        ),
        ([*all_of(2), kept(0, 3, epoch=2)], Gap("monday", PartitionSet((1, 2))), "it lacks what partitions 1-2 kept"),
    ],
)
def test_an_interval_that_lacks_something_has_to_run_first(records, gap, text):
    found = earlier_of("monday", records)
    assert (found.gap, found.records) == (gap, ())
    assert text in str(gap)


def test_what_an_earlier_cut_left_does_not_count():
    found = earlier_of("monday", [*all_of(2, epoch=2), kept(2, 4), kept(3, 4)])
    assert [record.partition for record in found.records] == [0, 1]
    assert earlier_of("monday", [kept(0, 2), kept(1, 2)], lost={1}).gap == Gap("monday", PartitionSet((1,)))


def test_what_kept_nothing_leaves_the_next_one_to_begin_empty():
    nothing = earlier_of("monday", [replace(kept(0, 1), kept=())])
    assert (nothing.gap, nothing.given(KEYED, 0, Cut(1, MOST)).pieces) == (None, ())


@settings(deadline=None)
@given(before=st.integers(1, 20), now=st.integers(1, 20), group=st.integers(0, MOST - 1))
def test_each_group_is_read_by_its_new_owner_and_by_nobody_else(before, now, group):
    earlier, holder = earlier_of("monday", all_of(before)), index_of_group(group, before, MOST)
    readers = []
    for partition in range(now):
        found = earlier.given(KEYED, partition, Cut(now, MOST))
        own = found.regrouped is False or group in range_of(partition, now, MOST)
        if own and f"f{holder}" in {piece.part.files[0].path for piece in found.pieces}:
            readers.append(partition)
    assert readers == [index_of_group(group, now, MOST)]


def test_other_groups_are_looked_for_everywhere():
    found = earlier_of("monday", all_of(3, most=64)).given(KEYED, 0, Cut(3, MOST))
    assert (len(found.pieces), found.regrouped) == (3, True)


@settings(deadline=None)
@given(rows=st.lists(st.integers(0, 9), min_size=1, max_size=8), now=st.integers(1, 12))
def test_a_list_is_dealt_without_loss_or_double(rows, now):
    earlier = earlier_of("monday", [kept(number, len(rows), rows=count) for number, count in enumerate(rows)])
    shape = replace(KEYED, kind=StateKind.SPLIT, key=())
    found = [earlier.given(shape, partition, Cut(now, MOST)) for partition in range(now)]
    if now == len(rows):
        assert [len(one.pieces) for one in found] == [1] * now
    else:
        assert [place for one in found for place in one.elements or ()] == [*range(sum(rows))]


@pytest.mark.parametrize(("kind", "held"), [(StateKind.UNION, ["f0f1"] * 3), (StateKind.BROADCAST, ["f0", "f1", "f0"])])
def test_every_partition_is_given_a_whole_list(kind, held):
    earlier, shape = earlier_of("monday", all_of(2)), replace(KEYED, kind=kind, key=())
    given = [earlier.given(shape, partition, Cut(3, MOST)).pieces for partition in range(3)]
    assert ["".join(piece.part.files[0].path for piece in pieces) for pieces in given] == held


KEEPER = stage("total", gather("raw"), partitions=1).model_copy(
    update={"state": {"seen": StateForm(key=("id",), columns={"id": "bigint"})}}
)
PIPELINE = Pipeline(name="chain", file="chain.yaml", schedule="@daily", stages=(source("raw"), KEEPER))


def situation(earlier: Earlier, **facts) -> Situation:
    return with_facts(fresh(PIPELINE), earlier={"total": earlier}, **facts)


def done(earlier: Earlier) -> Situation:
    """Everything was computed with this, and keeps something."""
    found = situation(earlier)
    for name in ("raw", "total"):
        decided = resume_plan(found).of(name)
        made = tuple(record(PIPELINE, name, one.partition, one.key) for one in decided if one.key)
        found = with_records(found, name, made)
    part = replace(kept(0, 1).kept[0], began=earlier.given(KEYED, 0, Cut(1, MOST)).identity, after="monday")
    return altered(found, "total", 0, kept=(part,))


MONDAY = earlier_of("monday", all_of(1))
OTHER = earlier_of("monday", [replace(kept(0, 1), kept=(replace(kept(0, 1).kept[0], fingerprint="other"),))])
GAP = Earlier("monday", gap=Gap("monday"))


@pytest.mark.parametrize(
    ("known", "action", "reason"),
    [
        (situation(MONDAY), Action.RUN, "reads raw[0-1], which runs again"),
        (done(MONDAY), Action.REUSE, "consumable, and nothing it follows from changed"),
        (with_facts(done(MONDAY), earlier={"total": OTHER}), Action.RUN, "what total kept in monday changed"),
        (
            with_facts(done(MONDAY), earlier={"total": GAP}),
            Action.REUSE,
            "consumable, and nothing it follows from changed",
        ),
        (situation(GAP), Action.BLOCKED, "goes on with what it keeps from one interval to the next, and monday has"),
        (
            with_facts(changed(done(MONDAY), "total", code="new"), earlier={"total": GAP}),
            Action.BLOCKED,
            "monday has to",
        ),
        (
            with_facts(done(MONDAY), earlier={"total": GAP}, gone={"total": frozenset({0})}),
            Action.BLOCKED,
            "monday has to",
        ),
    ],
)
def test_what_was_kept_before_is_an_input(known, action, reason):
    (decision,) = resume_plan(known).of("total")
    assert decision.action is action
    assert reason in str(decision.reason)
    assert (getattr(decision, "gap", None) == Gap("monday")) is (action is Action.BLOCKED)


def test_what_was_kept_in_other_shapes_counts_as_a_whole():
    """Its author's function may make any row of it of any other, whichever partition that was kept by."""
    shape = replace(KEYED, columns=(StateColumn("id", "bigint"),))
    told = [replace(record, kept=(replace(record.kept[0], shape=shape.written),)) for record in all_of(4)]
    other = [*told[:3], replace(told[3], kept=(replace(told[3].kept[0], fingerprint="other"),))]
    for now, same in ((shape, True), (replace(shape, columns=(StateColumn("id", "string"),)), False)):
        before, after = (
            earlier_of("monday", records).beginning(now, [now], 0, Cut(4, MOST)) for records in (told, other)
        )
        assert (before == after) is same
    assert not earlier_of("monday", all_of(4)).is_of_other([shape]), "what did not say how it was declared"


def test_planning_many_partitions_takes_a_moment():
    """Each may be given all of a list, which is looked at once."""
    many = 20_000
    earlier = earlier_of("monday", all_of(many, most=32768))
    shapes = [replace(KEYED, kind=kind, key=()) for kind in (StateKind.UNION, StateKind.SPLIT, StateKind.BROADCAST)]
    started = time.process_time()
    for partition in range(many - 1):
        earlier.identity([KEYED, *shapes], partition, Cut(many - 1, 32768), None)
    assert time.process_time() - started < 10
