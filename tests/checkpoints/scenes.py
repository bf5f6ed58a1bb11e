"""A language for the coordinator's tests: what it is told, and what it answers, in a few words each."""

from __future__ import annotations

from stagehold.checkpoints import coordinator_events as events
from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.coordinator import Coordinator
from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.checkpoints.store import CompletedCheckpoint
from stagehold.model.checkpoint_records import CheckpointFailure
from stagehold.model.records import AttemptState, RunState

KINDS = {
    "checkpoint": SnapshotKind.CHECKPOINT,
    "savepoint": SnapshotKind.SAVEPOINT,
    "stop": SnapshotKind.STOP_WITH_SAVEPOINT,
}
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
        case events.AskTasks(checkpoint, tasks):
            return f"ask {checkpoint} {named(tasks)}"
        case events.Announce(checkpoint, tasks, subsumed, stop):
            return f"announce {checkpoint} {named(tasks)}{f' over {subsumed}' if subsumed else ''}{' stop' * stop}"
        case events.Refused(request, reason):
            return f"refused {WORDS[request.kind]} {reason}"
        case events.SparedRequest(request):
            return f"spared {WORDS[request.kind]}"
        case events.Aborted(checkpoint, _, reason, _):
            return f"aborted {checkpoint} {reason}"
        case events.Ignored(checkpoint, task, problem):
            return f"ignored {checkpoint} {task} {problem}"
        case events.FailRun(checkpoint, reason):
            return f"fail run {checkpoint} {reason}"


def named(tasks):
    return "".join(sorted(tasks)) or "-"


def entries(*kinds):
    """A store's entries from "id kind"."""
    return tuple(CompletedCheckpoint(int(kind.split()[0]), KINDS[kind.split()[1]]) for kind in kinds)


def coordinator(
    tasks="ab", store=None, next_id=1, uniform=lambda low, high: high, anything_new=lambda: True, **changed
):
    return Coordinator(
        CoordinatorSettings(**{"interval": 10, "tolerable_failures": 9, **changed}),
        {task.lower(): task.isupper() for task in tasks},
        uniform=uniform,
        store=store,
        next_id=next_id,
        anything_new=anything_new,
    )


START = [("0 task a running", []), ("0 task b running", []), ("0 run running", [])]
WHOLE_SAVEPOINT = [
    ("1 savepoint", ["prepare 1 savepoint"]),
    ("1 prepared 1", ["ask 1 ab"]),
    ("2 ack 1 a", []),
    ("2 ack 1 b", ["write 1"]),
    ("3 written 1", ["completed 1"]),
]
