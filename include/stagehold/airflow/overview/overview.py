"""All that the overview shows, put together from ledgers and Airflow: a few queries for all pipelines of a ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.looked import AS_RECORDED, Looked
from stagehold.airflow.answering.server import server_ledger
from stagehold.airflow.overview.airflow_now import dags_now, run_states
from stagehold.airflow.overview.leases import LeaseLine, lease_line, leases_seen, places_at_work
from stagehold.airflow.overview.pipeline_rows import (
    DagNow,
    PipelineFacts,
    PipelineRow,
    hidden_row,
    interval_marks,
    pipeline_row,
)
from stagehold.airflow.overview.versions import InstalledVersion, installed_versions
from stagehold.airflow.overview.visible import VisiblePipeline
from stagehold.ledger.ledger import Ledger
from stagehold.model.standing import together
from stagehold.run.intervals.interval_standings import standings
from stagehold.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

EACH = 40  # newest runs of a pipeline that are looked at
UNKNOWN_DAG = DagNow(paused=False, due=None, active=0)


@dataclass(frozen=True)
class Overview:
    pipelines: tuple[PipelineRow, ...]
    leases: tuple[LeaseLine, ...]
    versions: tuple[InstalledVersion, ...]
    looked: Looked = AS_RECORDED


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
