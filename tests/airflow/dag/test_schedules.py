"""Pipelines that follow assets and timetables, in a real Airflow's database."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.airflow


def pipeline(folder: Path, name: str, schedule: object) -> Pipeline:
    (folder / "work.py").write_text("from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source): ...\n")
    output = {"type": "blocking_persistent", "table": f"marts.{name}"}
    stage = {"job": "work:numbers", "source": {"kind": "parquet", "path": "x", "splits": 2}, "output": output}
    declared = {"pipeline": name, "schedule": schedule, "stages": {"numbers": stage}}
    return build_pipeline(declared, project=folder, suites=folder)


def compiled(folder: Path, schedule: object, name: str = "follower"):
    from stagehold.airflow.dag.compile import compile_pipeline

    return compile_pipeline(pipeline(folder, name, schedule), project=str(folder))


def test_assets_are_conditions_of_airflows(synced_airflow, tmp_path):
    from airflow.sdk.definitions.asset import AssetAlias, AssetAll, AssetAny, AssetNameRef, AssetUriRef
    from airflow.sdk.definitions.timetables.assets import AssetOrTimeSchedule, AssetTriggeredTimetable

    timetable = compiled(tmp_path, {"assets": "marts.orders & (marts.rates | s3://shop/rates)"}).timetable
    assert isinstance(timetable, AssetTriggeredTimetable)
    orders, rates = timetable.asset_condition.objects
    assert isinstance(timetable.asset_condition, AssetAll)
    assert list(orders.objects) == [AssetAlias("marts.orders"), AssetNameRef("marts.orders")]
    assert isinstance(rates, AssetAny)
    assert list(rates.objects) == [
        AssetAlias("marts.rates"),
        AssetNameRef("marts.rates"),
        AssetUriRef("s3://shop/rates"),
    ]
    both = compiled(tmp_path, {"assets": "marts.orders", "cron": "@daily"}).timetable
    assert isinstance(both, AssetOrTimeSchedule)
    assert both.timetable.run_immediately == timedelta(0)


def test_a_timetable_is_made_with_its_arguments_or_told_as_wrong(synced_airflow, tmp_path):
    from airflow.sdk import CronDataIntervalTimetable

    intervals = {
        "timetable": "airflow.sdk:CronDataIntervalTimetable",
        "arguments": {"expression": "@daily", "timezone": "UTC"},
    }
    assert isinstance(compiled(tmp_path, intervals).timetable, CronDataIntervalTimetable)
    with pytest.raises(InvalidSpec, match=r"schedule.timetable: got .*cannot be made \(TypeError"):
        compiled(tmp_path, {**intervals, "arguments": {"expresion": "@daily"}})


def test_a_timetable_of_the_project_is_found_in_its_src(synced_airflow, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "src").mkdir()
    made = "from airflow.sdk import CronDataIntervalTimetable\n\n\nclass Nightly(CronDataIntervalTimetable): ...\n"
    (tmp_path / "src" / "times_in_src.py").write_text(made)
    declared = {"timetable": "times_in_src:Nightly", "arguments": {"expression": "@daily", "timezone": "UTC"}}
    assert type(compiled(tmp_path, declared).timetable).__name__ == "Nightly"


def test_a_run_is_for_the_newest_interval_that_the_assets_news_are_about(synced_airflow, tmp_path):
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.asset import AssetEvent
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from stagehold.airflow.dag.region_operator import run_interval

    bag = DagBag(tmp_path / "none", bundle_path=tmp_path)
    bag.bag_dag(compiled(tmp_path, {"assets": "marts.leader"}))
    sync_bag_to_db(bag, "dags-folder", None)
    told = register(["2026-11-19", "2026-11-21", "2026-11-20"])
    due = datetime.now(UTC)
    with create_session() as session:
        run = DagRun(
            dag_id="follower", run_id="asset_triggered__1", run_type="asset_triggered", run_after=due, state="queued"
        )
        run.consumed_asset_events = list(session.scalars(select(AssetEvent).where(AssetEvent.id.in_(told))))
        session.add(run)
        session.flush()
        assert run_interval(run, None, None) == "2026-11-21"
        assert run_interval(run, "2026-11-01", None) == "2026-11-01"  # which somebody asked for
        run.consumed_asset_events = []
        assert run_interval(run, None, None) == due.isoformat().replace("+00:00", "Z")
        session.rollback()


def register(intervals: list[str]) -> list[int]:
    """Have the table's asset told as changed, as a task's alias does; the events. The follower is queued by them."""
    from airflow.assets.manager import AssetManager
    from airflow.models.asset import (
        AssetAliasModel,
        AssetDagRunQueue,
        AssetEvent,
        AssetModel,
        DagScheduleAssetAliasReference,
    )
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    events = []
    with create_session() as session:
        session.get(DagModel, "follower").is_paused = False
        session.add(AssetModel(name="marts.leader", uri="file:///lake/marts/leader", group="asset"))
        session.flush()
        asset = session.scalar(select(AssetModel).where(AssetModel.name == "marts.leader"))
        told = AssetManager.register_asset_change
        for interval in intervals:
            extra = {"pipeline": "leader", "interval": interval}
            events.append(told(asset=asset, extra=extra, source_alias_names=["marts.leader"], session=session).id)
        queued = session.scalars(select(AssetDagRunQueue.target_dag_id)).all()
        assert "follower" in queued
        # How Airflow's scheduler looks for the news that a run is told: not by references to assets.
        of_aliases = AssetAliasModel.scheduled_dags.any(DagScheduleAssetAliasReference.dag_id == "follower")
        news = session.scalars(select(AssetEvent.id).where(AssetEvent.source_aliases.any(of_aliases))).all()
        assert sorted(news) == events
    return events
