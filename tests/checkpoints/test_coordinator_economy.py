"""Where the coordinator does less than Flink's: one checkpoint waits at most, and none is made of what there is."""

from __future__ import annotations

import pytest
from tests.checkpoints.scenes import START, coordinator, event, said

from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.spec.settings.run_settings import CheckpointSettings

SLOW = [
    *START,
    ("10 tick", ["prepare 1 checkpoint"]),
    ("10 prepared 1", ["ask 1 ab"]),
    ("20 tick", []),
    ("30 tick", []),
    ("40 tick", []),
    ("41 ack 1 a", []),
    ("41 ack 1 b", ["write 1"]),
]


def play(machine, scene):
    for text, expected in scene:
        assert [said(command) for command in machine.handle(event(text))] == expected, text


def test_while_one_is_under_way_only_one_waits():
    machine = coordinator(one_waiting=True)
    play(machine, SLOW)
    assert len(machine.queue) == 1
    written = ["completed 1", "announce 1 ab", "prepare 2 checkpoint"]
    play(machine, [("42 written 1", written), ("43 prepared 2", ["ask 2 ab"]), ("50 tick", [])])
    assert len(machine.queue) == 1


def test_by_flinks_rule_each_waits():
    machine = coordinator()
    play(machine, SLOW)
    assert len(machine.queue) == 3


def test_what_a_user_asks_for_waits_beside_it():
    machine = coordinator(one_waiting=True)
    play(machine, SLOW)
    play(machine, [("41 checkpoint", [])])
    assert len(machine.queue) == 2


def test_our_settings_let_one_wait_and_flinks_defaults_all():
    assert CoordinatorSettings.of(CheckpointSettings()).one_waiting
    assert not CoordinatorSettings(interval=10).one_waiting


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("tick", "spared checkpoint"), ("checkpoint", "prepare 1 checkpoint"), ("savepoint", "prepare 1 savepoint")],
)
def test_nothing_new_spares_a_periodic_checkpoint_and_no_other(asked, answer):
    machine = coordinator(anything_new=lambda: False)
    play(machine, [*START, (f"10 {asked}", [answer])])


def test_one_that_was_spared_draws_no_number_and_the_rhythm_goes_on():
    new = []
    machine = coordinator(anything_new=lambda: bool(new))
    play(machine, [*START, ("10 tick", ["spared checkpoint"]), ("20 tick", ["spared checkpoint"])])
    new.append("a wave")
    play(machine, [("29 tick", []), ("30 tick", ["prepare 1 checkpoint"])])


def test_one_that_waited_is_spared_if_what_it_waited_for_has_all():
    new = ["a wave"]
    machine = coordinator(one_waiting=True, anything_new=lambda: bool(new))
    play(machine, SLOW)
    new.clear()
    play(machine, [("42 written 1", ["completed 1", "announce 1 ab", "spared checkpoint"])])
    assert len(machine.queue) == 0


@pytest.mark.parametrize("state", ["finished", "failed", "canceled", "suspended"])
@pytest.mark.parametrize("asked", ["checkpoint", "savepoint", "stop"])
def test_what_is_asked_for_after_the_end_is_told_that_as_the_reason(state, asked):
    machine = coordinator()
    play(
        machine,
        [
            *START,
            (f"5 run {state}", []),
            (f"6 {asked}", [f"refused {asked} checkpoint_coordinator_shutdown"]),
            ("99 tick", []),
        ],
    )
