from __future__ import annotations

import pytest

from stagehold.model.records import AttemptState
from stagehold.plan.waves.slow_partitions import (
    TimedAttempt,
    partitions_to_help,
    slow_attempts,
)
from stagehold.spec.settings.run_settings import Speculation

SETTINGS = Speculation()
STATES = dict(
    zip(
        "FRSXN", (AttemptState(word) for word in ("finished", "running", "scheduled", "failed", "created")), strict=True
    )
)


def attempts(text):
    """Several "partition[.attempt]:state seconds"."""
    parts = [part.strip().partition(":") for part in text.split(",")]
    return [TimedAttempt(int(float(name)), STATES[rest[0]], float(rest[1:])) for name, _, rest in parts]


TABLE = [
    ("nothing is finished", "0:R900, 1:R900", []),
    ("too few are finished", "0:F10, 1:F10, 2:R900, 3:R900", []),
    ("slower than one and a half medians and a minute", "0:F50, 1:F60, 2:F70, 3:R90", [3]),
    ("not slower than the baseline", "0:F50, 1:F60, 2:F70, 3:R89", []),
    ("at least a minute, however quick the others were", "0:F1, 1:F1, 2:F1, 3:R59", []),
    ("a minute is enough then", "0:F1, 1:F1, 2:F1, 3:R60", [3]),
    (
        "only the quickest three quarters count",
        "0:F10, 1:F20, 2:F30, 3:F40, 4:F42, 5:F9e3, 6:F9e3, 7:F9e3, 8:F9e3, 9:F9e3, 10:F9e3, 11:R63",
        [11],
    ),
    ("a failed attempt is not slow", "0:F1, 1:F1, 2:F1, 3:X99", []),
    ("one that was not started is not slow", "0:F1, 1:F1, 2:F1, 3:N99", []),
    ("one that waits for its slot is", "0:F1, 1:F1, 2:F1, 3:S99", [3]),
    ("a finished partition needs no second attempt", "0:F1, 1:F1, 2:F1, 3:F1, 3.1:R99", []),
]


@pytest.mark.parametrize(("text", "slow"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_slow_attempts(text, slow):
    stage = attempts(text)
    partitions = len({attempt.partition for attempt in stage})
    assert [attempt.partition for attempt in slow_attempts(stage, partitions, SETTINGS)] == slow


def test_a_slow_partition_is_helped_once_and_never_a_third_time():
    stage = attempts("0:F1, 1:F1, 2:F1, 3:R99, 4:R99, 4.1:R98, 5:F1, 6:F1, 7:F1")
    assert [attempt.partition for attempt in slow_attempts(stage, 8, SETTINGS)] == [3, 4, 4]
    assert list(partitions_to_help(stage, 8, SETTINGS)) == [3]
