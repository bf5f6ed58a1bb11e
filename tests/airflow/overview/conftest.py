"""A pipeline whose newest interval needs a look, whatever other tests have left of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from tests.airflow.made_runs import HalfDone

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState
from stagehold.settings import load_settings

_DAYS = count(366)


@pytest.fixture
def stopped(half_done: HalfDone) -> str:
    """The interval of a command's run that has not ended and that nobody works on; its date is yet to come."""
    _end_runs(half_done.dag_id)
    now = datetime.now(UTC)
    interval = (now + timedelta(days=next(_DAYS))).date().isoformat()
    run = Run(f"cli/{interval}", half_done.dag_id, interval, "cli", RunState.RUNNING, now)
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.start(run)
    return interval


def _end_runs(dag_id: str) -> None:
    """Those that other tests had Airflow start, and that wait for a scheduler which is not there."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import update

    waiting = (DagRun.dag_id == dag_id, DagRun.state.in_((DagRunState.QUEUED, DagRunState.RUNNING)))
    with create_session() as session:
        session.execute(update(DagRun).where(*waiting).values(state=DagRunState.FAILED))
