"""What the trigger and backfill forms ask of a restore. DAG files import this, so it imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.errors.request_errors import InvalidParameter
from stagehold.model.backfill import WorkOrder
from stagehold.model.records import Restore

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

    from stagehold.ledger.ledger import Ledger

RESTORE_FROM_STAGE = "restore_from_stage"
RESTORE = "restore"
ALLOW_NON_RESTORED = "allow_non_restored_state"
TWO_RESTORES = (RESTORE, RESTORE_FROM_STAGE)  # which exclude each other
INTERVAL = "interval"
RESTORE_PIPELINE = "restore_pipeline"  # in DAGs with several pipelines: the one that is restored
BACKFILL = "stagehold_backfill"  # in the configuration of a run alone: no form asks for it


@dataclass(frozen=True)
class AskedRestore:
    """What a run is to begin with: its interval's records before ``stage``, or the checkpoint or savepoint that
    ``reference`` names; or the ``backfill`` that says what it does. Two of the three are None. The backfill may be
    one ``of_another`` pipeline of the DAG.
    """

    stage: str | None = None
    reference: str | None = None
    allow_non_restored: bool = False
    backfill: str | None = None
    of_another: bool = False

    @staticmethod
    def of(params: Mapping[str, Any], pipeline: str) -> AskedRestore | None:
        """The restore of the pipeline that was asked for; None for a run that is not restored.

        :raises InvalidParameter: both fields are filled in.
        """
        of_another = params.get(RESTORE_PIPELINE, pipeline) != pipeline
        if backfill := params.get(BACKFILL):
            return AskedRestore(backfill=str(backfill), of_another=of_another)
        if of_another:
            return None
        stage, reference = params.get(RESTORE_FROM_STAGE) or None, (params.get(RESTORE) or "").strip() or None
        if asks_for_two_restores(params):
            raise InvalidParameter(RESTORE, str(reference), f"one of {RESTORE} and {RESTORE_FROM_STAGE}")
        if not stage and not reference:
            return None
        return AskedRestore(stage, reference, bool(params.get(ALLOW_NON_RESTORED)))


def asks_for_two_restores(params: Mapping[str, Any]) -> bool:
    """Whether two fields are filled in that exclude each other."""
    return all(str(params.get(name) or "").strip() for name in TWO_RESTORES)


def order_asked(asked: AskedRestore, pipeline: str, interval: str, ledger: Ledger) -> WorkOrder | None:
    """The work order that the named backfill has for a run of the interval; None if no backfill is named. A backfill of
    another pipeline of the DAG has this one do nothing.

    :raises UnknownName: the ledger has no backfill of that id.
    """
    if asked.of_another:
        return WorkOrder((), backfill=asked.backfill)
    return ledger.backfills.get(pipeline, asked.backfill).order(interval) if asked.backfill else None


def asked_restore(place: DagPlace, dag_run: DagRun, asked: AskedRestore, order: WorkOrder | None = None) -> Restore:
    """The request of the user who triggered the run, or of the backfill that last reprocesses it.

    A retry and a clear change neither, so they go on with the same request. A run that was deleted and triggered again
    is another run.
    """
    made = dag_run.created_at or dag_run.run_after
    backfill = "" if dag_run.backfill_id is None else f", backfill {dag_run.backfill_id}"
    return Restore(
        run_id=place.run(dag_run.run_id),
        identity=f"run of {made.astimezone(UTC).isoformat()}{backfill}",
        stage=asked.stage,
        requested_at=datetime.now(UTC),
        life=dag_run.start_date,
        allow_non_restored=asked.allow_non_restored,
        work_order=order,
    )


def started_restore(run_id: str, asked: AskedRestore, life: datetime, order: WorkOrder | None = None) -> Restore:
    """The request of this start of the run by itself, in case the scheduler could not record one."""
    return Restore(
        run_id=run_id,
        identity=f"started {life.isoformat()}",
        stage=asked.stage,
        requested_at=life,
        life=life,
        allow_non_restored=asked.allow_non_restored,
        work_order=order,
    )


def known_restore(
    place: DagPlace, dag_run: DagRun, asked: AskedRestore, ledger: Ledger, order: WorkOrder | None = None
) -> Restore:
    """The request that the run's tasks work for, or will when the run starts."""
    wanted = asked_restore(place, dag_run, asked, order)
    begun = ledger.restores.of_life(wanted.run_id, wanted.life) if wanted.life else None
    return begun or ledger.restores.get(wanted.run_id, wanted.identity) or wanted
