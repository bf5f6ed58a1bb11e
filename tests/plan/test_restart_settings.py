from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from stagehold.errors import InvalidSetting
from stagehold.model.spec import RestartSettings, RestartStrategy
from stagehold.plan.restart_settings import chosen_settings, restart_strategy, strategy_named
from stagehold.plan.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [(name.value, name) for name in RestartStrategy] + [("off", RestartStrategy.NONE), (" Disable ", RestartStrategy.NONE)],
)
def test_strategies_have_names(text, strategy):
    assert strategy_named(text) is strategy


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InvalidSetting, match="none, fixed-delay, failure-rate, exponential-delay, off, disable"):
        strategy_named("always")


PIPELINE, DEPLOYMENT = RestartSettings(strategy="none"), RestartSettings(strategy="fixed-delay")


@pytest.mark.parametrize(
    ("pipeline", "deployment", "checkpoints", "chosen"),
    [
        (PIPELINE, DEPLOYMENT, True, PIPELINE),
        (PIPELINE, None, True, PIPELINE),
        (None, DEPLOYMENT, True, DEPLOYMENT),
        (None, None, True, RestartSettings(strategy="exponential-delay")),
        (None, None, False, RestartSettings(strategy="none")),
    ],
)
def test_the_pipelines_setting_wins_and_a_plain_batch_run_does_not_restart(pipeline, deployment, checkpoints, chosen):
    assert chosen_settings(pipeline=pipeline, deployment=deployment, checkpoints_periodically=checkpoints) == chosen


MADE = [
    ({"strategy": "none"}, NoRestart()),
    ({"strategy": "fixed-delay"}, FixedDelay()),
    ({"strategy": "fixed-delay", "attempts": 4, "delay": SECOND * 2}, FixedDelay(attempts=4, wait=SECOND * 2)),
    ({"strategy": "failure-rate"}, FailureRate()),
    (
        {"strategy": "failure-rate", "failures": 3, "interval": SECOND * 9, "delay": SECOND},
        FailureRate(failures=3, interval=SECOND * 9, wait=SECOND),
    ),
    ({"strategy": "exponential-delay"}, ExponentialDelay(random=Random(0))),
    (
        {"initial": SECOND, "max": SECOND * 5, "multiplier": 3, "jitter": 0, "reset_after": SECOND * 9, "attempts": 7},
        ExponentialDelay(random=Random(0), initial=SECOND, max=SECOND * 5, multiplier=3, jitter=0, reset_after=SECOND * 9, attempts=7),
    ),
]


@pytest.mark.parametrize(("settings", "strategy"), MADE)
def test_parameters_reach_the_strategy_and_the_others_keep_their_defaults(settings, strategy):
    assert restart_strategy(RestartSettings(**settings), random=Random(0)) == strategy


def test_the_given_chance_is_used():
    chance = Random(7)
    assert restart_strategy(RestartSettings(), random=chance).random is chance


REFUSED = [
    ({"strategy": "none", "attempts": 3}, "restart.attempts", "with none: no parameter"),
    ({"strategy": "fixed-delay", "jitter": 0.5}, "restart.jitter", "with fixed-delay: attempts, delay"),
    ({"strategy": "fixed-delay", "delay": -SECOND}, "restart.delay", "not less than 0"),
    ({"initial": SECOND * 61}, "restart.initial", "at most max, 0:01:00"),
    ({"initial": SECOND * 2, "max": SECOND}, "restart.initial", "at most max, 0:00:01"),
]


@pytest.mark.parametrize(("settings", "name", "allowed"), REFUSED)
def test_impossible_parameters_are_refused_by_name(settings, name, allowed):
    with pytest.raises(InvalidSetting) as refused:
        restart_strategy(RestartSettings(**settings), random=Random(0))
    assert (refused.value.name, refused.value.allowed) == (name, allowed)
