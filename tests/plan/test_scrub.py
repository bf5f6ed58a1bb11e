from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import START, record
from tests.plan.resume.situations import PUBLISHED, stage

from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.plan.scrub import (
    Condition,
    Sample,
    ScrubFinding,
    ScrubTarget,
    StageScrub,
    after_healing,
    first_findings,
    found_in,
    in_order,
    left_alone,
    mismatch_found,
    next_command,
    to_compare,
    to_heal,
)
from stagehold.spec.settings.output_settings import OnForeignChange

DELETE = ForeignChange(7, "DELETE", "bob")
PATH = record(0).files[0].path


def target(name: str = "s", interval: str = "2026-11-20", pipeline: str = "p", **facts: object) -> ScrubTarget:
    cell = Cell(pipeline, name, interval)
    records = tuple(record(partition, cell=cell) for partition in range(4))
    return replace(ScrubTarget(cell, stage(name, partitions=4), name, records), **facts)


def published(name: str, interval: str, on_foreign_change: OnForeignChange = OnForeignChange.FAIL) -> ScrubTarget:
    output = PUBLISHED.model_copy(update={"on_foreign_change": on_foreign_change})
    return target(name, interval, stage=stage(name, partitions=4, output=output))


def result(scrubbed: ScrubTarget, *partitions: int, condition: Condition = Condition.DAMAGED) -> StageScrub:
    return StageScrub(
        scrubbed, tuple(ScrubFinding(scrubbed.records[partition], condition, "bad") for partition in partitions)
    )


@pytest.mark.parametrize(
    ("text", "of", "drawn"),
    [
        ("100%", 40, 40),
        ("5%", 40, 2),
        ("5%", 41, 3),
        ("1%", 1, 1),
        ("3", 40, 3),
        ("3", 2, 2),
        ("5%", 0, 0),
        ("2", 0, 0),
    ],
)
def test_a_sample_takes_its_share_and_at_least_one(text, of, drawn):
    sample = Sample.read(text, "seed")
    assert sample is not None
    chosen = sample.draw(Cell("p", "s", "i"), [record(partition) for partition in range(of)])
    assert len(chosen) == len({one.partition for one in chosen}) == drawn
    assert list(chosen) == sorted(chosen, key=lambda one: one.partition)


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "-1", "5 %", "a", "1.5%", "5%%"])
def test_what_is_no_sample_is_none(text):
    assert Sample.read(text, "seed") is None


def test_other_seeds_and_other_cells_draw_other_partitions():
    records = [record(partition) for partition in range(40)]

    def drawn(seed: str, interval: str = "i") -> tuple[int, ...]:
        return tuple(record.partition for record in Sample(seed, percent=10).draw(Cell("p", "s", interval), records))

    assert drawn("a") == drawn("a")
    assert len({drawn(seed) for seed in "abcdefgh"}) > 1
    assert len({drawn("a", interval) for interval in "abcdefgh"}) > 1


def test_published_tables_come_first_and_then_the_newest_interval():
    given = [target("a", "2026-11-20"), target("a", "2026-11-21"), published("b", "2026-11-20")]
    given += [published("b", "2026-11-22"), target("c", "2026-11-21")]
    places = [(one.stage.name, one.cell.interval[-2:]) for one in in_order(given)]
    assert places == [("b", "22"), ("b", "20"), ("a", "21"), ("c", "21"), ("a", "20")]


DAMAGED = replace(target().records[1], state=PartitionState.DAMAGED)


