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
    now = datetime.now(UTC)
    interval = (now + timedelta(days=next(_DAYS))).date().isoformat()
    run = Run(f"cli/{interval}", half_done.dag_id, interval, "cli", RunState.RUNNING, now)
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.start(run)
    return interval
