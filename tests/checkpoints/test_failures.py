from __future__ import annotations

import pytest

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.failures import COUNTED, FailureCounter
from stagehold.model.checkpoint_records import CheckpointFailure

CHECKPOINT, SAVEPOINT, STOP = SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT, SnapshotKind.STOP_WITH_SAVEPOINT
DECLINED, EXPIRED = CheckpointFailure.CHECKPOINT_DECLINED, CheckpointFailure.CHECKPOINT_EXPIRED
UNPREPARED = CheckpointFailure.IO_EXCEPTION
NOT_READY, TOO_EARLY = (
    CheckpointFailure.CHECKPOINT_DECLINED_TASK_NOT_READY,
    CheckpointFailure.MINIMUM_TIME_BETWEEN_CHECKPOINTS,
)


def failed(kind=CHECKPOINT, reason=DECLINED, checkpoint=1, task=None):
    return kind, reason, checkpoint, task


@pytest.mark.parametrize("reason", CheckpointFailure)
def test_only_five_reasons_count(reason):
    assert FailureCounter(0).failed(*failed(reason=reason)) is (reason in COUNTED)


def test_these_are_the_five():
    assert sorted(COUNTED) == [
        "checkpoint_async_exception", "checkpoint_declined", "checkpoint_expired", "finalize_checkpoint_failure",
        "io_exception",
    ]  # fmt: skip


WHOSE = [
    # kind, named task, reason, fails the run
    (CHECKPOINT, None, EXPIRED, True),
    (CHECKPOINT, "a", DECLINED, True),
    (SAVEPOINT, None, EXPIRED, False),
    (SAVEPOINT, "a", DECLINED, True),
    (SAVEPOINT, "a", NOT_READY, False),
    (SAVEPOINT, "a", UNPREPARED, False),
    (CHECKPOINT, "a", UNPREPARED, True),
    (SAVEPOINT, "a", TOO_EARLY, False),
    (STOP, None, EXPIRED, False),
    (STOP, "a", DECLINED, True),
    (STOP, "a", NOT_READY, True),
    (STOP, "a", TOO_EARLY, False),
]


@pytest.mark.parametrize(("kind", "task", "reason", "fails"), WHOSE)
def test_whose_failure_it_is(kind, task, reason, fails):
    assert FailureCounter(0).failed(*failed(kind, reason, task=task)) is fails


SEQUENCES = [
    ("more in a row than are tolerated", 2, "1 2 3", "no no fail"),
    ("none is tolerated", 0, "1", "fail"),
    ("any number is tolerated", None, "1 2 3", "no no no"),
    ("a success clears the count", 1, "1 +2 3 4", "no - no fail"),
    ("each checkpoint counts once", 1, "1 1 1 2", "no no no fail"),
    ("those without an id count each time", 1, "? ?", "no fail"),
    ("one that is not newer than the last success is ignored", 0, "+5 5 4 6", "- no no fail"),
    ("an older success changes nothing", 1, "+5 6 +4 7", "- no - fail"),
    ("failing the run starts the count again", 1, "1 2 3 4", "no fail no fail"),
]


@pytest.mark.parametrize(
    ("tolerable", "ends", "verdicts"), [row[1:] for row in SEQUENCES], ids=[row[0] for row in SEQUENCES]
)
def test_failures_in_a_row(tolerable, ends, verdicts):
    counter = FailureCounter(tolerable)
    said = []
    for end in ends.split():
        if end.startswith("+"):
            counter.succeeded(int(end))
            said.append("-")
        else:
            said.append("fail" if counter.failed(*failed(checkpoint=None if end == "?" else int(end))) else "no")
    assert said == verdicts.split()
