"""The restart strategy of pipelines that declare none, and what may stand in STAGEHOLD_RESTART."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.spec.samples import VALID, Project

from stagehold.errors import InvalidSetting
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline, load_each_pipeline
from stagehold.spec.settings.restart import RestartSettings, RestartStrategy

PLAIN = re.sub(r"^restart:\n(?: .*\n)+", "", VALID, flags=re.MULTILINE)
CHECKPOINTS = "checkpoint: {interval: 30s}"
DECLARED = "restart: {strategy: failure-rate, failures: 2}"
FIXED = RestartSettings(strategy=RestartStrategy.FIXED_DELAY, attempts=3, delay=timedelta(seconds=10))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    project = Project(tmp_path)
    (tmp_path / "pipelines").mkdir()
    return Settings(pipelines=str(tmp_path / "pipelines"), project=str(project.root), suites=str(project.suites))


def restart(settings: Settings, told: str, *lines: str) -> RestartSettings:
    (Path(settings.pipelines) / "revenue.yaml").write_text("\n".join((PLAIN, *lines, "")))
    return find_pipeline("revenue", replace(settings, restart=told)).restart


@pytest.mark.parametrize(
    ("told", "lines", "strategy"),
    [
        ("", (), RestartStrategy.EXPONENTIAL_DELAY),
        ("none", (), RestartStrategy.NONE),
        ("as-flink", (), RestartStrategy.NONE),
        ("as-flink", (CHECKPOINTS,), RestartStrategy.EXPONENTIAL_DELAY),
        ("none", (CHECKPOINTS,), RestartStrategy.NONE),
        ("none", (DECLARED,), RestartStrategy.FAILURE_RATE),
        ("as-flink", (DECLARED,), RestartStrategy.FAILURE_RATE),
    ],
)
def test_the_pipelines_own_strategy_counts_then_the_setting_then_the_default(settings, told, lines, strategy):
    assert restart(settings, told, *lines).strategy is strategy


def test_a_strategy_may_have_parameters_and_a_pipeline_takes_none_of_them_over(settings):
    assert restart(settings, "{strategy: fixed-delay, attempts: 3, delay: 10s}") == FIXED
    own = restart(settings, "{strategy: fixed-delay, attempts: 3, delay: 10s}", "restart: {strategy: fixed-delay}")
    assert own.parameters == {"attempts": 1, "delay": timedelta(seconds=1)}


def test_another_setting_is_heard_in_the_same_process(settings):
    assert restart(settings, "none").strategy is RestartStrategy.NONE
    again = find_pipeline("revenue", replace(settings, restart="fixed-delay"))
    assert again.restart.strategy is RestartStrategy.FIXED_DELAY


@pytest.mark.parametrize(
    ("told", "allowed"),
    [
        ("sometimes", "none, fixed-delay, failure-rate, exponential-delay; one with its parameters"),
        ("{strategy: fixed-delay, attempts: many}", "look at attempts"),
        ("{strategy: none, attempts: 3}", "as attempts, with none"),
        ("{strategy: exponential-delay, attempts: 0}", "as attempts, 1 or more"),
        ("{strategy: fixed-delay", "none, fixed-delay, failure-rate"),
        ("[none]", "look at its form"),
    ],
)
def test_what_is_no_strategy_is_refused_with_what_is_allowed(settings, told, allowed):
    with pytest.raises(InvalidSetting) as refused:
        restart(settings, told)
    assert "STAGEHOLD_RESTART" in str(refused.value)
    assert allowed in str(refused.value)
    with pytest.raises(InvalidSetting):
        load_each_pipeline(replace(settings, restart=told))


def test_it_comes_from_the_environment():
    assert load_settings({"STAGEHOLD_RESTART": "none"}).restart == "none"
