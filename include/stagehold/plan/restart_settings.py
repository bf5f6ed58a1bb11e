"""From settings to a restart strategy: names, parameters with their defaults, and whose setting counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from random import Random

from stagehold.errors import InvalidSetting
from stagehold.model.spec import RestartSettings, RestartStrategy
from stagehold.model.spec_checks import PARAMETERS
from stagehold.plan.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart, RestartDecider

OTHER_NAMES = {"off": RestartStrategy.NONE, "disable": RestartStrategy.NONE}


_STEADY: Mapping[RestartStrategy, Callable[..., RestartDecider]] = {
    RestartStrategy.NONE: NoRestart,
    RestartStrategy.FIXED_DELAY: FixedDelay,
    RestartStrategy.FAILURE_RATE: FailureRate,
}


def strategy_named(text: str) -> RestartStrategy:
    """A strategy by its name, in either case; ``off`` and ``disable`` mean none."""
    name = text.strip().lower()
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    if name not in set(RestartStrategy):
        raise InvalidSetting("restart.strategy", text, ", ".join([*RestartStrategy, *OTHER_NAMES]))
    return RestartStrategy(name)


def chosen_settings(
    *, pipeline: RestartSettings | None, deployment: RestartSettings | None, checkpoints_periodically: bool
) -> RestartSettings:
    """The pipeline's setting wins over the deployment's; None is one that was not given.

    With neither, a run that checkpoints periodically restarts with exponential delay, and any other run does not restart.
    """
    unset = RestartStrategy.EXPONENTIAL_DELAY if checkpoints_periodically else RestartStrategy.NONE
    return pipeline or deployment or RestartSettings(strategy=unset)


def restart_strategy(settings: RestartSettings, *, random: Random) -> RestartDecider:
    """The strategy at the beginning of a run; InvalidSetting names the first parameter it cannot have."""
    for name, value, allowed in _problems(settings):
        raise InvalidSetting(f"restart.{name}", value, allowed)
    given = settings.model_dump(exclude_none=True, exclude={"strategy"})
    if "delay" in given:
        given["wait"] = given.pop("delay")
    if settings.strategy is RestartStrategy.EXPONENTIAL_DELAY:
        return ExponentialDelay(random=random, **given)
    return _STEADY[settings.strategy](**given)


def _problems(settings: RestartSettings) -> Iterator[tuple[str, str, str]]:
    given = settings.model_dump(exclude_none=True, exclude={"strategy"})
    allowed = PARAMETERS[settings.strategy]
    for name in given:
        if name not in allowed:
            yield name, str(given[name]), f"with {settings.strategy}: {', '.join(allowed) or 'no parameter'}"
    if given.get("delay", timedelta(0)) < timedelta(0):
        yield "delay", str(given["delay"]), "not less than 0"
    if settings.strategy is RestartStrategy.EXPONENTIAL_DELAY and given.get("attempts", 1) < 1:
        yield "attempts", str(given["attempts"]), "1 or more; none does not restart"
    initial, maximum = given.get("initial", ExponentialDelay.initial), given.get("max", ExponentialDelay.max)
    if initial > maximum:
        yield "initial", str(initial), f"at most max, {maximum}"
