"""For which request a run of Airflow is restored:
each trigger, each backfill, and never a retry, a clear or a resume.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from tests.airflow.made_runs import make_dag_run

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.context.restore_requests import AskedRestore
from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Restore
from stagehold.run.planning.restoring import restore_of_life
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

PIPELINE = "shipping_priority"
MADE = datetime(2026, 11, 20, 8, tzinfo=UTC)


def a_run(**facts):
    """The fields of Airflow's record of a run that matter here."""
    given = {
        "dag_id": PIPELINE,
        "run_id": "manual__1",
        "created_at": MADE,
        "run_after": MADE,
        "backfill_id": None,
        "start_date": MADE,
    }
    return SimpleNamespace(**given | facts)


ORDERS, PLACE = AskedRestore("orders"), DagPlace(PIPELINE)


def of_start(life: datetime, ledger: Ledger, asked: AskedRestore = ORDERS) -> Restore:
    """The request as a task finds it that began with this start of the run."""
    from stagehold.airflow.context.restore_requests import started_restore

    return restore_of_life(started_restore(f"{PIPELINE}/manual__1", asked, life), ledger)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        yield opened


@pytest.fixture
def identity_of(airflow_home):
    from stagehold.airflow.context.restore_requests import asked_restore

    return lambda **facts: asked_restore(PLACE, a_run(**facts), ORDERS).identity


def test_a_clear_goes_on_with_the_request_and_a_backfill_or_a_new_run_asks_anew(identity_of):
    first = identity_of()
    assert identity_of(start_date=MADE + timedelta(hours=1)) == first
    assert identity_of(start_date=None) == first
    others = [
        identity_of(backfill_id=1),
        identity_of(backfill_id=2),
        identity_of(created_at=MADE + timedelta(seconds=1)),
    ]
    assert len({first, *others}) == 4
    assert identity_of(backfill_id=2, start_date=MADE + timedelta(hours=1)) == others[1]


def test_tasks_work_for_what_the_scheduler_noted_for_this_start_of_the_run(airflow_home, ledger):
    from stagehold.airflow.context.restore_requests import asked_restore

    noted = ledger.restores.ask(asked_restore(PLACE, a_run(backfill_id=1), ORDERS))
    assert of_start(MADE, ledger) == noted
    again = MADE + timedelta(hours=1)
    ledger.restores.ask(asked_restore(PLACE, a_run(backfill_id=1, start_date=again), ORDERS))
    assert of_start(again, ledger).identity == noted.identity
    ledger.restores.ask(asked_restore(PLACE, a_run(backfill_id=2, start_date=again + timedelta(hours=1)), ORDERS))
    assert of_start(again + timedelta(hours=1), ledger).identity != noted.identity


def test_what_the_scheduler_could_not_note_is_a_request_of_its_own_on_which_all_tasks_agree(airflow_home, ledger):
    asked = {of_start(MADE, ledger).identity for _ in range(3)}
    assert len(asked) == 1
    assert of_start(MADE + timedelta(hours=1), ledger).identity not in asked


def test_the_page_sees_the_request_of_the_tasks_before_while_and_after_they_work(airflow_home, ledger):
    from stagehold.airflow.context.restore_requests import asked_restore, known_restore

    asked = asked_restore(PLACE, a_run(start_date=None), ORDERS)
    assert known_restore(PLACE, a_run(start_date=None), ORDERS, ledger).identity == asked.identity
    noted = ledger.restores.ask(asked_restore(PLACE, a_run(), ORDERS))
    assert known_restore(PLACE, a_run(), ORDERS, ledger) == noted
    assert known_restore(PLACE, a_run(start_date=None), ORDERS, ledger) == noted
    alone = of_start(MADE + timedelta(hours=1), ledger)
    assert known_restore(PLACE, a_run(start_date=MADE + timedelta(hours=1)), ORDERS, ledger) == alone


@pytest.fixture
def kept():
    """The configurations that Airflow keeps of the runs that started."""
    return []


