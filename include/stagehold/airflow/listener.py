"""What Airflow's scheduler records in the ledger and in the run's note when it starts a run, since tasks know nothing
of backfills; what it adds to the note when the run ends, since tasks cannot write it; and that the run has failed,
since tasks that were lost cannot record it.

It runs inside the scheduler's loop: of Airflow's database it uses only the run that it is given, that run's backfill,
and the assets of its tables. For a run that starts and is not restored, it asks the ledger nothing; for a run that
ends, only for its events, and for its state if it has failed. Which checkpoint a name stands for is left to the run's
first task, since finding that reads the lake (`run/planning/candidates.py`). Airflow logs its errors and goes on;
`run/planning/restoring.py` says what tasks do then.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.utils.session import create_session
from sqlalchemy.orm import object_session

from stagehold.airflow.context.restore_requests import INTERVAL, AskedRestore, asked_restore, order_asked
from stagehold.airflow.context.settled_wish import REMARKS, noted, settled_wish
from stagehold.airflow.dag.region_operator import run_interval
from stagehold.airflow.runs.declared_dags import DeclaredDag, PlacedPipeline
from stagehold.airflow.runs.table_assets import make_known, unknown_tables
from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors.request_errors import InvalidInterval, InvalidParameter, UnknownName
from stagehold.model.states import RunEvent
from stagehold.run.planning.restoring import healed_in, stage_restored_from, why_all_is_computed
from stagehold.run.stopping.stopping import end_run

log = logging.getLogger(__name__)

# What the scheduler calls its listeners with when it has failed a run itself.
FAILED_BY_AIRFLOW = frozenset({"task_failure", "all_tasks_deadlocked", "timed_out"})

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

    from stagehold.ledger.ledger import Ledger


def note_start(dag_run: DagRun) -> None:
    """Settle what the run is asked for, and record the request for which it starts now, if it is to be restored.

    The run's note says which wishes were left aside before anything is done that may fail.
    """
    pipelines = _pipelines(dag_run)
    if not pipelines:
        return
    remarks = list(_settle(dag_run))
    for found in pipelines:
        if asked := _asked(dag_run, found):
            with open_ledger(found.settings) as ledger:
                remarks += _note_restore(dag_run, found, asked, ledger)
                _remark(dag_run, remarks)
    _make_tables_known(dag_run, pipelines)


def note_end(dag_run: DagRun) -> None:
    """Add which outputs the run had to compute again only because they were released, and the wishes that were left
    aside for a run that no scheduler started (`airflow dags test`).
    """
    pipelines = _pipelines(dag_run)
    if not pipelines or dag_run.start_date is None:
        return
    _, remarks = settled_wish(dag_run.conf or {}, _fields(dag_run), None)
    told = list(remarks)
    for found in pipelines:
        with open_ledger(found.settings) as ledger:
            told += healed_in(found.place.run(dag_run.run_id), dag_run.start_date, ledger)
    for line in told:
        log.info("%s %s: %s", dag_run.dag_id, dag_run.run_id, line)
    _add_to_note(dag_run, told)


def note_failure(dag_run: DagRun, reason: str) -> None:
    """End the run in the ledger, too, if none of its tasks has: all of them may have been lost, or none have begun.

    :param reason: Airflow's word for why it failed the run; another text if a person marked it as failed, which
        cancels it.
    """
    event = RunEvent.FAIL if reason in FAILED_BY_AIRFLOW else RunEvent.CANCEL
    for found in _pipelines(dag_run):
        with suppress(UnknownName), open_ledger(found.settings) as ledger:
            end_run(found.place.run(dag_run.run_id), event, ledger)


def _pipelines(dag_run: DagRun) -> Sequence[PlacedPipeline]:
    return DeclaredDag.of(dag_run.dag).pipelines if dag_run.dag else ()


def _fields(dag_run: DagRun) -> Collection[str]:
    dag: Any = dag_run.dag
    return tuple(dag.params.keys())


def _settle(dag_run: DagRun) -> Sequence[str]:
    of_backfill = dag_run.backfill_id is not None and dag_run.backfill is not None
    backfill_conf = (dag_run.backfill.dag_run_conf or {}) if of_backfill else None
    conf, remarks = settled_wish(dag_run.conf or {}, _fields(dag_run), backfill_conf)
    if conf != (dag_run.conf or {}):
        dag_run.conf = conf
    _remark(dag_run, remarks)
    return remarks


def _make_tables_known(dag_run: DagRun, pipelines: Sequence[PlacedPipeline]) -> None:
    """Reads the pipelines only before their tables were ever published. `airflow dags test` has one run at a time."""
    session, dag = object_session(dag_run), dag_run.dag
    if session is None or dag is None:
        return
    unknown = unknown_tables(dag.tasks, session)
    for found in pipelines if unknown else ():
        make_known(unknown, found.pipeline, found.settings, session)


def _remark(dag_run: DagRun, remarks: Sequence[str]) -> None:
    if remarks:
        dag_run.conf = {**(dag_run.conf or {}), REMARKS: list(remarks)}
    _add_to_note(dag_run, remarks)


def _add_to_note(dag_run: DagRun, lines: Sequence[str]) -> None:
    """Add lines to the run's note. `airflow dags test` ends a run that no session holds: its note is read anew."""
    if lines and object_session(dag_run) is None:
        with create_session() as session:
            held = session.get(type(dag_run), dag_run.id)
            return _add_to_note(held, lines) if held else None
    note = noted(dag_run.note, lines) if lines else None
    if note is not None and note != dag_run.note:
        dag_run.note = note
    return None


def _note_restore(dag_run: DagRun, found: PlacedPipeline, asked: AskedRestore, ledger: Ledger) -> Sequence[str]:
    """Record the restore, and return the remarks on it."""
    order, remark, pipeline = None, None, found.pipeline
    with suppress(InvalidInterval):  # its tasks refuse such an interval
        interval = run_interval(dag_run, (dag_run.conf or {}).get(INTERVAL), pipeline.schedule)
        order = order_asked(asked, pipeline.name, interval, ledger)
        stage = stage_restored_from(asked_restore(found.place, dag_run, asked, order), pipeline.name, ledger)
        remark = why_all_is_computed(pipeline.name, [interval], stage, ledger)
    ledger.restores.ask(asked_restore(found.place, dag_run, asked, order))
    return [remark] if remark else []


def _asked(dag_run: DagRun, found: PlacedPipeline) -> AskedRestore | None:
    """The request of the run for this pipeline. A request that its tasks refuse is none."""
    try:
        return AskedRestore.of({**found.params, **(dag_run.conf or {})}, found.name)
    except InvalidParameter:
        return None
