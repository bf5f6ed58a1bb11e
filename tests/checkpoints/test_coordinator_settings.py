from __future__ import annotations

from datetime import timedelta

import pytest

from stagehold.checkpoints.coordinator_settings import CoordinatorSettings, retention_of
from stagehold.checkpoints.store import Retention
from stagehold.spec.settings.run_settings import CheckpointSettings, OnCancel

EVERY_SECOND = CheckpointSettings(interval=timedelta(seconds=1))


def test_without_an_interval_there_are_no_periodic_checkpoints():
    assert CoordinatorSettings.of(CheckpointSettings()).period > timedelta(days=9999) // timedelta(milliseconds=1)


def test_defaults_are_flinks_but_that_one_waits():
    settings = CoordinatorSettings.of(EVERY_SECOND)
    assert settings == CoordinatorSettings(
        interval=1000,
        min_pause=0,
        timeout=600_000,
        max_concurrent=1,
        tolerable_failures=0,
        retention=Retention.ALWAYS,
        one_waiting=True,
    )


def test_what_the_author_says_counts_and_a_pause_is_never_longer_than_a_year():
    declared = EVERY_SECOND.model_copy(
        update={
            "min_pause": timedelta(days=1000),
            "tolerable_failures": "unlimited",
            "on_cancel": OnCancel.DELETE,
            "max_concurrent": 3,
        }
    )
    settings = CoordinatorSettings.of(declared)
    assert settings is not None
    assert (settings.tolerable_failures, settings.max_concurrent) == (None, 3)
    assert settings.pause == settings.period == timedelta(days=365) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("on_cancel", "retention"), [(OnCancel.RETAIN, Retention.ALWAYS), (OnCancel.DELETE, Retention.UNLESS_CANCELED)]
)
def test_only_a_cancelled_run_may_leave_no_checkpoint(on_cancel, retention):
    assert retention_of(CheckpointSettings(on_cancel=on_cancel)) is retention