@pytest.mark.parametrize(
    ("given", "found", "compared"),
    [
        (target(), {}, [0, 1, 2, 3]),
        (target(busy="bob"), dict.fromkeys(range(4), (Condition.SKIPPED, "bob works on s")), []),
        (target(gone={0: {PATH: None}}), {0: (Condition.MISSING, f"{PATH} is gone")}, [1, 2, 3]),
        (target(gone={0: {PATH: 7}}), {0: (Condition.MISSING, f"{PATH} has 7 bytes, and 1000 on record")}, [1, 2, 3]),
        (
            target(gone={0: {PATH: 1000}}),
            {0: (Condition.MISSING, "its table no longer has it as version 1 published it")},
            [1, 2, 3],
        ),
        (
            target(records=(DAMAGED, target().records[2])),
            {1: (Condition.DAMAGED, f"marked at {START:%Y-%m-%d %H:%M:%S} UTC")},
            [2],
        ),
        (target(records=(replace(DAMAGED, state=PartitionState.CONSUMABLE, files=()),)), {}, []),
        (
            replace(published("t", "i", OnForeignChange.FAIL), removed={2: DELETE}),
            {2: (Condition.SKIPPED, str(DELETE))},
            [0, 1, 3],
        ),
        (
            replace(published("t", "i", OnForeignChange.HEAL), removed={2: DELETE}),
            {2: (Condition.MISSING, str(DELETE))},
            [0, 1, 3],
        ),
        (replace(published("t", "i", OnForeignChange.KEEP), removed={2: DELETE}), {}, [0, 1, 2, 3]),
    ],
    ids=["sound", "busy", "gone", "cut", "version", "marked", "empty", "foreign fail", "foreign heal", "foreign keep"],
)
def test_what_is_known_before_any_content_is_read(given, found, compared):
    findings = first_findings(given)
    assert {finding.record.partition: (finding.condition, finding.differs) for finding in findings} == found
    assert [one.partition for one in to_compare(given)] == compared


def test_a_mismatch_says_what_differs_and_why_it_is_not_marked():
    told = mismatch_found((record(0), "a-1"), marked=True)
    assert (told.differs, told.marked) == ("its fingerprint is a-1, and fingerprint of 0 on record", True)
    told = mismatch_found((record(0), None), marked=False, why_not="not marked: busy")
    assert (told.differs, told.marked) == ("it cannot be read; not marked: busy", False)


def test_what_is_open_is_healed_but_not_where_somebody_works():
    one, two, three = target("a", "1"), target("b", "1"), target("a", "2")
    found = [result(one, 0, 2), result(two, 1, condition=Condition.MISSING), result(three, 3)]
    assert to_heal(found) == {
        ("p", "1"): {"a": frozenset({0, 2}), "b": frozenset({1})},
        ("p", "2"): {"a": frozenset({3})},
    }
    busy = result(replace(target("c", "1"), busy="bob"), 0, condition=Condition.SKIPPED)
    assert left_alone([*found, busy]) == {("p", "1"): "bob works on c"}
    assert left_alone([busy]) == {}
    assert to_heal([*found, busy]) == {("p", "2"): {"a": frozenset({3})}}
    assert found_in([*found, busy])(one.cell, one.records) == (one.records[0], one.records[2])


def test_healed_is_what_was_looked_at_again_and_is_sound():
    before = result(target(), 0, 1, 2)
    again = result(replace(target(), records=target().records[:2]), 1)
    (after,) = after_healing([before], [again])
    assert [finding.healed for finding in after.findings] == [True, False, False]
    assert [finding.record.partition for finding in after.open] == [1, 2]


@pytest.mark.parametrize(
    ("results", "command"),
    [
        ([result(target())], None),
        ([result(target(), 0, condition=Condition.SKIPPED)], None),
        ([result(target(), 0)], "stagehold verify p --interval 2026-11-20 --heal"),
        ([result(target(interval="a b"), 0)], "stagehold verify p --interval 'a b' --heal"),
        ([result(target("a"), 0), result(target("b", "1"), 0)], "stagehold verify p --heal"),
        ([result(target("a"), 0), result(target(pipeline="q"), 0)], "stagehold verify --heal"),
    ],
)
def test_the_command_to_run_next(results, command):
    assert next_command(results) == command
