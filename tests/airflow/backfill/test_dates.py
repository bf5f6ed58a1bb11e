"""The intervals of a range are those for which Airflow's own backfill makes runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stagehold.errors import BackfillRefused
from stagehold.model.keys.interval_key import key_of, keys_between, moment_of

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("schedule", "first", "last"),
    [
        ("0 2 * * *", "2026-10-20", "2026-11-02"),
        ("@daily", "2026-10-20", "2026-11-02"),
        ("@hourly", "2026-10-24", "2026-10-26"),
        ("30 */6 * * *", "2026-10-24T06:30:00Z", "2026-10-26T06:30:00Z"),
        ("@weekly", "2026-01-01", "2026-03-01"),
        ("0 5 1 * *", "2026-01-15", "2026-06-01"),
    ],
)
def test_the_intervals_are_those_of_airflows_own_backfill(airflow_home, schedule, first, last):
    from airflow.sdk import DAG
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import DagSerialization

    keys = list(keys_between(first, last, schedule))
    moments = [moment_of(key, schedule) for key in keys]
    assert len(keys) > 1
    dag = DAG(dag_id="any", schedule=schedule, catchup=False)
    serialized = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert isinstance(serialized, SerializedDAG)
    found = list(serialized.iter_dagrun_infos_between(moments[0], moments[-1]))
    assert [one.logical_date for one in found] == moments
    assert [key_of(one.data_interval.start, schedule) for one in found] == keys


DAY = datetime(2026, 11, 1, 2, tzinfo=UTC)
RUNS = {"a": "success", "b": "failed", "c": "running"}


@pytest.fixture
def known(airflow_home):
    from stagehold.airflow.backfill.dates import AirflowDates

    moments = {key: DAY + timedelta(days=number) for number, key in enumerate("abcd")}
    return AirflowDates(moments, {key: f"r{key}" for key in RUNS}, RUNS)


@pytest.mark.parametrize(
    ("chosen", "goes_on", "expected"),
    [("ad", False, "completed"), ("bd", False, "failed"), ("d", False, "none"), ("d", True, "failed")],
)
def test_airflow_is_asked_for_the_mildest_that_runs_every_chosen_date(known, chosen, goes_on, expected):
    assert known.reprocess_behavior([*chosen], goes_on=goes_on) == expected


def test_a_chosen_date_whose_run_goes_on_is_refused(known):
    known.refuse_under_way("sales", ["a", "b", "d"])
    with pytest.raises(BackfillRefused, match="The run rc of c is running: wait for its end"):
        known.refuse_under_way("sales", ["a", "c"])
