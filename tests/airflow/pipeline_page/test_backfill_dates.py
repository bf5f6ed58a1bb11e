"""The intervals of a range are those for which Airflow's own backfill makes runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from stagehold.errors.request_errors import BackfillRefused
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
    from stagehold.airflow.pipeline_page.backfill_routes import AirflowDates

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


NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "now", "chosen", "newest"),
    [
        ("0 2 * * *", NOW, ["2026-11-01"], "2026-11-26"),
        ("0 2 * * *", NOW.replace(hour=1), ["2026-11-01"], "2026-11-25"),
        ("@hourly", NOW, ["2026-11-01T00:00:00Z"], "2026-11-26T09:00:00Z"),
        ("0 2 * * *", NOW, ["2026-11-25", "2026-11-26"], None),
        ("@once", NOW, ["2026-11-01"], None),
        (None, NOW, ["2026-11-01"], None),
    ],
)
def test_it_is_said_which_run_airflow_starts_behind_a_dags_first_backfill(
    synced_airflow, schedule, now, chosen, newest
):
    from airflow.utils.session import create_session

    from stagehold.airflow.pipeline_page.backfill_routes import started_along

    with create_session() as session:
        told = started_along(SimpleNamespace(schedule=schedule), "never_ran", chosen, now, session)
    assert told is None if newest is None else f"it will then start the run for {newest}, too." in told


def test_a_dag_that_airflow_started_before_goes_on_as_it_would(synced_airflow):
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    from stagehold.airflow.pipeline_page.backfill_routes import started_along

    with create_session() as session:
        session.add(DagRun("ran_once", "scheduled__1", logical_date=DAY, run_after=DAY, run_type="scheduled"))
        session.flush()
        assert started_along(SimpleNamespace(schedule="0 2 * * *"), "ran_once", ["2026-11-01"], NOW, session) is None
        session.rollback()
