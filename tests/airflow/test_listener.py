"""What the note of a run says when it has ended, and what the ledger does, on a run of Airflow's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from tests.airflow.made_runs import make_dag_run

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event, Run, RunState
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
            ledger.events.append(Event(DagPlace(DAG).run(run_id), kind, subject, text, datetime.now(UTC) - ago))

    return told


def ended(
    run_id: str, state: str = "success", note: str | None = None, reason: str = "the test", *, held: bool = True
) -> str | None:
    """The note of the run when Airflow has ended it, as it is read afterwards.

    :param held: by a session, as in the scheduler; `airflow dags test` ends one that none holds.
    """
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
        if not held:
            session.flush()
            session.expunge(found)
            session.commit()
        found.notify_dagrun_state_changed(msg=reason)
    with create_session() as session:
        return session.scalar(query).note


@pytest.mark.parametrize("state", ["success", "failed"])
def test_what_was_released_and_computed_again_is_in_the_note_behind_what_people_wrote(run_id, tell, state):
    tell("orders", OURS)
    tell("orders", "what was left after an attempt had died")
    assert ended(run_id, state, "look at this") == f"look at this\nStagehold: {OURS}"
    assert ended(run_id, state) == f"look at this\nStagehold: {OURS}"


def test_the_note_of_a_run_that_no_session_holds_is_written_too(run_id, tell):
    tell("orders", OURS)
    assert ended(run_id, held=False) == f"Stagehold: {OURS}"


def test_what_an_earlier_start_of_the_run_computed_again_is_not_told_anew(run_id, tell):
    tell("orders", "of the start before", ago=timedelta(hours=1))
    tell("orders", "another kind", kind="finished")
    assert ended(run_id) is None


@pytest.fixture
def ledger_run(run_id) -> Callable[[], RunState]:
    """The state of the run in the ledger, in which it goes on."""
    known = DagPlace(DAG).run(run_id)
    begun = Run(known, DAG, "2026-11-20", "airflow", RunState.CREATED, datetime.now(UTC))

    def state() -> RunState:
        with Ledger.open(load_settings().ledger_url) as ledger:
            return ledger.runs.get(known).state

    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.start(begun)
    assert state() is RunState.RUNNING
    return state


def test_a_run_that_airflow_fails_while_nobody_is_at_work_has_failed_in_the_ledger(run_id, ledger_run):
    """As when a machine is lost with all its tasks, or the run takes too long before one has begun."""
    ended(run_id, "failed", reason="timed_out")
    assert ledger_run() is RunState.FAILED
    ended(run_id, "failed", reason="Dag Run's state was manually set to `failed`.")
    assert ledger_run() is RunState.FAILED


def test_a_run_that_a_person_marks_as_failed_is_cancelled(run_id, ledger_run):
    ended(run_id, "failed", reason="Dag Run's state was manually set to `failed`.")
    assert ledger_run() is RunState.CANCELED


def test_a_run_that_was_cancelled_before_does_not_fail(run_id, ledger_run):
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.ask_to_cancel(DagPlace(DAG).run(run_id))
    ended(run_id, "failed", reason="task_failure")
    assert ledger_run() is RunState.CANCELED


def test_a_run_that_succeeds_in_airflow_stays_as_its_tasks_have_left_it(run_id, ledger_run):
    ended(run_id, "success")
    assert ledger_run() is RunState.RUNNING


def test_a_failed_run_of_which_no_task_has_begun_is_nothing_to_the_ledger(run_id):
    ended(run_id, "failed", reason="timed_out")
    with Ledger.open(load_settings().ledger_url) as ledger, pytest.raises(UnknownName):
        ledger.runs.get(DagPlace(DAG).run(run_id))
