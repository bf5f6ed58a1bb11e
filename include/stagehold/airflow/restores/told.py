"""What a run begins with, as its page shows it. The api-server may look it up before any task of the run has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.errors import StageholdError
from stagehold.ledger.ledger import Ledger
from stagehold.run.planning.candidates import Candidates
from stagehold.run.planning.named_snapshots import manifest_named
from stagehold.run.planning.planning import RunRequest, begins_with_of
from stagehold.settings import Settings

if TYPE_CHECKING:
    from stagehold.airflow.runs.dag_runs import StageholdDagRun


@dataclass(frozen=True)
class Snapshot:
    """The checkpoint or savepoint that a run begins with: whose it is, and when it was taken."""

    address: str
    name: str | None
    run_id: str
    number: int
    interval: str
    taken_at: datetime


@dataclass(frozen=True)
class RestoredFrom:
    """A run's restore: from the ``stage``, or from what the ``reference`` means. That is the ``snapshot`` unless nobody
    can begin with it, and then ``problem`` says why. ``fulfilled_at`` is when all that was asked for was there.
    """

    stage: str | None
    reference: str | None
    requested_at: datetime
    fulfilled_at: datetime | None
    snapshot: Snapshot | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ShownRestore:
    """A run's request as its page plans with it, and what the page says of its restore."""

    request: RunRequest
    told: RestoredFrom | None = None
    refusal: StageholdError | None = None

    @staticmethod
    def of(dag_run: StageholdDagRun, ledger: Ledger, settings: Settings) -> ShownRestore:
        """As the run's tasks have it or will have it. One that cannot be carried out is left out of the request, so
        that the page can show what there is.
        """
        request, restore = dag_run.request, dag_run.request.restore
        if restore is None or restore.work_order is not None:
            return ShownRestore(request)
        told = RestoredFrom(restore.stage, dag_run.reference, restore.requested_at, restore.fulfilled_at)
        if restore.stage is not None:
            return ShownRestore(request, told)
        try:
            request = _looked_up(request, dag_run.reference or "", ledger, settings)
            return ShownRestore(request, replace(told, snapshot=_snapshot(request)))
        except StageholdError as error:
            return ShownRestore(replace(request, restore=None), replace(told, problem=str(error)), error)


def _looked_up(request: RunRequest, reference: str, ledger: Ledger, settings: Settings) -> RunRequest:
    """With what the reference means now, if no task has noted that yet. Nothing is noted for them."""
    if request.restore is None or request.restore.snapshot is not None:
        return request
    candidates = Candidates(request.pipeline.name, request.interval, request.run_id, settings.lake_uri, ledger)
    address = manifest_named(reference, candidates, lambda _: None)
    return replace(request, restore=replace(request.restore, snapshot=address))


def _snapshot(request: RunRequest) -> Snapshot | None:
    begins_with = begins_with_of(request)
    if begins_with is None or request.restore is None or request.restore.snapshot is None:
        return None
    taken = begins_with.plan.checkpoint
    return Snapshot(request.restore.snapshot, taken.name, taken.run_id, taken.id, taken.interval, taken.taken_at)