@pytest.fixture
def started(synced_airflow, monkeypatch, tmp_path, kept):
    """Has Airflow tell its listeners that a run of the DAG starts; gives what the ledger holds of it then."""
    from airflow.listeners.listener import get_listener_manager
    from airflow.models.backfill import Backfill
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.plugins_manager import integrate_listener_plugins
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    integrate_listener_plugins(get_listener_manager())
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")

    def start(dag_id: str, conf: dict[str, object], note: str = "", backfill_conf: dict[str, object] | None = None):
        """
        :param note: what is in the run's note then
        :param backfill_conf: of the backfill that it belongs to, if it is not None
        """
        run_id = f"manual__{tmp_path.name}"
        make_dag_run(dag_id, run_id, {}, conf=conf)
        with create_session() as session:
            dag_run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
            dag_run.dag = SerializedDagModel.get_dag(dag_id, session=session)
            dag_run.state = DagRunState.RUNNING
            dag_run.start_date = MADE
            if backfill_conf is not None:
                dag_run.run_type, dag_run.backfill = "backfill", Backfill(dag_id=dag_id, dag_run_conf=backfill_conf)
                dag_run.backfill.from_date = dag_run.backfill.to_date = MADE
                session.flush()
            dag_run.notify_dagrun_state_changed(msg="started")
            session.flush()
            assert note in (dag_run.note or "") if note else dag_run.note is None
            kept.append(dag_run.conf)
            session.rollback()
        with Ledger.open(load_settings().ledger_url) as ledger:
            noted = ledger.restores.of_run(f"{dag_id}/{run_id}")
            return [(one.stage, one.snapshot, one.allow_non_restored, one.life, one.fulfilled_at) for one in noted]

    return start


def test_the_scheduler_notes_a_restore_when_it_starts_the_run(started, kept):
    note = "Stagehold: Nothing is on record of 2026-11-20, so all of it is computed, not only orders and what reads it."
    asked = {"restore_from_stage": "orders", "interval": "2026-11-20"}
    assert started(PIPELINE, asked, note=note) == [("orders", None, False, MADE, None)]
    assert [f"Stagehold: {remark}" for remark in kept[0]["stagehold_remarks"]] == [note]


def test_a_name_that_nobody_reads_is_in_the_runs_note(started):
    note = "Stagehold: restore_form_stage is no field of this pipeline and does nothing; fields: allow_non_restored"
    assert started(PIPELINE, {"restore_form_stage": "orders"}, note=note) == []


def test_a_backfill_that_asks_for_nothing_does_not_repeat_what_an_earlier_one_asked_for(started, kept):
    note = "so what is not consumable is computed; restore_from_stage of an earlier one was left aside."
    asked = {"restore_from_stage": "orders", "segment": "MACHINERY"}
    assert started(PIPELINE, asked, note=note, backfill_conf={}) == []
    (conf,) = kept
    assert "restore_from_stage" not in conf
    assert conf["segment"] == "MACHINERY"


def test_an_interval_in_a_backfills_form_is_left_aside_and_its_restore_is_not(started):
    asked = {"restore_from_stage": "orders", "interval": "2020-01-01"}
    note = "Stagehold: The interval 2020-01-01 was left aside: a backfill runs each of its dates for itself."
    assert started(PIPELINE, asked, note=note, backfill_conf=asked) == [("orders", None, False, MADE, None)]


def test_which_checkpoint_a_name_stands_for_is_left_to_the_first_task(started):
    asked = {"restore": "latest", "allow_non_restored_state": True}
    assert started(PIPELINE, asked) == [(None, None, True, MADE, None)]


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"restore_from_stage": None},
        {"interval": "whole"},
        {"restore": ""},
    ],
)
def test_the_scheduler_notes_nothing_of_other_runs(started, conf):
    assert started(PIPELINE, conf) == []


def test_two_restores_that_exclude_each_other_are_left_aside(started, kept):
    asked = {"restore": "kept", "restore_from_stage": "orders", "segment": "MACHINERY"}
    assert started(PIPELINE, asked, note="Stagehold: restore and restore_from_stage exclude each other") == []
    (conf,) = kept
    assert {"restore", "restore_from_stage"}.isdisjoint(conf)
    assert conf["segment"] == "MACHINERY"


def test_a_ledger_that_is_away_does_not_stop_the_scheduler(started, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_LEDGER", "postgresql://me@127.0.0.1:1/ledger")
    with pytest.raises(
        LedgerUnavailable, match="refused"
    ):  # raised by the test's own look at the ledger, after Airflow went on
        started(PIPELINE, {"restore_from_stage": "orders"})
