"""Whether a run restarts after a failure, and after how long.

A strategy is a value. Telling it of a failure gives the strategy that counts it; asking whether to restart, or for the
delay, counts nothing and may be done any number of times. The time is always given, never read.

    strategy           restarts                                                        delay
    none               never                                                           -
    fixed-delay        for the first ``attempts`` failures, counted for ever           constant
    failure-rate       unless more than ``failures`` came within ``interval``          constant
    exponential-delay  for ``attempts`` failures, which a quiet ``reset_after``        grows by ``multiplier``
                       forgets                                                         up to ``max``
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from stagehold.spec.settings.restart import RestartSettings, RestartStrategy

MILLISECOND = timedelta(milliseconds=1)

Counted = tuple["RestartDecider", bool]  # a strategy after a failure, and whether that begins a new attempt


class RestartDecider(Protocol):
    """A run's restarts so far, and what follows from them."""

    def after_failure(self, now: datetime) -> Counted:
        """Count a failure at ``now``. One that begins no new attempt belongs to the restart already planned."""

    def can_restart(self, now: datetime) -> bool:
        """Whether the failures counted so far allow a restart."""

    def delay(self, now: datetime) -> timedelta:
        """How long to wait from ``now``."""


@dataclass(frozen=True)
class NoRestart:
    """The strategy that never restarts."""

    def after_failure(self, now: datetime) -> Counted:  # noqa: ARG002
        return self, True

    def can_restart(self, now: datetime) -> bool:  # noqa: ARG002
        return False

    def delay(self, now: datetime) -> timedelta:  # noqa: ARG002
        return timedelta(0)


@dataclass(frozen=True, kw_only=True)
class FixedDelay:
    """Restarts ``attempts`` times in the whole life of a run; nothing is ever forgotten."""

    attempts: int
    wait: timedelta
    failures: int = 0

    def after_failure(self, now: datetime) -> Counted:  # noqa: ARG002
        return replace(self, failures=self.failures + 1), True

    def can_restart(self, now: datetime) -> bool:  # noqa: ARG002
        return self.failures <= self.attempts

    def delay(self, now: datetime) -> timedelta:  # noqa: ARG002
        return self.wait


@dataclass(frozen=True, kw_only=True)
class FailureRate:
    """Restarts unless the last ``failures`` + 1 failures all came within ``interval``."""

    failures: int
    interval: timedelta
    wait: timedelta
    last: tuple[datetime, ...] = ()

    def after_failure(self, now: datetime) -> Counted:
        return replace(self, last=(*self.last, now)[-(self.failures + 1) :]), True

    def can_restart(self, now: datetime) -> bool:
        return len(self.last) <= self.failures or now - self.last[0] > self.interval

    def delay(self, now: datetime) -> timedelta:  # noqa: ARG002
        return self.wait


@dataclass(frozen=True, kw_only=True)
class ExponentialDelay:
    """Waits longer after every failure; failures before the planned restart are one with the failure that planned it.

    :param random: the source of chance; it advances with every new attempt, and with nothing else.
    :param jitter: share of a delay by which it is shortened or lengthened at random.
    :param attempts: restarts before it gives up, None for no limit; a quiet ``reset_after`` starts the count again.
    """

    random: Random = field(compare=False)
    initial: timedelta
    max: timedelta
    multiplier: float
    jitter: float
    reset_after: timedelta
    attempts: int | None
    attempt: int = 0
    planned: datetime | None = None

    def after_failure(self, now: datetime) -> Counted:
        if self.planned is not None and now <= self.planned:
            return self, False
        quiet = self.planned is not None and now - self.planned >= self.reset_after
        attempt = 0 if quiet else self.attempt
        return replace(self, attempt=attempt + 1, planned=now + self._backoff(attempt)), True

    def can_restart(self, now: datetime) -> bool:  # noqa: ARG002
        return self.attempts is None or self.attempt <= self.attempts

    def delay(self, now: datetime) -> timedelta:
        """What is left until the planned restart; nothing before the first failure."""
        return timedelta(0) if self.planned is None else max(timedelta(0), self.planned - now)

    def _backoff(self, attempt: int) -> timedelta:
        """The jitter is drawn before the bounds are applied, so that a delay is never outside of them."""
        try:
            grown = int(self.initial / MILLISECOND * self.multiplier**attempt)
        except OverflowError:
            return self.max
        spread = int(grown * self.jitter)
        drawn = grown + self.random.randint(-spread, spread)
        return max(self.initial, min(self.max, _milliseconds(drawn, at_most=self.max)))


def restart_strategy(settings: RestartSettings, *, random: Random) -> RestartDecider:
    """The strategy at the beginning of a life of a run."""
    given = settings.parameters
    match settings.strategy:
        case RestartStrategy.NONE:
            return NoRestart()
        case RestartStrategy.FIXED_DELAY:
            return FixedDelay(attempts=given["attempts"], wait=given["delay"])
        case RestartStrategy.FAILURE_RATE:
            return FailureRate(failures=given["failures"], interval=given["interval"], wait=given["delay"])
        case RestartStrategy.EXPONENTIAL_DELAY:
            return ExponentialDelay(random=random, **given)


def _milliseconds(count: int, *, at_most: timedelta) -> timedelta:
    """``count`` ms; a count too large for a timedelta is only ever compared with ``at_most``."""
    return min(count, at_most // MILLISECOND) * MILLISECOND
