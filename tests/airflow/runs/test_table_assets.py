"""The assets of published tables are there before a run publishes, on Airflow's own database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.airflow.made_runs import forget_asset, make_dag_run

from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG, TABLE = "shipping_priority", "marts.top_orders"


@pytest.fixture
def run_id(synced_airflow) -> Iterator[str]:
    """Of a run that is still to start, in an Airflow that has seen no event of the table."""
    made = f"first-{uuid4().hex[:8]}"
    make_dag_run(DAG, made, {}, state="running")
    forget_asset(TABLE)
    yield made
    forget_asset(TABLE)


def started(run_id: str) -> None:
    """As the scheduler starts it: in a session of which nothing but the scheduler may commit."""
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from airflow.utils.sqlalchemy import prohibit_commit
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    with create_session() as session, prohibit_commit(session) as guard:
        found = session.scalar(select(DagRun).where(DagRun.dag_id == DAG, DagRun.run_id == run_id))
        found.dag = SerializedDagModel.get_dag(DAG, session=session)
        found.state = DagRunState.RUNNING
        found.notify_dagrun_state_changed(msg="started")
        guard.commit()


def known() -> list[tuple[str, str, list[str]]]:
    """Name, address and aliases of the table's assets."""
    from airflow.models.asset import AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(AssetModel).where(AssetModel.name == TABLE)).all()
        return [(asset.name, asset.uri, [alias.name for alias in asset.aliases]) for asset in found]


def test_a_run_that_starts_makes_the_asset_of_its_table_known_and_later_ones_leave_it(run_id):
    assert known() == []
    started(run_id)
    uri = Path(load_settings().lake_uri, "marts", "top_orders").absolute().as_uri()
    assert known() == [(TABLE, uri, [TABLE])]
    started(run_id)
    assert known() == [(TABLE, uri, [TABLE])]


def test_two_first_events_of_a_table_at_one_moment_find_the_asset(run_id):
    """Airflow makes the asset with the first event that it is told. Here both tasks look for it before either writes,
    which failed the second of them.
    """
    from airflow.assets.manager import asset_manager
    from airflow.models.asset import AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    started(run_id)
    with create_session() as one, create_session() as other:
        asked = select(AssetModel).where(AssetModel.name == TABLE)
        assets = [one.scalar(asked), other.scalar(asked)]
        for session, asset in zip((one, other), assets, strict=True):
            told = asset_manager.register_asset_change(
                asset=asset, source_alias_names={TABLE}, extra={}, session=session
            )
            assert told is not None
            session.commit()


def test_a_pipeline_that_cannot_be_read_leaves_it_to_airflow_and_the_run_starts(run_id, monkeypatch):
    monkeypatch.setattr("stagehold.airflow.runs.declared_dags.find_pipeline", lambda *_: 1 / 0)
    started(run_id)
    assert known() == []
