"""What the note of a run says when it has ended, on a run of Airflow's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from tests.airflow.made_runs import make_dag_run

from stagehold.airflow.context.run_names import ledger_run_id
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event
from stagehold.run.planning.restoring import HEALED
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG = "shipping_priority"
OURS = "orders of 2026-11-10 was released: 16 partitions, about 40 s, computed again"


@pytest.fixture
def run_id(synced_airflow) -> str:
    made = f"ends-{uuid4().hex[:8]}"
    make_dag_run(DAG, made, {}, state="running")
    return made


@pytest.fixture
def tell(run_id) -> Callable[..., None]:
    def told(subject: str, text: str, kind: str = HEALED, ago: timedelta = timedelta(0)) -> None:
        with Ledger.open(load_settings().ledger_url) as ledger:
            ledger.events.append(Event(ledger_run_id(DAG, run_id), kind, subject, text, datetime.now(UTC) - ago))

    return told


def ended(run_id: str, state: str = "success", note: str | None = None) -> str | None:
    """The note of the run when the scheduler has ended it, as it is read afterwards."""
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    query = select(DagRun).where(DagRun.dag_id == DAG, DagRun.run_id == run_id)
    with create_session() as session:
        found = session.scalar(query)
        found.dag = SerializedDagModel.get_dag(DAG, session=session)
        found.start_date = datetime.now(UTC) - timedelta(minutes=1)
        if note is not None:
            found.note = note
        found.state = DagRunState(state)
        found.notify_dagrun_state_changed(msg="the test")
    with create_session() as session:
        return session.scalar(query).note


@pytest.mark.parametrize("state", ["success", "failed"])
def test_what_was_released_and_computed_again_is_in_the_note_behind_what_people_wrote(run_id, tell, state):
    tell("orders", OURS)
    tell("orders", "what was left after an attempt had died")
    assert ended(run_id, state, "look at this") == f"look at this\nStagehold: {OURS}"
    assert ended(run_id, state) == f"look at this\nStagehold: {OURS}"


def test_what_an_earlier_start_of_the_run_computed_again_is_not_told_anew(run_id, tell):
    tell("orders", "of the start before", ago=timedelta(hours=1))
    tell("orders", "another kind", kind="finished")
    assert ended(run_id) is None
