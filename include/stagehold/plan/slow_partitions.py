"""Which running attempts are slow enough to be worth a second, speculative one.

Slow is measured against the partitions of the same stage that are finished, per byte read where that is known: a large
partition is not slow for being large. Whoever finishes first wins, the others are cancelled. A stage must declare that
two of its attempts may write at the same time; with a commit that is fenced they may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from stagehold.model.records import AttemptState


@dataclass(frozen=True)
class SpeculationSettings:
    """Flink's defaults; times are in seconds. Flink looks for slow attempts every second."""

    finished_share: float = 0.75
    multiplier: float = 1.5
    least_seconds: float = 60.0
    attempts_at_a_time: int = 2
    avoid_host_seconds: float = 60.0


@dataclass(frozen=True)
class TimedAttempt:
    """An attempt of one partition, and how long it has been running or ran; ``bytes`` None when the input's size is not known."""

    partition: int
    number: int
    state: AttemptState
    host: str
    seconds: float
    bytes: int | None = None


@dataclass(frozen=True)
class Speculation:
    """Start one more attempt of ``partition``, and nothing on the hosts in ``avoid`` for so many seconds."""

    partition: int
    slow: tuple[TimedAttempt, ...]
    avoid: frozenset[str]
    avoid_seconds: float


_UNDER_WAY = frozenset({AttemptState.SCHEDULED, AttemptState.DEPLOYING, AttemptState.INITIALIZING, AttemptState.RUNNING})


def slow_attempts(attempts: Sequence[TimedAttempt], partitions: int, settings: SpeculationSettings) -> tuple[TimedAttempt, ...]:
    """Attempts under way that have taken longer than the baseline; none until enough of the stage is finished.

    The baseline is ``multiplier`` times the median of the quickest ``finished_share``, and never under ``least_seconds``.
    """
    finished = [attempt for attempt in attempts if attempt.state is AttemptState.FINISHED]
    done = {attempt.partition for attempt in finished}
    if not done or len(done) < settings.finished_share * partitions:
        return ()
    weighted = all(attempt.bytes is not None for attempt in attempts)
    quickest = sorted(_pace(attempt, weighted=weighted) for attempt in finished)[: max(1, round(partitions * settings.finished_share))]
    baseline = settings.multiplier * quickest[len(quickest) // 2]
    return tuple(
        attempt
        for attempt in attempts
        if attempt.state in _UNDER_WAY
        and attempt.partition not in done
        and attempt.seconds >= settings.least_seconds
        and _pace(attempt, weighted=weighted) >= baseline
    )


def speculate(attempts: Sequence[TimedAttempt], slow: Collection[TimedAttempt], settings: SpeculationSettings) -> Iterator[Speculation]:
    """One more attempt for every slow partition that has room for one, away from the hosts that are slow now."""
    avoid = frozenset(attempt.host for attempt in slow)
    for partition in sorted({attempt.partition for attempt in slow}):
        under_way = sum(attempt.partition == partition and attempt.state in _UNDER_WAY for attempt in attempts)
        if under_way < settings.attempts_at_a_time:
            yield Speculation(
                partition, tuple(attempt for attempt in slow if attempt.partition == partition), avoid, settings.avoid_host_seconds
            )


def failure_is_harmless(failed: TimedAttempt, attempts: Sequence[TimedAttempt], *, data_missing: bool) -> bool:
    """A failed attempt costs nothing while another of its partition can still finish, unless it found data missing:
    the other will miss the same data."""
    others = (other for other in attempts if other.partition == failed.partition and other.number != failed.number)
    return not data_missing and any(other.state in _UNDER_WAY for other in others)


def _pace(attempt: TimedAttempt, *, weighted: bool) -> float:
    """Seconds, per byte when all sizes are known; attempts with and without a size cannot be compared."""
    return attempt.seconds / max(attempt.bytes or 0, 1) if weighted else attempt.seconds
