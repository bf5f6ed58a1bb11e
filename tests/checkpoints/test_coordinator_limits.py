"""The coordinator's gate on blocking outputs, its bounds, and what it refuses."""

from __future__ import annotations

import pytest
from tests.checkpoints.scenes import (
    KINDS,
    coordinator,
    event,
    said,
)

from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.errors import UnknownName
from stagehold.model.checkpoint_records import CheckpointFailure

GATED = {
    "nothing is taken while a task writes a blocking output": (
        "Ab",
        [
            ("0 run running", []),
            ("0 task a running", []),
            ("0 task b running", []),
            ("1 savepoint", ["refused savepoint blocking_output_exists"]),
            ("1 stop", ["refused stop blocking_output_exists"]),
            ("99 tick", []),
        ],
    ),
    "the timer starts with the first task that runs after all of those are finished": (
        "Ab",
        [
            ("0 run running", []),
            ("0 task a running", []),
            ("5 task a finished", []),
            ("6 savepoint", ["prepare 1 savepoint"]),
            ("7 prepared 1", ["ask 1 -", "write 1"]),
            ("8 task b running", []),
            ("17 tick", []),
            ("17 written 1", ["completed 1"]),
            ("18 tick", ["prepare 2 checkpoint"]),
        ],
    ),
    "a task that failed or was cancelled writes none any more": (
        "ABc",
        [
            ("0 run running", []),
            ("0 task a running", []),
            ("0 task b running", []),
            ("5 task a failed", []),
            ("6 savepoint", ["refused savepoint blocking_output_exists"]),
            ("7 task b canceled", []),
            ("8 savepoint", ["prepare 1 savepoint"]),
        ],
    ),
    "without blocking outputs it starts with the run": (
        "ab",
        [("0 run running", []), ("1 task a running", []), ("9 tick", []), ("10 tick", ["prepare 1 checkpoint"])],
    ),
    "a task that runs before the run does starts nothing": ("a", [("0 task a running", []), ("99 tick", [])]),
}


@pytest.mark.parametrize(("tasks", "steps"), GATED.values(), ids=GATED.keys())
def test_scenario_with_the_gate_on_blocking_outputs(tasks, steps):
    machine = coordinator(tasks=tasks, blocking_output_gate=True)
    for text, wanted in steps:
        assert [said(command) for command in machine.handle(event(text))] == wanted, text


def test_without_the_gate_blocking_outputs_do_not_matter():
    machine = coordinator(tasks="A")
    for text in ("0 run running", "0 task a running"):
        machine.handle(event(text))
    assert [said(command) for command in machine.handle(event("1 savepoint"))] == ["prepare 1 savepoint"]


def test_a_thousand_requests_wait_at_most_and_the_lowest_is_refused():
    machine = coordinator(interval=1)
    for text in ("0 run running", "1 tick", *["1 checkpoint"] * 999, "2 tick"):
        assert "refused" not in " ".join(said(command) for command in machine.handle(event(text)))
    assert len(machine.queue) == 1000
    (first,) = machine.handle(event("2 checkpoint"))
    assert (first.request.at, first.request.periodic, first.reason) == (
        2,
        True,
        CheckpointFailure.TOO_MANY_CHECKPOINT_REQUESTS,
    )
    (second,) = machine.handle(event("3 savepoint"))
    assert (second.request.at, second.request.kind, second.reason) == (
        3,
        KINDS["savepoint"],
        CheckpointFailure.TOO_MANY_CHECKPOINT_REQUESTS,
    )


def test_the_first_delay_is_random_between_pause_and_interval():
    bounds = []
    machine = coordinator(min_pause=3, uniform=lambda low, high: bounds.append((low, high)) or 4)
    machine.handle(event("100 run running"))
    assert bounds == [(3, 10)]
    assert machine.next_wake() == 104


def test_the_next_wake_is_the_earliest_timeout_or_trigger():
    machine = coordinator(tasks="a", timeout=4)
    assert machine.next_wake() is None
    wakes = []
    for text in ("0 run running", "0 task a running", "1 savepoint", "1 prepared 1", "2 ack 1 a"):
        machine.handle(event(text))
        wakes.append(machine.next_wake())
    assert wakes == [10, 10, 5, 5, 10]


def test_a_pause_is_at_most_a_year():
    assert CoordinatorSettings(interval=1, min_pause=10**12).period == 365 * 24 * 3_600_000


def test_a_task_that_the_run_does_not_have_is_refused_by_name():
    with pytest.raises(UnknownName, match="no task 'z'"):
        coordinator().handle(event("0 task z running"))


def test_what_is_no_event_is_a_mistake_of_the_caller():
    with pytest.raises(NotImplementedError):
        coordinator().handle("now")
