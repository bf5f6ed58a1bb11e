"""Which interval an Airflow run is for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from stagehold.airflow.context.run_names import interval_of
from stagehold.model.keys.interval_key import PRESETS

START = datetime(2026, 11, 20, 2, tzinfo=UTC)
LOGICAL = datetime(2026, 11, 21, 3, tzinfo=UTC)
DUE = datetime(2026, 11, 21, 2, 0, 7, 250, tzinfo=UTC)
EVERYTHING = {
    **{"asked": "mine", "partition_key": "eu", "data_interval_start": START, "logical_date": LOGICAL, "run_after": DUE},
    "schedule": "0 2 * * *",
}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ((), "mine"),
        (("asked",), "eu"),
        (("asked", "partition_key"), "2026-11-20"),
        (("asked", "partition_key", "data_interval_start"), "2026-11-21T03:00:00Z"),
        (("asked", "partition_key", "data_interval_start", "logical_date"), "2026-11-21T02:00:07.000250Z"),
    ],
)
def test_the_first_fact_that_is_there_names_the_interval(missing, expected):
    assert interval_of(**{**EVERYTHING, **dict.fromkeys(missing)}) == expected


@pytest.mark.parametrize(
    ("moment", "schedule", "by_hand", "expected"),
    [
        ("2026-11-05T00:00", "0 2 * * *", True, "2026-11-05"),
        ("2026-11-05T00:00", "0 2 * * *", False, "2026-11-05T00:00:00Z"),
        ("2026-11-05T00:01", "0 2 * * *", True, "2026-11-05T00:01:00Z"),
        ("2026-11-05T00:00", "0 */6 * * *", True, "2026-11-05T00:00:00Z"),
        ("2026-11-05T00:00", "0 2 * * 1", True, "2026-11-05T00:00:00Z"),  # a Thursday
        ("2026-11-05T00:00", None, True, "2026-11-05"),
    ],
)
def test_a_day_that_a_run_by_hand_names_is_the_interval_of_the_run_that_the_schedule_starts_then(
    moment, schedule, by_hand, expected
):
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    given = {"asked": None, "partition_key": None, "data_interval_start": at, "logical_date": at, "run_after": at}
    assert interval_of(**given, schedule=schedule, by_hand=by_hand) == expected


def test_an_empty_answer_in_the_form_counts_as_none():
    assert interval_of(**{**EVERYTHING, "asked": " "}) == "eu"


@pytest.mark.parametrize("written", ["2026-11-20", "2026-11-20T02:00:00Z", "2026-11-20T03:00:00+01:00"])
def test_the_form_a_partition_key_and_the_schedule_mean_the_same_interval(written):
    assert interval_of(**{**EVERYTHING, "asked": written}) == "2026-11-20"
    assert interval_of(**{**EVERYTHING, "asked": None, "partition_key": written}) == "2026-11-20"


@pytest.mark.airflow
def test_presets_mean_what_airflow_takes_them_for(airflow_home):
    from airflow.utils.dates import cron_presets

    assert cron_presets == PRESETS


def test_the_same_moment_in_another_time_zone_is_the_same_interval():
    elsewhere = START.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert (
        interval_of(**{**EVERYTHING, "asked": None, "partition_key": None, "data_interval_start": elsewhere})
        == "2026-11-20"
    )
