"""Reads all that the page of a run shows, from Airflow, the ledger and the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from stagehold.airflow.answering.response_model import found_now
from stagehold.airflow.run_page.run_facts import RESUMED, ResumeFacts, RunFacts
from stagehold.airflow.run_page.run_responses import RestoredFrom, Snapshot
from stagehold.airflow.runs.dag_runs import StageholdDagRun, read_dag_run
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.airflow.telling.untold import UNTOLD
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import RestoreUnderWay, UnknownName
from stagehold.errors.spec_errors import CodeUnusable
from stagehold.errors.stage_errors import UndeclaredRead
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult, RunState
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.lease.lost_attempts import losses
from stagehold.run.planning.acceptance import said_waivers
from stagehold.run.planning.candidates import Candidates, manifest_named
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest, begins_with_of
from stagehold.run.planning.refusal import refuse_broken_code
from stagehold.run.planning.restoring import check_restore, new_restore_again
from stagehold.run.upkeep.run_archive import archived_traces
from stagehold.settings import Settings


@dataclass(frozen=True)
class KnownRun:
    """An Airflow run with the request that it works for, and what the page shows of its restore; ``refusal`` says why
    that restore cannot be carried out.
    """

    dag_run: StageholdDagRun
    restore: RestoredFrom | None
    refusal: StageholdError | None

    @staticmethod
    def read(dag: PlacedPipeline, run_id: str, session: Session, ledger: Ledger) -> KnownRun:
        dag_run = read_dag_run(dag, run_id, session, ledger)
        request, restore, refusal = _shown_restore(dag_run, ledger, dag.settings)
        return KnownRun(replace(dag_run, request=request), restore, refusal)

    @property
    def request(self) -> RunRequest:
        return self.dag_run.request

    def again(self, stages: Sequence[str]) -> KnownRun:
        """The run as it is if it is asked to compute stages once more, which is not recorded yet.

        :raises RestoreUnderWay: it has not yet taken over all of a checkpoint that it begins with.
        """
        request, restore = self.request, self.request.restore
        if restore is not None and restore.snapshot and restore.fulfilled_at is None:
            raise RestoreUnderWay(request.run_id, restore.snapshot)
        asked = new_restore_again(request.run_id, stages, request.pipeline)
        return replace(self, dag_run=replace(self.dag_run, request=replace(request, restore=asked)))


def read_resume_facts(known: KnownRun, ledger: Ledger, settings: Settings) -> ResumeFacts:
    """:raises LedgerLost: the tables know the interval, and the ledger does not."""
    request = known.request
    with naming_storage(settings):
        refuse_lost_ledger(request, ledger, settings)
        view = IntervalView.of_run(request, ledger, settings)
        plan = view.plan
    return ResumeFacts(
        dag_run=known.dag_run,
        regions=view.regions,
        plan=plan,
        refusal=known.refusal or _refusal(request, plan, settings),
        resumed=ledger.events.newest(request.run_id, RESUMED),
    )


def read_facts(known: KnownRun, ledger: Ledger, settings: Settings) -> RunFacts:
    """:raises LedgerLost: the tables know the interval, and the ledger does not."""
    request, looked = known.request, found_now()
    of_resume = read_resume_facts(known, ledger, settings)
    attempts = ledger.attempts.of_run(request.run_id)
    holding, past = said_waivers(request.pipeline, request.interval, ledger, settings)
    return RunFacts(
        dag_run=of_resume.dag_run,
        regions=of_resume.regions,
        plan=of_resume.plan,
        refusal=of_resume.refusal,
        resumed=of_resume.resumed,
        recorded=ledger.partitions.newest_of(request.pipeline.name, request.interval),
        attempts=attempts,
        lost=losses(attempts, ledger),
        traces=_traces(request.run_id, ledger, settings),
        gate_failures=_gate_failures(request, ledger),
        restore=known.restore,
        waivers=holding,
        past_waivers=past,
        ledger_state=ledger_state(request.run_id, ledger),
        looked=looked,
        untold=ledger.events.of_kind(request.run_id, UNTOLD),
    )


def ledger_state(run_id: str, ledger: Ledger) -> RunState | None:
    try:
        return ledger.runs.get(run_id).state
    except UnknownName:
        return None


def _traces(run_id: str, ledger: Ledger, settings: Settings) -> Mapping[str, str]:
    """The traces by attempt. If the ledger has forgotten the run's history, they are read from the lake."""
    known = ledger.events.traces(run_id)
    forgotten = not known and not ledger.transitions.of_run(run_id)
    return archived_traces(run_id, settings.lake_uri) if forgotten else known


def _refusal(request: RunRequest, plan: ResumePlan, settings: Settings) -> StageholdError | None:
    try:
        check_restore(request)
        refuse_broken_code(request.pipeline, plan, settings)
    except (CodeUnusable, UndeclaredRead) as error:
        return error
    return None


def _gate_failures(request: RunRequest, ledger: Ledger) -> Mapping[str, Sequence[GateResult]]:
    gated = [stage.id for stage in request.pipeline.stages if stage.gate]
    return {stage: ledger.gates.failures(Cell(request.pipeline.name, stage, request.interval)) for stage in gated}


def _shown_restore(
    dag_run: StageholdDagRun, ledger: Ledger, settings: Settings
) -> tuple[RunRequest, RestoredFrom | None, StageholdError | None]:
    """The request as the run's tasks have it or will have it, what the page shows of its restore, and why the restore
    cannot be carried out. In that case it is left out of the request, so that the page can show what there is.

    The api-server may look a checkpoint up before any task of the run has done so.
    """
    request, restore = dag_run.request, dag_run.request.restore
    if restore is None or restore.work_order is not None:
        return request, None, None
    told = RestoredFrom(
        stage=restore.stage,
        reference=dag_run.reference,
        requested_at=restore.requested_at,
        fulfilled_at=restore.fulfilled_at,
    )
    if restore.stage is not None:
        return request, told, None
    try:
        request = _looked_up(request, dag_run.reference or "", ledger, settings)
        return request, told.model_copy(update={"snapshot": _snapshot(request)}), None
    except StageholdError as error:
        return replace(request, restore=None), told.model_copy(update={"problem": str(error)}), error


def _looked_up(request: RunRequest, reference: str, ledger: Ledger, settings: Settings) -> RunRequest:
    """The request with what its reference means now, if no task has recorded that yet. Nothing is recorded for the
    tasks.
    """
    if request.restore is None or request.restore.snapshot is not None:
        return request
    candidates = Candidates(
        request.pipeline.name, request.interval, request.run_id, settings.lake_uri, ledger, request.pipeline.restore
    )
    address = manifest_named(reference, candidates, lambda _: None)
    return replace(request, restore=replace(request.restore, snapshot=address))


def _snapshot(request: RunRequest) -> Snapshot | None:
    begins_with = begins_with_of(request)
    if begins_with is None or request.restore is None or not request.restore.snapshot:
        return None
    taken = begins_with.plan.checkpoint
    return Snapshot(
        address=request.restore.snapshot,
        name=taken.name,
        run_id=taken.run_id,
        number=taken.id,
        interval=taken.interval,
        taken_at=taken.taken_at,
    )
