"""Everything known of a run that its page shows, read from Airflow, the ledger and the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from stagehold.airflow.answering.looked import found_now
from stagehold.airflow.restores.told import ShownRestore
from stagehold.airflow.run_page.facts import RESUMED, RunFacts
from stagehold.airflow.runs.dag_runs import StageholdDagRun, read_dag_run
from stagehold.errors import (
    CodeUnusable,
    RestoreUnderWay,
    StageholdError,
    UndeclaredRead,
    UnknownName,
)
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult, RunState
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.archive.archive import archived_traces
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.refusal import refuse_broken_code
from stagehold.run.planning.restoring import check_restore, new_restore_again
from stagehold.run.planning.vouched import waivers_for
from stagehold.settings import Settings


@dataclass(frozen=True)
class KnownRun:
    """An Airflow run with the request that it works for, and what it began with."""

    dag_run: StageholdDagRun
    restore: ShownRestore

    @staticmethod
    def read(dag_id: str, run_id: str, session: Session, ledger: Ledger, settings: Settings) -> KnownRun:
        dag_run = read_dag_run(dag_id, run_id, session, settings, ledger)
        shown = ShownRestore.of(dag_run, ledger, settings)
        return KnownRun(replace(dag_run, request=shown.request), shown)

    @property
    def request(self) -> RunRequest:
        return self.dag_run.request

    def again(self, stages: Sequence[str]) -> KnownRun:
        """As it is when it is asked to compute stages once more, which nobody has noted yet.

        :raises RestoreUnderWay: it has not taken over all of a checkpoint that it begins with.
        """
        request, restore = self.request, self.request.restore
        if restore is not None and restore.snapshot is not None and restore.fulfilled_at is None:
            raise RestoreUnderWay(request.run_id, restore.snapshot)
        asked = new_restore_again(request.run_id, stages, request.pipeline)
        return replace(self, dag_run=replace(self.dag_run, request=replace(request, restore=asked)))


def read_facts(known: KnownRun, ledger: Ledger, settings: Settings) -> RunFacts:
    """:raises LedgerLost: the tables know the interval, and the ledger does not."""
    request = known.request
    looked = found_now()
    with naming_storage(settings):
        refuse_lost_ledger(request, ledger, settings)
        view = IntervalView.of_run(request, ledger, settings)
        plan = view.plan
    return RunFacts(
        dag_run=known.dag_run,
        regions=view.regions,
        plan=plan,
        recorded=ledger.partitions.newest_of(request.pipeline.name, request.interval),
        attempts=ledger.attempts.of_run(request.run_id),
        traces=_traces(request.run_id, ledger, settings),
        gate_failures=_gate_failures(request, ledger),
        refusal=known.restore.refusal or _refusal(request, plan, settings),
        restore=known.restore.told,
        waivers=waivers_for(request.pipeline, request.interval, ledger, settings),
        resumed=ledger.events.newest(request.run_id, RESUMED),
        ledger_state=_ledger_state(request.run_id, ledger),
        looked=looked,
    )


def _ledger_state(run_id: str, ledger: Ledger) -> RunState | None:
    try:
        return ledger.runs.get(run_id).state
    except UnknownName:
        return None


def _traces(run_id: str, ledger: Ledger, settings: Settings) -> Mapping[str, str]:
    """By attempt; of a run whose history the ledger has forgotten, as the lake keeps them."""
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
