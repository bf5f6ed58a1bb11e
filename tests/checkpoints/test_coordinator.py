"""What the coordinator answers to what it is told, scene by scene."""

from __future__ import annotations

import pytest
from tests.checkpoints.scenes import (
    START,
    WHOLE_SAVEPOINT,
    coordinator,
    entries,
    event,
    said,
)

from stagehold.checkpoints.store import CheckpointStore, Retention

SCENARIOS = {
    "one checkpoint, from the tick to the announcement": (
        {},
        [
            ("9 tick", []),
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("11 ack 1 a", []),
            ("12 ack 1 b", ["write 1"]),
            ("13 written 1", ["completed 1", "announce 1 ab"]),
        ],
    ),
    "fixed rate: a tick that comes late does not shift the next": (
        {"max_concurrent": 9},
        [("14 tick", ["prepare 1 checkpoint"]), ("14 prepared 1", ["ask 1 ab"]), ("19 tick", []),
         ("20 tick", ["prepare 2 checkpoint"])],
    ),
    "ticks that were missed are made up for by one, and the rhythm stays": (
        {"max_concurrent": 9},
        [
            ("45 tick", ["prepare 1 checkpoint"]),
            ("45 prepared 1", ["ask 1 ab"]),
            ("45 tick", []),
            ("49 tick", []),
            ("50 tick", ["prepare 2 checkpoint"]),
        ],
    ),
    "the interval is never shorter than the pause": (
        {"interval": 1, "min_pause": 10},
        [("9 tick", []), ("10 tick", ["prepare 1 checkpoint"])],
    ),
    "at most so many at a time; the next waits and then starts at once": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("20 tick", []),
            ("21 ack 1 a", []),
            ("21 ack 1 b", ["write 1"]),
            ("22 written 1", ["completed 1", "announce 1 ab", "prepare 2 checkpoint"]),
        ],
    ),
    "nothing starts while another one is being prepared, not even a savepoint": (
        {},
        [("10 tick", ["prepare 1 checkpoint"]), ("10 savepoint", []),
         ("11 prepared 1", ["ask 1 ab", "prepare 2 savepoint"])],
    ),
    "a savepoint waits for no slot": (
        {},
        [("10 tick", ["prepare 1 checkpoint"]), ("10 prepared 1", ["ask 1 ab"]),
         ("11 savepoint", ["prepare 2 savepoint"])],
    ),
    "a checkpoint that a user asks for waits for a slot, and goes before a periodic one": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("20 tick", []),
            ("21 checkpoint", []),
            ("22 decline 1 a", ["aborted 1 checkpoint_declined", "prepare 2 checkpoint"]),
        ],
    ),
    "within the pause a periodic one is refused, and the timer set to its end": (
        {"interval": 10, "min_pause": 10},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("15 ack 1 a", []),
            ("15 ack 1 b", ["write 1"]),
            ("16 written 1", ["completed 1", "announce 1 ab"]),
            ("20 tick", ["refused checkpoint minimum_time_between_checkpoints"]),
            ("25 tick", []),
            ("26 tick", ["prepare 2 checkpoint"]),
        ],
    ),
    "the pause does not hold up what a user asks for": (
        {"min_pause": 10},
        [
            *WHOLE_SAVEPOINT,
            ("4 checkpoint", ["prepare 2 checkpoint"]),
            ("4 prepared 2", ["ask 2 ab"]),
            ("4 savepoint", ["prepare 3 savepoint"]),
        ],
    ),
    "a savepoint delays the next periodic checkpoint, though nobody is told of it": (
        {"min_pause": 10},
        [*WHOLE_SAVEPOINT, ("10 tick", ["refused checkpoint minimum_time_between_checkpoints"]),
         ("13 tick", ["prepare 2 checkpoint"])],
    ),
    "a newer checkpoint subsumes older ones, but no savepoint": (
        {"max_concurrent": 3},
        [
            ("1 savepoint", ["prepare 1 savepoint"]),
            ("1 prepared 1", ["ask 1 ab"]),
            ("10 tick", ["prepare 2 checkpoint"]),
            ("10 prepared 2", ["ask 2 ab"]),
            ("20 tick", ["prepare 3 checkpoint"]),
            ("20 prepared 3", ["ask 3 ab"]),
            ("21 ack 3 a", []),
            ("21 ack 3 b", ["write 3"]),
            ("21 written 3", ["completed 3", "aborted 2 checkpoint_subsumed", "announce 3 ab"]),
            ("22 ack 2 a", ["ignored 2 a unknown checkpoint"]),
            ("22 ack 1 a", []),
            ("22 ack 1 b", ["write 1"]),
            ("23 written 1", ["completed 1"]),
        ],
    ),
    "one that is subsumed while it is written never completes, and its manifest is deleted": (
        {"max_concurrent": 3, "tasks": "a"},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 a"]),
            ("11 ack 1 a", ["write 1"]),
            ("20 tick", ["prepare 2 checkpoint"]),
            ("20 prepared 2", ["ask 2 a"]),
            ("20 ack 2 a", ["write 2"]),
            ("21 written 2", ["completed 2", "aborted 1 checkpoint_subsumed", "announce 2 a"]),
            ("22 written 1", ["discard 1"]),
        ],
    ),
    "a stop-with-savepoint subsumes, is announced, and stops the tasks": (
        {"max_concurrent": 2, "tasks": "a"},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 a"]),
            ("11 stop", ["prepare 2 stop"]),
            ("11 prepared 2", ["ask 2 a"]),
            ("12 ack 2 a", ["write 2"]),
            ("12 written 2", ["completed 2", "aborted 1 checkpoint_subsumed", "announce 2 a stop"]),
        ],
    ),
    "the second checkpoint drops the first and says so": (
        {"tasks": "a"},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 a"]),
            ("11 ack 1 a", ["write 1"]),
            ("12 written 1", ["completed 1", "announce 1 a"]),
            ("20 tick", ["prepare 2 checkpoint"]),
            ("20 prepared 2", ["ask 2 a"]),
            ("21 ack 2 a", ["write 2"]),
            ("22 written 2", ["completed 2", "announce 2 a over 1", "discard 1"]),
        ],
    ),
    "nothing starts while deleting lags behind": (
        {"tasks": "a", "store": CheckpointStore(1, entries("1 checkpoint", "2 checkpoint",
          "3 checkpoint")), "next_id": 4},
        [
            ("10 tick", ["prepare 4 checkpoint"]),
            ("10 prepared 4", ["ask 4 a"]),
            ("11 ack 4 a", ["write 4"]),
            ("12 written 4", ["completed 4", "announce 4 a over 3", "discard 1", "discard 2", "discard 3"]),
            ("20 tick", []),
            ("21 discarded 1", []),
            ("22 discarded 2", ["prepare 5 checkpoint"]),
        ],
    ),
    "an answer counts once, and a stranger's acknowledgement does nothing": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("11 ack 1 a", []),
            ("12 ack 1 a", ["ignored 1 a duplicate"]),
            ("12 ack 1 z", ["ignored 1 z unknown task"]),
            ("12 ack 7 a", ["ignored 7 a unknown checkpoint"]),
            ("13 ack 1 b", ["write 1"]),
            ("13 ack 1 b", ["ignored 1 b duplicate"]),
        ],
    ),
    "a stranger's decline aborts": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("11 decline 1 z", ["aborted 1 checkpoint_declined"]),
            ("12 decline 1 a", ["ignored 1 a unknown checkpoint"]),
        ],
    ),
    "a decline that comes after the last acknowledgement is too late": (
        {"tasks": "a"},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 a"]),
            ("11 ack 1 a", ["write 1"]),
            ("11 decline 1 a", ["ignored 1 a unknown checkpoint"]),
            ("12 written 1", ["completed 1", "announce 1 a"]),
        ],
    ),
    "what nobody acknowledges in time expires; only queued requests run then": (
        {"timeout": 15, "interval": 100},
        [
            ("1 checkpoint", ["prepare 1 checkpoint"]),
            ("1 prepared 1", ["ask 1 ab"]),
            ("2 checkpoint", []),
            ("15 tick", []),
            ("16 tick", ["aborted 1 checkpoint_expired", "prepare 2 checkpoint"]),
            ("17 ack 1 a", ["ignored 1 a expired"]),
            ("17 decline 1 a", ["ignored 1 a expired"]),
        ],
    ),
    "a checkpoint that is being written does not expire any more": (
        {"timeout": 5, "tasks": "a"},
        [
            ("1 checkpoint", ["prepare 1 checkpoint"]),
            ("1 prepared 1", ["ask 1 a"]),
            ("2 ack 1 a", ["write 1"]),
            ("9 tick", []),
            ("9 written 1", ["completed 1", "announce 1 a"]),
        ],
    ),
    "one that expires in preparation holds up the next until its preparation has ended": (
        {"timeout": 5},
        [
            ("1 savepoint", ["prepare 1 savepoint"]),
            ("6 tick", ["aborted 1 checkpoint_expired"]),
            ("7 savepoint", []),
            ("8 prepared 1", ["prepare 2 savepoint"]),
            ("9 prepared 1", []),
        ],
    ),
    "a place that cannot be prepared costs the id": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("11 unprepared 1", ["aborted 1 io_exception"]),
            ("11 unprepared 1", []),
            ("20 tick", ["prepare 2 checkpoint"]),
        ],
    ),
    "a manifest that cannot be written": (
        {"tasks": "a"},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 a"]),
            ("11 ack 1 a", ["write 1"]),
            ("12 unwritten 1", ["aborted 1 finalize_checkpoint_failure"]),
            ("12 unwritten 1", []),
        ],
    ),
    "a task that finishes has acknowledged": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 task a finished", []),
            ("10 prepared 1", ["ask 1 b"]),
            ("11 task b finished", ["write 1"]),
            ("11 ack 1 b", ["ignored 1 b duplicate"]),
        ],
    ),
    "a task that finishes after it acknowledged changes nothing": (
        {},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("11 ack 1 a", []),
            ("12 task a finished", []),
        ],
    ),
    "when every task is finished there is nobody to ask": (
        {"tasks": "a"},
        [("1 task a finished", []), ("10 tick", ["prepare 1 checkpoint"]), ("10 prepared 1", ["ask 1 -", "write 1"])],
    ),
    "a task that has not begun has nothing to save": (
        {},
        [("5 task b created", []), ("10 tick", ["prepare 1 checkpoint"]), ("10 prepared 1", ["ask 1 a"])],
    ),
    "unless every task has to have begun; then no id is spent": (
        {"every_task": True},
        [
            ("5 task b created", []),
            ("10 tick", ["refused checkpoint not_all_required_tasks_running"]),
            ("11 task b running", []),
            ("12 task a finished", []),
            ("20 tick", ["prepare 1 checkpoint"]),
            ("20 prepared 1", ["ask 1 b"]),
        ],
    ),
    "any state of the run but running stops everything, savepoints too": (
        {},
        [
            ("1 savepoint", ["prepare 1 savepoint"]),
            ("1 prepared 1", ["ask 1 ab"]),
            ("2 checkpoint", []),
            ("3 run restarting", ["aborted 1 checkpoint_coordinator_suspend",
              "refused checkpoint checkpoint_coordinator_suspend"]),
            ("4 savepoint", ["refused savepoint not_all_required_tasks_running"]),
            ("30 tick", []),
            ("31 run running", []),
            ("40 tick", []),
            ("41 tick", ["prepare 2 checkpoint"]),
        ],
    ),
    "a failover aborts what is pending and leaves what is queued": (
        {"min_pause": 0},
        [
            ("10 tick", ["prepare 1 checkpoint"]),
            ("10 prepared 1", ["ask 1 ab"]),
            ("11 checkpoint", []),
            ("12 failover", ["aborted 1 job_failover_region", "prepare 2 checkpoint"]),
        ],
    ),
    "checkpoints are deleted at the end of the run": (
        {"store": CheckpointStore(2, entries("3 savepoint", "4 checkpoint"))},
        [("1 run finished", ["discard 4"])],
    ),
    "and kept as the pipeline wants it": (
        {"store": CheckpointStore(2, entries("4 checkpoint")), "retention": Retention.ON_FAILURE},
        [("1 run failing", []), ("2 run failed", [])],
    ),
    "failures in a row are tolerated up to a number": (
        {"tolerable_failures": 1},
        [
            ("1 checkpoint", ["prepare 1 checkpoint"]),
            ("1 prepared 1", ["ask 1 ab"]),
            ("2 decline 1 a", ["aborted 1 checkpoint_declined"]),
            ("3 checkpoint", ["prepare 2 checkpoint"]),
            ("3 unprepared 2", ["aborted 2 io_exception", "fail run 2 io_exception"]),
        ],
    ),
    "a savepoint clears the count of failures": (
        {"tolerable_failures": 1, "tasks": "a"},
        [
            ("1 checkpoint", ["prepare 1 checkpoint"]),
            ("1 unprepared 1", ["aborted 1 io_exception"]),
            ("2 savepoint", ["prepare 2 savepoint"]),
            ("2 prepared 2", ["ask 2 a"]),
            ("2 ack 2 a", ["write 2"]),
            ("2 written 2", ["completed 2"]),
            ("3 checkpoint", ["prepare 3 checkpoint"]),
            ("3 unprepared 3", ["aborted 3 io_exception"]),
        ],
    ),
    "a stop-with-savepoint that expires does not fail the run": (
        {"timeout": 5, "tolerable_failures": 0},
        [("1 stop", ["prepare 1 stop"]), ("1 prepared 1", ["ask 1 ab"]), ("6 tick", ["aborted 1 checkpoint_expired"])],
    ),
    "one that is declined always does": (
        {"tolerable_failures": None},
        [
            ("1 stop", ["prepare 1 stop"]),
            ("1 prepared 1", ["ask 1 ab"]),
            ("2 decline 1 a checkpoint_declined_task_closing",
             ["aborted 1 checkpoint_declined_task_closing", "fail run 1 checkpoint_declined_task_closing"]),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "steps"), SCENARIOS.values(), ids=SCENARIOS.keys())
def test_scenario(changed, steps):
    machine = coordinator(**changed)
    only = changed.get("tasks", "ab")
    for text, wanted in [*(step for step in START if not step[0].startswith("0 task") or step[0][7] in only), *steps]:
        assert [said(command) for command in machine.handle(event(text))] == wanted, text
