from __future__ import annotations

import pytest

from stagehold.model.records import AttemptState
from stagehold.plan.slow_partitions import SpeculationSettings, TimedAttempt, failure_is_harmless, slow_attempts, speculate

SETTINGS = SpeculationSettings()
STATES = dict(zip("FRSXN", (AttemptState(word) for word in ("finished", "running", "scheduled", "failed", "created")), strict=True))


def attempts(text):
    """ "partition[.attempt]:state seconds[/bytes]", one per comma; the host is that of the partition and attempt."""
    parsed = []
    for part in text.split(","):
        name, _, rest = part.strip().partition(":")
        partition, _, number = name.partition(".")
        seconds, _, size = rest[1:].partition("/")
        state = STATES[rest[0]]
        parsed.append(TimedAttempt(int(partition), int(number or 0), state, f"host{name}", float(seconds), int(size) if size else None))
    return parsed


TABLE = [
    ("nothing is finished", "0:R900, 1:R900", []),
    ("too few are finished", "0:F10, 1:F10, 2:R900, 3:R900", []),
    ("slower than one and a half medians and a minute", "0:F50, 1:F60, 2:F70, 3:R90", [3]),
    ("not slower than the baseline", "0:F50, 1:F60, 2:F70, 3:R89", []),
    ("at least a minute, however quick the others were", "0:F1, 1:F1, 2:F1, 3:R59", []),
    ("a minute is enough then", "0:F1, 1:F1, 2:F1, 3:R60", [3]),
    ("a large partition is not slow for being large", "0:F50/10, 1:F60/10, 2:F70/10, 3:R90/100", []),
    ("slow per byte", "0:F50/10, 1:F60/10, 2:F70/10, 3:R90/10", [3]),
    ("an unknown size compares by time alone", "0:F50/10, 1:F60/10, 2:F70/10, 3:R90", [3]),
    ("an empty partition is slow at the baseline", "0:F50/0, 1:F60/0, 2:F70/0, 3:R90/0", [3]),
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


def test_one_more_attempt_runs_elsewhere_and_never_a_third():
    stage = attempts("0:F1, 1:F1, 2:F1, 3:R99, 4:R99, 4.1:R98, 5:F1, 6:F1, 7:F1")
    slow = slow_attempts(stage, 8, SETTINGS)
    assert [attempt.host for attempt in slow] == ["host3", "host4", "host4.1"]
    (only,) = speculate(stage, slow, SETTINGS)
    assert (only.partition, only.slow, only.avoid) == (3, (stage[3],), frozenset({"host3", "host4", "host4.1"}))
    assert only.avoid_seconds == 60


HARMLESS = [
    ("another attempt can still finish", "0:X5, 0.1:R5", False, True),
    ("it was the only one", "0:X5, 1:R5", False, False),
    ("the other failed as well", "0:X5, 0.1:X5", False, False),
    ("missing data will be missing for the other too", "0:X5, 0.1:R5", True, False),
]


@pytest.mark.parametrize(("text", "data_missing", "harmless"), [row[1:] for row in HARMLESS], ids=[row[0] for row in HARMLESS])
def test_failure_of_a_speculative_attempt(text, data_missing, harmless):
    stage = attempts(text)
    assert failure_is_harmless(stage[0], stage, data_missing=data_missing) is harmless
