"""Scenarios: every line is what happens at a second, and what the coordinator then wants done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stagehold.errors import UnknownName
from stagehold.model.checkpoint import SnapshotKind
from stagehold.model.records import AttemptState, RunState
from stagehold.model.spec import CheckpointSettings
from stagehold.plan import checkpoint_events as events
from stagehold.plan.checkpoint_requests import CheckpointFailure
from stagehold.plan.checkpoint_settings import CoordinatorSettings
from stagehold.plan.checkpoint_store import CheckpointStore, CompletedCheckpoint, Retention
from stagehold.plan.checkpoint_tasks import Phase
from stagehold.plan.coordinator import Coordinator

KINDS = {"checkpoint": SnapshotKind.CHECKPOINT, "savepoint": SnapshotKind.SAVEPOINT, "stop": SnapshotKind.STOP_WITH_SAVEPOINT}
NUMBERED = {
    "prepared": events.Prepared,
    "unprepared": events.PreparationFailed,
    "written": events.Written,
    "unwritten": events.WritingFailed,
    "discarded": events.Discarded,
}


def event(text):
    at, word, *rest = text.split()
    now = int(at)
    if word in KINDS:
        return events.SnapshotRequested(now, KINDS[word])
    if word in NUMBERED:
        return NUMBERED[word](now, int(rest[0]))
    if word == "ack":
        return events.Acknowledged(now, int(rest[0]), rest[1])
    if word == "decline":
        reason = CheckpointFailure(rest[2]) if len(rest) > 2 else CheckpointFailure.CHECKPOINT_DECLINED
        return events.Declined(now, int(rest[0]), rest[1], reason)
    if word == "run":
        return events.RunChanged(now, RunState(rest[0]))
    if word == "task":
        return events.TaskChanged(now, rest[0], AttemptState(rest[1]))
    return {"tick": events.Tick, "failover": events.RegionFailover}[word](now)


WORDS = {kind: word for word, kind in KINDS.items()}


def said(command):
    match command:
        case events.Write() | events.Completed() | events.Discard():
            return f"{type(command).__name__.lower()} {command.checkpoint}"
        case events.Prepare(checkpoint, request):
            return f"prepare {checkpoint} {WORDS[request.kind]}"
        case events.AskTasks(checkpoint, tasks, full):
            return f"ask {checkpoint} {named(tasks)}{' full' * full}"
        case events.Announce(checkpoint, tasks, subsumed, stop):
            return f"announce {checkpoint} {named(tasks)}{f' over {subsumed}' if subsumed else ''}{' stop' * stop}"
        case events.Refused(request, reason):
            return f"refused {WORDS[request.kind]} {reason}"
        case events.Aborted(checkpoint, _, reason, _):
            return f"aborted {checkpoint} {reason}"
        case events.Ignored(checkpoint, task, problem):
            return f"ignored {checkpoint} {task} {problem}"
        case events.FailRun(checkpoint, reason):
            return f"fail run {checkpoint} {reason}"


def named(tasks):
    return "".join(sorted(tasks)) or "-"


def entries(*kinds):
    """A store's entries from "id kind", with ``!`` for an unclaimed one."""
    return tuple(CompletedCheckpoint(int(kind.split()[0]), KINDS[kind.split()[1].rstrip("!")], kind.endswith("!")) for kind in kinds)


def coordinator(tasks="ab", store=None, next_id=1, uniform=lambda low, high: high, **changed):
    chosen = CoordinatorSettings(**{"interval": 10, "tolerable_failures": 9, **changed})
    return Coordinator(chosen, {task.lower(): task.isupper() for task in tasks}, uniform=uniform, store=store, next_id=next_id)


