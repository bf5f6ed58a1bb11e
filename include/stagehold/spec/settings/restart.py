"""What happens after a failure: restart strategies, and the author's own classes of failures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field

from stagehold.model.records import FailureClass
from stagehold.model.units import Duration, PositiveDuration
from stagehold.spec.settings.fields import Count, SpecPart


class RestartStrategy(StrEnum):
    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


PARAMETERS: Mapping[RestartStrategy, Mapping[str, Any]] = {
    RestartStrategy.NONE: {},
    RestartStrategy.FIXED_DELAY: {"attempts": 1, "delay": timedelta(seconds=1)},
    RestartStrategy.FAILURE_RATE: {"failures": 1, "interval": timedelta(minutes=1), "delay": timedelta(seconds=1)},
    RestartStrategy.EXPONENTIAL_DELAY: {
        "initial": timedelta(seconds=1),
        "max": timedelta(minutes=1),
        "multiplier": 1.5,
        "jitter": 0.1,
        "reset_after": timedelta(hours=1),
        "attempts": None,  # no limit
    },
}


class RestartSettings(SpecPart):
    """The strategy and those of its parameters that were given; the loader refuses parameters of other strategies."""

    strategy: RestartStrategy = RestartStrategy.EXPONENTIAL_DELAY
    """`none`; `fixed-delay` with `attempts` and `delay`; `failure-rate` with `failures`, `interval` and `delay`;
    `exponential-delay` with `initial`, `max`, `multiplier`, `jitter`, `reset_after` and `attempts`.
    Example: `strategy: none`"""

    attempts: int | None = Field(default=None, ge=0, strict=True)
    """How many restarts there may be. Without it: 1 with `fixed-delay`, no limit of its own with `exponential-delay`.
    Example: `strategy: fixed-delay, attempts: 3`"""

    delay: Duration | None = None
    """How long to wait before each restart. Without it: 1s.
    Example: `strategy: fixed-delay, attempts: 3, delay: 10s`"""

    failures: Count | None = None
    """More failures than this within `interval` end the run. Without it: 1.
    Example: `strategy: failure-rate, failures: 3, interval: 1h`"""

    interval: PositiveDuration | None = None
    """The time in which failures are counted. Without it: 1min.
    Example: `strategy: failure-rate, failures: 3, interval: 1h`"""

    initial: PositiveDuration | None = None
    """The first delay. Without it: 1s. Example: `initial: 5s`"""

    max: PositiveDuration | None = None
    """The longest delay. Without it: 1min. Example: `max: 10min`"""

    multiplier: float | None = Field(default=None, gt=1, strict=True)
    """By how much each delay is longer than the last. Without it: 1.5. Example: `multiplier: 2.0`"""

    jitter: float | None = Field(default=None, ge=0, le=1, strict=True)
    """The share by which a delay is shortened or lengthened at random. Without it: 0.1. Example: `jitter: 0.2`"""

    reset_after: PositiveDuration | None = None
    """A run that was well for so long begins again with the first delay and counts from nothing. Without it: 1h.
    Example: `reset_after: 30min`"""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All that the strategy has, with its defaults where nothing was given."""
        given = self.model_dump(exclude_none=True)
        return {name: given.get(name, default) for name, default in PARAMETERS[self.strategy].items()}


class FailureDeclaration(SpecPart):
    """The author's rule for errors of his own: a class named as ``module:Class``, a pattern in the text, or both.

    The pattern is searched without regard to case.
    """

    error: str | None = None
    """Class of the error, as `module:Class`; its subclasses count, and so does what a Python worker of Spark raised.
    Example: `error: "builtins:KeyError", class: recoverable`"""

    text: str | None = None
    """A pattern that is searched for in the text of the error, in either case. With `error`, both have to fit.
    Example: `text: "quota exceeded", class: environment`"""

    kind: FailureClass
    """What such a failure means: `non_recoverable` ends the run at once, `recoverable` and `environment` restart it.
    Needed.
    Example: `error: "builtins:KeyError", class: non_recoverable`"""
