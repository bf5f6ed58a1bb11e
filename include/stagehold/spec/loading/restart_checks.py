"""What is wrong with a restart strategy, and which one a pipeline has that declares none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import yaml
from pydantic import ValidationError

from stagehold.errors import InvalidSetting
from stagehold.model.units import write_duration
from stagehold.spec.form import show, suggest
from stagehold.spec.settings.restart import RestartSettings, RestartStrategy
from stagehold.spec.settings.run_settings import CheckpointSettings
from stagehold.spec.yaml import Problem

VARIABLE = "STAGEHOLD_RESTART"
AS_FLINK = "as-flink"
_ALLOWED = (
    f"{', '.join(RestartStrategy)}; one with its parameters, as a pipeline's `restart` has them, such as "
    f"{{strategy: fixed-delay, attempts: 3, delay: 10s}}; or {AS_FLINK}"
)


def restart_problems(restart: RestartSettings) -> Iterator[Problem]:
    """What is wrong with the parameters of a strategy."""
    parameters = restart.parameters
    for name in sorted(restart.model_fields_set - {"strategy", *parameters}):
        yield Problem(("restart", name), show(name), f"with {restart.strategy}: {suggest(name, tuple(parameters))}")
    if restart.strategy is RestartStrategy.EXPONENTIAL_DELAY:
        yield from _problems_of_growth(restart)


def _problems_of_growth(restart: RestartSettings) -> Iterator[Problem]:
    if restart.attempts == 0:
        yield Problem(("restart", "attempts"), "0", "1 or more; `strategy: none` does not restart")
    initial, most = restart.parameters["initial"], restart.parameters["max"]
    if initial <= most:
        return
    if restart.initial is not None:
        yield Problem(("restart", "initial"), write_duration(initial), f"at most max, {write_duration(most)}")
    else:
        yield Problem(("restart", "max"), write_duration(most), f"at least initial, {write_duration(initial)}")


def usual_restart(told: str, checkpoint: CheckpointSettings) -> RestartSettings:
    """The strategy of a pipeline that declares none.

    :param told: the setting; empty for the default.
    :raises InvalidSetting: it names no strategy, or gives one what it does not take.
    """
    if told == AS_FLINK:
        taken = checkpoint.interval is not None
        return RestartSettings(strategy=RestartStrategy.EXPONENTIAL_DELAY if taken else RestartStrategy.NONE)
    return _restart_of(told) if told else RestartSettings()


@lru_cache
def _restart_of(told: str) -> RestartSettings:
    try:
        given = yaml.safe_load(told)
        restart = RestartSettings.model_validate({"strategy": given} if isinstance(given, str) else given)
    except yaml.YAMLError as error:
        raise InvalidSetting(VARIABLE, told, _ALLOWED) from error
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise InvalidSetting(VARIABLE, told, f"{_ALLOWED} (look at {field or 'its form'})") from error
    for problem in restart_problems(restart):
        raise InvalidSetting(VARIABLE, told, f"as {problem.path[-1]}, {problem.allowed}")
    return restart
