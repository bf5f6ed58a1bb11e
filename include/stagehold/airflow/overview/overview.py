"""All that the overview shows, put together from ledgers and Airflow: a few queries for all pipelines of a ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from sqlalchemy import func, select, tuple_

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.context.run_names import ledger_run_id
from stagehold.airflow.overview.overview_responses import (
    FirstStale,
    InstalledVersion,
    LeaseLine,
    Overview,
    PipelineRow,
    PipelineStaleness,
    StaleOverview,
)
from stagehold.airflow.overview.pipeline_rows import (
    MOST_MARKS,
    DagNow,
    PipelineFacts,
    hidden_row,
    interval_marks,
    pipeline_row,
)
from stagehold.airflow.overview.visible_pipelines import VisiblePipeline
from stagehold.airflow.pipeline_page.interval_staleness import staleness
from stagehold.airflow.pipeline_page.pipeline_responses import Staleness
from stagehold.airflow.run_page.resume_lease import RESUME_OF, Presser
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.errors.base import StageholdError
from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease, Run
from stagehold.model.standing import together
from stagehold.run.clearing.garbage_collector import MAINTENANCE
from stagehold.run.intervals.interval_standings import standings
from stagehold.run.lease.lease_holder import described
from stagehold.run.planning.task import region_lease
from stagehold.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from stagehold.airflow.overview.visible_pipelines import VisiblePipeline

EACH = 40  # newest runs of a pipeline that are looked at
UNKNOWN_DAG = DagNow(paused=False, due=None, active=0)


def overview(visible: Sequence[VisiblePipeline], session: Session) -> Overview:
    """Of pipelines whose runs the reader may not see, only that they are there."""
    rows = [hidden_row(one.pipeline) for one in visible if not one.runs]
    leases: list[LeaseLine] = []
    for settings, some in by_project(one for one in visible if one.runs).items():
        found, held = _of_ledger(some, server_ledger(settings), session)
        rows += found
        leases += held
    return Overview(
        pipelines=tuple(sorted(rows, key=lambda row: row.name)),
        leases=tuple(dict.fromkeys(sorted(leases, key=lambda one: one.name))),
        versions=installed_versions(),
    )


def by_project(visible: Iterable[VisiblePipeline]) -> Mapping[Settings, Sequence[VisiblePipeline]]:
    """Each project may have a ledger of its own."""
    found: defaultdict[Settings, list[VisiblePipeline]] = defaultdict(list)
    for one in visible:
        found[one.settings].append(one)
    return found


def _of_ledger(
    visible: Sequence[VisiblePipeline], ledger: Ledger, session: Session
) -> tuple[list[PipelineRow], list[LeaseLine]]:
    names = [one.name for one in visible]
    runs, leases = ledger.pipelines.newest_runs(names, EACH), leases_seen(names, ledger)
    every = [run for some in runs.values() for run in some]
    states, dags = run_states([run.run_id for run in every], session), dags_now(names, session)
    at_work = frozenset(places_at_work(every, leases))
    facts = [
        PipelineFacts(one.pipeline, dags.get(one.name, UNKNOWN_DAG), runs.get(one.name, ()), states, at_work)
        for one in visible
    ]
    return _rows(facts, ledger), [lease_line(one) for one in leases]


def _rows(facts: Sequence[PipelineFacts], ledger: Ledger) -> list[PipelineRow]:
    """What is recorded is asked of the newest intervals alone."""
    marks = [interval_marks(one) for one in facts]
    places = [(one.pipeline.name, some[-1].interval if some else "") for one, some in zip(facts, marks, strict=True)]
    pipelines, now = {one.pipeline.name: one.pipeline for one in facts}, datetime.now(UTC)
    found = standings(pipelines, [place for place in places if place[1]], ledger)
    return [
        pipeline_row(one, some, together(found.get(place, {}).values()), now)
        for one, some, place in zip(facts, marks, places, strict=True)
    ]


MOST_LEASES = 200


def leases_seen(pipelines: Collection[str], ledger: Ledger) -> tuple[Lease, ...]:
    """Those of these pipelines that have not ended, and that of who cleans up; a lease's name begins with what it is
    of.
    """
    beginnings = [beginning for name in pipelines for beginning in (f"{name}/", f"{RESUME_OF}{name}/")]
    return ledger.leases.alive_among([MAINTENANCE], beginnings, MOST_LEASES)


def lease_line(lease: Lease) -> LeaseLine:
    pressed = lease.name.startswith(RESUME_OF)
    holder = Presser.described(lease.holder) if pressed else described(lease.holder)
    return LeaseLine(name=lease.name, holder=holder, epoch=lease.epoch, expires_at=lease.expires_at)


def places_at_work(runs: Collection[Run], leases: Collection[Lease]) -> Iterator[Place]:
    """Those of these runs' intervals that somebody works on."""
    for place in {(run.pipeline, run.interval) for run in runs}:
        if any(lease.name.startswith(region_lease(*place, "")) for lease in leases):
            yield place


def dags_now(dag_ids: Collection[str], session: Session) -> Mapping[str, DagNow]:
    counted = select(DagRun.dag_id, func.count()).where(DagRun.dag_id.in_(dag_ids))
    counted = counted.where(DagRun.state.in_(ACTIVE_RUN_STATES)).group_by(DagRun.dag_id)
    active = {dag_id: count for dag_id, count in session.execute(counted)}
    known = select(DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after)
    return {
        dag_id: DagNow(paused, due, active.get(dag_id, 0))
        for dag_id, paused, due in session.execute(known.where(DagModel.dag_id.in_(dag_ids)))
    }


def run_states(run_ids: Collection[str], session: Session) -> Mapping[str, str]:
    """By the ids that the ledger has; nothing of a run that Airflow does not know."""
    names = [tuple(run_id.split("/", 1)) for run_id in run_ids if "/" in run_id]
    known = select(DagRun.dag_id, DagRun.run_id, DagRun.state).where(tuple_(DagRun.dag_id, DagRun.run_id).in_(names))
    return {ledger_run_id(dag_id, run_id): str(state) for dag_id, run_id, state in session.execute(known)}


PACKAGES = ("stagehold", "apache-airflow", "pyspark", "delta-spark", "deltalake", "great-expectations")


@cache
def installed_versions() -> tuple[InstalledVersion, ...]:
    """Read from what was installed: nothing is imported."""
    return tuple(_installed())


def _installed() -> Iterator[InstalledVersion]:
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            yield InstalledVersion(package=package, version=version(package))


def stale_overview(visible: Iterable[VisiblePipeline]) -> StaleOverview:
    """Nothing of pipelines whose runs the reader may not see."""
    lines = tuple(_line(one) for one in visible if one.runs)
    return StaleOverview(planned=all(line.planned_at or line.problem for line in lines), pipelines=lines)


def _line(one: VisiblePipeline) -> PipelineStaleness:
    try:
        found = staleness(one.pipeline, server_ledger(one.settings), one.settings, MOST_MARKS)
    except StageholdError as error:  # of this pipeline alone
        return PipelineStaleness(name=one.name, planned_at=None, problem=str(error))
    return PipelineStaleness(
        name=one.name,
        planned_at=found.planned_at,
        looked_at=len(found.looked_at),
        stale=len(found.stale),
        unplanned=len(found.unplanned),
        first=_first(found),
    )


def _first(found: Staleness) -> FirstStale | None:
    if not found.stale:
        return None
    interval, stage = found.stale[0].interval, found.stale[0].stages[0]
    return FirstStale(interval=interval, stage=stage.stage, reason=stage.reason)