START = [("0 task a running", []), ("0 task b running", []), ("0 run running", [])]
WHOLE_SAVEPOINT = [
    ("1 savepoint", ["prepare 1 savepoint"]),
    ("1 prepared 1", ["ask 1 ab"]),
    ("2 ack 1 a", []),
    ("2 ack 1 b", ["write 1"]),
    ("3 written 1", ["completed 1"]),
]

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
        [("14 tick", ["prepare 1 checkpoint"]), ("14 prepared 1", ["ask 1 ab"]), ("19 tick", []), ("20 tick", ["prepare 2 checkpoint"])],
    ),
    "ticks that were missed are made up for, one by one": (
        {"max_concurrent": 9},
        [
            ("25 tick", ["prepare 1 checkpoint"]),
            ("25 prepared 1", ["ask 1 ab"]),
            ("25 tick", ["prepare 2 checkpoint"]),
            ("25 prepared 2", ["ask 2 ab"]),
            ("25 tick", []),
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
        [("10 tick", ["prepare 1 checkpoint"]), ("10 savepoint", []), ("11 prepared 1", ["ask 1 ab", "prepare 2 savepoint"])],
    ),
    "a savepoint waits for no slot": (
        {},
        [("10 tick", ["prepare 1 checkpoint"]), ("10 prepared 1", ["ask 1 ab"]), ("11 savepoint", ["prepare 2 savepoint"])],
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
        [*WHOLE_SAVEPOINT, ("10 tick", ["refused checkpoint minimum_time_between_checkpoints"]), ("13 tick", ["prepare 2 checkpoint"])],
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
        {"tasks": "a", "store": CheckpointStore(1, entries("1 checkpoint", "2 checkpoint", "3 checkpoint")), "next_id": 4},
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
    "after a restore without a claim checkpoints are full until one is complete": (
        {"tasks": "a", "store": CheckpointStore(1, entries("7 savepoint!")), "next_id": 8},
        [
            ("1 savepoint", ["prepare 8 savepoint"]),
            ("1 prepared 8", ["ask 8 a"]),
            ("10 tick", []),
            ("11 ack 8 a", ["write 8"]),
            ("11 written 8", ["completed 8", "prepare 9 checkpoint"]),
            ("11 prepared 9", ["ask 9 a full"]),
            ("12 ack 9 a", ["write 9"]),
            ("12 written 9", ["completed 9", "announce 9 a"]),
            ("20 tick", ["prepare 10 checkpoint"]),
            ("20 prepared 10", ["ask 10 a"]),
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
            ("3 run restarting", ["aborted 1 checkpoint_coordinator_suspend", "refused checkpoint checkpoint_coordinator_suspend"]),
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
    assert (first.request.at, first.request.periodic, first.reason) == (2, True, CheckpointFailure.TOO_MANY_CHECKPOINT_REQUESTS)
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


def test_settings_come_from_the_pipeline():
    spec = CheckpointSettings(tolerable_failures=2, min_pause=timedelta(seconds=0.3))
    assert CoordinatorSettings.of(spec, 30) == CoordinatorSettings(interval=30, min_pause=300, timeout=600_000, tolerable_failures=2)


def test_a_task_that_the_run_does_not_have_is_refused_by_name():
    with pytest.raises(UnknownName, match="no task 'z'"):
        coordinator().handle(event("0 task z running"))


def test_what_is_no_event_is_a_mistake_of_the_caller():
    with pytest.raises(NotImplementedError):
        coordinator().handle("now")


TASKS = ("a", "b", "c")
IDS = st.integers(1, 12)


class Machine(RuleBasedStateMachine):
    """Anything may happen at any time; what the rules promise holds all the same."""

    @initialize(concurrent=st.integers(1, 3), pause=st.sampled_from([0, 3, 12]), tolerable=st.sampled_from([0, 2, None]))
    def start(self, concurrent, pause, tolerable):
        self.now = 0
        self.machine = coordinator(tasks=TASKS, max_concurrent=concurrent, min_pause=pause, tolerable_failures=tolerable, timeout=25)
        self.concurrent = concurrent
        self.prepared_ids, self.completed, self.aborted = [], [], {}
        self.answered = set()
        self.tell(events.RunChanged(0, RunState.RUNNING))

    def tell(self, told):
        unforced_before = self.unforced()
        for command in self.machine.handle(told):
            match command:
                case events.Prepare(checkpoint, request):
                    assert request.forced or unforced_before <= self.concurrent
                    self.prepared_ids.append(checkpoint)
                case events.Completed(checkpoint, request):
                    assert checkpoint not in self.aborted
                    self.completed.append((checkpoint, request.kind))
                    self.answer(request)
                case events.Aborted(checkpoint, request, reason, _):
                    assert reason is not CheckpointFailure.CHECKPOINT_SUBSUMED or request.kind is SnapshotKind.CHECKPOINT
                    self.aborted[checkpoint] = reason
                    self.answer(request)
                case events.Refused(request, _):
                    self.answer(request)

    def answer(self, request):
        assert request.number not in self.answered
        self.answered.add(request.number)

    def unforced(self):
        return sum(not pending.request.forced for pending in self.machine.pending.values())

    @rule(seconds=st.sampled_from([0, 1, 5, 30]))
    def time_passes(self, seconds):
        self.now += seconds
        self.tell(events.Tick(self.now))

    @rule(kind=st.sampled_from(SnapshotKind))
    def user_asks(self, kind):
        self.tell(events.SnapshotRequested(self.now, kind))

    @rule(checkpoint=IDS, ready=st.booleans())
    def preparation_ends(self, checkpoint, ready):
        self.tell((events.Prepared if ready else events.PreparationFailed)(self.now, checkpoint))

    @rule(checkpoint=IDS, task=st.sampled_from((*TASKS, "z")))
    def task_acknowledges(self, checkpoint, task):
        self.tell(events.Acknowledged(self.now, checkpoint, task))

    @rule()
    def everything_goes_well(self):
        for checkpoint, pending in list(self.machine.pending.items()):
            self.tell(events.Prepared(self.now, checkpoint))
            for task in sorted(pending.waiting):
                self.tell(events.Acknowledged(self.now, checkpoint, task))
            self.tell(events.Written(self.now, checkpoint))

    @rule(checkpoint=IDS, task=st.sampled_from((*TASKS, "z")))
    def task_declines(self, checkpoint, task):
        self.tell(events.Declined(self.now, checkpoint, task))

    @rule(checkpoint=IDS, well=st.booleans())
    def writing_ends(self, checkpoint, well):
        self.tell((events.Written if well else events.WritingFailed)(self.now, checkpoint))

    @rule(checkpoint=IDS)
    def deleted(self, checkpoint):
        self.tell(events.Discarded(self.now, checkpoint))

    @rule(task=st.sampled_from(TASKS), state=st.sampled_from([AttemptState.CREATED, AttemptState.RUNNING, AttemptState.FINISHED]))
    def task_changes(self, task, state):
        self.tell(events.TaskChanged(self.now, task, state))

    @rule(state=st.sampled_from([RunState.RUNNING, RunState.RESTARTING]))
    def run_changes(self, state):
        self.tell(events.RunChanged(self.now, state))
        if state is not RunState.RUNNING:
            assert not self.machine.pending
            assert len(self.machine.queue) == 0
            assert self.machine.next_wake() is None

    @rule()
    @precondition(lambda self: self.machine.pending)
    def regions_restart(self):
        before = set(self.machine.pending)
        self.tell(events.RegionFailover(self.now))
        assert before <= set(self.aborted)

    @invariant()
    def never_more_than_allowed_at_a_time(self):
        assert self.unforced() <= self.concurrent
        assert len(self.machine.queue) <= 1000

    @invariant()
    def ids_are_drawn_in_order_and_checkpoints_complete_in_order(self):
        assert self.prepared_ids == list(range(1, len(self.prepared_ids) + 1))
        ids = [checkpoint for checkpoint, kind in self.completed if kind is SnapshotKind.CHECKPOINT]
        assert ids == sorted(ids)
        assert [entry.id for entry in self.machine.store.entries] == ids[-1:]

    @invariant()
    def everything_drawn_is_pending_or_ended_once(self):
        ended = [checkpoint for checkpoint, _ in self.completed] + list(self.aborted)
        assert sorted([*ended, *self.machine.pending]) == self.prepared_ids

    @invariant()
    def only_who_was_asked_is_waited_for(self):
        for pending in self.machine.pending.values():
            assert pending.waiting <= pending.tasks
            assert pending.phase is not Phase.WRITING or not pending.waiting


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestMachine = Machine.TestCase
