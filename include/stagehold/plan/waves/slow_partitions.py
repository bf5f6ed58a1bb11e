"""Which running attempts are slow enough to be worth a second, speculative one.

Slow is measured against the finished partitions of the same stage. The attempt that finishes first wins. Two attempts
of a stage may write at the same time, since a commit is fenced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagehold.model.records import AttemptState
from stagehold.spec.settings.run_settings import Speculation


@dataclass(frozen=True)
class TimedAttempt:
    """An attempt of one partition, and how long it has been running or ran."""

    partition: int
    state: AttemptState
    seconds: float


_UNDER_WAY = frozenset(
    {AttemptState.SCHEDULED, AttemptState.DEPLOYING, AttemptState.INITIALIZING, AttemptState.RUNNING}
)


def slow_attempts(attempts: Sequence[TimedAttempt], partitions: int, settings: Speculation) -> tuple[TimedAttempt, ...]:
    """Attempts under way that have taken longer than the baseline; none until enough of the stage is finished.

    The baseline is ``multiplier`` times the median of the quickest ``finished_share``, and never under
    ``least_seconds``.
    """
    finished = [attempt for attempt in attempts if attempt.state is AttemptState.FINISHED]
    done = {attempt.partition for attempt in finished}
    if not done or len(done) < settings.finished_share * partitions:
        return ()
    quickest = sorted(attempt.seconds for attempt in finished)[: max(1, round(partitions * settings.finished_share))]
    baseline = max(settings.multiplier * quickest[len(quickest) // 2], settings.least_seconds)
    return tuple(
        attempt
        for attempt in attempts
        if attempt.state in _UNDER_WAY and attempt.partition not in done and attempt.seconds >= baseline
    )


def partitions_to_help(attempts: Sequence[TimedAttempt], partitions: int, settings: Speculation) -> Iterator[int]:
    """Slow partitions that have room for one more attempt."""
    for partition in sorted({attempt.partition for attempt in slow_attempts(attempts, partitions, settings)}):
        under_way = sum(attempt.partition == partition and attempt.state in _UNDER_WAY for attempt in attempts)
        if under_way < settings.attempts_at_a_time:
            yield partition
