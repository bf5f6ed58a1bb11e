"""Puts together all that the overview shows, from ledgers and Airflow, by a few queries for all pipelines of a
ledger.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun
from sqlalchemy import func, select

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.answering.kept_standings import batched, kept_standings
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.dag.region_operator import TAG
from stagehold.airflow.overview.overview_responses import (
    FirstStale,
    InstalledVersion,
    LeaseLine,
    Overview,
    PipelineKind,
    PipelineRow,
    PipelineStaleness,
    StaleOverview,
)
from stagehold.airflow.overview.pipeline_choice import PipelineBrief, Wanted
from stagehold.airflow.overview.pipeline_rows import (
    MOST_MARKS,
    DagNow,
    PipelineFacts,
    hidden_brief,
    hidden_row,
    is_late,
    pipeline_brief,
    pipeline_row,
    run_word,
    shown_runs,
)
from stagehold.airflow.overview.visible_pipelines import VisiblePipeline
from stagehold.airflow.pipeline_page.interval_staleness import staleness
from stagehold.airflow.pipeline_page.pipeline_responses import Staleness
from stagehold.airflow.run_page.resume_lease import Presser
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.errors.base import StageholdError
from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.leases import region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import Shelf
from stagehold.model.keys.compute_key import SPARK
from stagehold.model.records import Lease, Run
from stagehold.model.standing import Standing, together
from stagehold.model.states import RUN
from stagehold.run.clearing.garbage_collector import MAINTENANCE
from stagehold.run.lease.held_leases import RESUME_OF
from stagehold.run.lease.lease_holder import described
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from stagehold.airflow.overview.visible_pipelines import VisiblePipeline

Stamp = frozenset[tuple[object, ...]]
UNKNOWN_DAG = DagNow(paused=False, due=None, active=0)


def overview(visible: Sequence[VisiblePipeline], wanted: Wanted, me: str, session: Session) -> Overview:
    """The overview. Of pipelines whose runs the reader may not see, it shows only that they exist. For all pipelines
    only those facts are read that decide about their places; for those on the page, all facts.
    """
    now, dags = datetime.now(UTC), dags_now({listed.place.dag_id for listed in visible}, session)
    hidden = {
        listed.name: (listed.pipeline, dags.get(listed.place.dag_id, UNKNOWN_DAG), listed.place)
        for listed in visible
        if not listed.runs
    }
    known = [
        _of_ledger(theirs, dags, server_ledger(settings), session)
        for settings, theirs in by_project(listed for listed in visible if listed.runs).items()
    ]
    briefs = [hidden_brief(pipeline, dag) for pipeline, dag, _ in hidden.values()]
    briefs += [_brief(facts, now, ledger) for ledger, each, _ in known for facts in each]
    kinds = {brief.name: {*brief.kinds} for brief in briefs}
    if wanted.kind is PipelineKind.STALE:
        for line in stale_overview(visible).pipelines:
            kinds[line.name] |= {PipelineKind.STALE} if line.stale else set()
    among = wanted.among(briefs)
    chosen = [brief for brief in among if wanted.kind is None or wanted.kind in kinds[brief.name]]
    page = [brief.name for brief in wanted.page(chosen)]
    rows = {name: hidden_row(*hidden[name]) for name in page if name in hidden}
    rows |= {row.name: row for ledger, facts, _ in known for row in _rows(facts, ledger, page, now)}
    return Overview(
        total=len(briefs),
        found=len(chosen),
        kinds=Counter(kind for brief in among for kind in sorted(kinds[brief.name])),
        tags=tuple(sorted({tag for brief in briefs for tag in brief.tags})),
        owners=tuple(sorted({owner for brief in briefs for owner in brief.owners})),
        me=me,
        pipelines=tuple(rows[name] for name in page),
        leases=tuple(
            dict.fromkeys(sorted((line for *_, lines in known for line in lines), key=lambda line: line.name))
        ),
        versions=installed_versions(),
    )


def by_project(visible: Iterable[VisiblePipeline]) -> Mapping[Settings, Sequence[VisiblePipeline]]:
    """Each project may have a ledger of its own."""
    found: defaultdict[Settings, list[VisiblePipeline]] = defaultdict(list)
    for listed in visible:
        found[listed.settings].append(listed)
    return found


# A ledger, the facts of its pipelines, and its leases.
_KnownPipelines = tuple[Ledger, Sequence[PipelineFacts], Sequence[LeaseLine]]


def _of_ledger(
    visible: Sequence[VisiblePipeline], dags: Mapping[str, DagNow], ledger: Ledger, session: Session
) -> _KnownPipelines:
    names = [listed.name for listed in visible]
    newest, leases = newest_intervals(visible, ledger), leases_seen(visible, ledger)
    states = run_states(newest, session)
    at_work = _by_pipeline(places_at_work([run for found in newest.values() for run in found.runs], leases))
    waived = _by_pipeline(ledger.waivers.waived_places(names, datetime.now(UTC)))
    facts = [
        PipelineFacts(
            pipeline=listed.pipeline,
            place=listed.place,
            dag=dags.get(listed.place.dag_id, UNKNOWN_DAG),
            runs=newest[listed.name].runs,
            shown=newest[listed.name].shown,
            states=states[listed.name],
            at_work=at_work.get(listed.name, frozenset()),
            standings=newest[listed.name].standings,
            waived=waived.get(listed.name, frozenset()),
        )
        for listed in visible
    ]
    return ledger, facts, [lease_line(lease) for lease in leases]


def _by_pipeline(places: Iterable[Place]) -> Mapping[str, frozenset[Place]]:
    found: defaultdict[str, set[Place]] = defaultdict(set)
    for place in places:
        found[place[0]].add(place)
    return {pipeline: frozenset(own) for pipeline, own in found.items()}


# A brief, with the objects that it follows from, which are kept as well, and with the other facts.
_BRIEFS = Shelf[tuple[PipelineBrief, tuple[object, ...], tuple[object, ...]]]("pipelines in brief")


def _brief(facts: PipelineFacts, now: datetime, ledger: Ledger) -> PipelineBrief:
    """The brief of a pipeline. It is kept as long as nothing that it follows from has changed."""
    kept = _BRIEFS.get((ledger.name, facts.pipeline.name))
    same = (facts.pipeline, facts.shown, facts.states, facts.standings)
    equal = (facts.dag, is_late(facts.dag, now), facts.at_work, facts.waived)
    if kept and kept[2] == equal and all(before is after for before, after in zip(kept[1], same, strict=True)):
        return kept[0]
    made = pipeline_brief(facts, now)
    _BRIEFS.put((ledger.name, facts.pipeline.name), (made, same, equal), own=made)
    return made


def _rows(
    known: Sequence[PipelineFacts], ledger: Ledger, page: Collection[str], now: datetime
) -> Iterator[PipelineRow]:
    """The rows of the pipelines that are on the page."""
    shown = [facts for facts in known if facts.pipeline.name in page]
    failures = _failures(shown, ledger)
    return (pipeline_row(replace(facts, failures=failures), now) for facts in shown)


@dataclass(frozen=True)
class NewestIntervals:
    """The newest runs of a pipeline, the newest first; those of them that are shown; and how their intervals stand."""

    pipeline: Pipeline
    place: DagPlace
    runs: Sequence[Run]
    shown: Sequence[Run]
    standings: Mapping[str, Standing]

    @cached_property
    def in_airflow(self) -> Mapping[str, str]:
        """The runs whose state is asked of Airflow, by their ids there: those of this place that are shown, and others
        that may go on.
        """
        going_on = (run for run in self.runs if not RUN.is_terminal(run.state))
        known = (DagPlace.of_run(run.run_id) for run in (*self.shown, *going_on))
        return {run_id: place.run(run_id) for place, run_id in known if place == self.place}


_NEWEST = Shelf[NewestIntervals]("newest intervals")


def newest_intervals(visible: Sequence[VisiblePipeline], ledger: Ledger) -> Mapping[str, NewestIntervals]:
    """The newest intervals, by pipeline. They are kept as long as the pipeline's runs are kept, which are read anew
    whenever the ledger has written anything about the pipeline.
    """
    runs = kept_standings(ledger).newest_runs([listed.name for listed in visible])
    found = {listed.name: _NEWEST.get((ledger.name, listed.name)) for listed in visible}
    current = {
        listed.name: kept
        for listed in visible
        if (kept := found[listed.name])
        and kept.runs is runs[listed.name]
        and (kept.pipeline is listed.pipeline and kept.place == listed.place)
    }
    missing = [listed for listed in visible if listed.name not in current]
    return {**current, **_read_newest(missing, runs, ledger)}


def _read_newest(
    visible: Sequence[VisiblePipeline], runs: Mapping[str, Sequence[Run]], ledger: Ledger
) -> Mapping[str, NewestIntervals]:
    shown = {listed.name: shown_runs(runs[listed.name]) for listed in visible}
    places = [(run.pipeline, run.interval) for newest in shown.values() for run in newest]
    by_place = kept_standings(ledger).of(places, {listed.name: listed.pipeline for listed in visible})
    found: dict[str, NewestIntervals] = {}
    for listed in visible:
        name = listed.name
        standings = {run.interval: together(by_place[name, run.interval].values()) for run in shown[name]}
        found[name] = NewestIntervals(listed.pipeline, listed.place, runs[name], shown[name], standings)
        _NEWEST.put((ledger.name, name), found[name], own=standings)
    return found


def _failures(facts: Sequence[PipelineFacts], ledger: Ledger) -> Mapping[str, str]:
    """Why runs did not end well, by run. A run whose processes died has no reason on record, and is left out."""
    ended = [run.run_id for known in facts for run in known.shown if run_word(run, known).ended_badly]
    tries = [tried for run_ids in batched(ended) for tried in ledger.intervals.last_tries(run_ids)]
    return {tried.run_id: f"{tried.region}: {tried.failure}" for tried in tries if tried.failure}


MOST_LEASES = 200


def leases_seen(visible: Iterable[VisiblePipeline], ledger: Ledger) -> tuple[Lease, ...]:
    """Leases that are held for these pipelines, and the lease of the clean-up. The name of a lease begins with its
    pipeline.
    """
    beginnings = [beginning for one in visible for beginning in (f"{one.name}/", f"{RESUME_OF}{one.place}/")]
    return ledger.leases.alive_among([MAINTENANCE], beginnings, MOST_LEASES)


def lease_line(lease: Lease) -> LeaseLine:
    pressed = lease.name.startswith(RESUME_OF)
    holder = Presser.described(lease.holder) if pressed else described(lease.holder)
    return LeaseLine(name=lease.name, holder=holder, epoch=lease.epoch, expires_at=lease.expires_at)


def places_at_work(runs: Collection[Run], leases: Collection[Lease]) -> Iterator[Place]:
    """The intervals of these runs that somebody works on."""
    held = {lease.name[: place + 1] for lease in leases for place, letter in enumerate(lease.name) if letter == "/"}
    for place in {(run.pipeline, run.interval) for run in runs} if held else ():
        if region_lease(*place, "") in held:
            yield place


def dags_now(dag_ids: Collection[str], session: Session) -> Mapping[str, DagNow]:
    counted = select(DagRun.dag_id, func.count()).where(DagRun.dag_id.in_(dag_ids))
    counted = counted.where(DagRun.state.in_(ACTIVE_RUN_STATES)).group_by(DagRun.dag_id)
    active = {dag_id: count for dag_id, count in session.execute(counted)}
    tags: defaultdict[str, list[str]] = defaultdict(list)
    tagged = select(DagTag.dag_id, DagTag.name).where(DagTag.dag_id.in_(dag_ids), DagTag.name != TAG)
    for dag_id, tag in session.execute(tagged.order_by(DagTag.name)):
        tags[dag_id].append(tag)
    known = select(DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after, DagModel.owners)
    return {
        dag_id: DagNow(paused, due, active.get(dag_id, 0), tuple(tags[dag_id]), _owners(owners))
        for dag_id, paused, due, owners in session.execute(known.where(DagModel.dag_id.in_(dag_ids)))
    }


def _owners(owners: str | None) -> tuple[str, ...]:
    """Airflow keeps them in one text."""
    return tuple(sorted(owner.strip() for owner in (owners or "").split(",") if owner.strip()))


# Airflow's states of a pipeline's runs, with the ids that were asked for, and the stamp of these runs at that moment.
_STATES = Shelf[tuple[Mapping[str, str], Mapping[str, str], Stamp]]("states of runs")


def run_states(newest: Mapping[str, NewestIntervals], session: Session) -> Mapping[str, Mapping[str, str]]:
    """Airflow's states by pipeline and the ledger's ids of runs; runs that Airflow does not know are left out. They are
    kept as long as Airflow has not changed any of these runs.
    """
    asked = {name: found.in_airflow for name, found in newest.items()}
    dags = {name: found.place.dag_id for name, found in newest.items()}
    stamps = _stamps(asked, dags, session)
    kept = {name: _STATES.get(name) for name in asked}
    known = {name: of[1] for name, of in kept.items() if of and of[0] is asked[name] and of[2] == stamps[name]}
    missing = {name: ids for name, ids in asked.items() if name not in known}
    read = _read_states(missing, dags, session)
    for name, states in read.items():
        _STATES.put(name, (asked[name], states, stamps[name]), own=states)
    return {**known, **read}


def _stamps(asked: Mapping[str, Mapping[str, str]], dags: Mapping[str, str], session: Session) -> Mapping[str, Stamp]:
    """By pipeline, how many of its runs are in each state, and when one of them was changed last: a fraction of what it
    costs to read them. Runs of one moment have the same id in all DAGs, so there are far fewer ids than runs.
    """
    found: dict[str, set[tuple[object, ...]]] = {dags[name]: set() for name in asked}
    facts = select(DagRun.dag_id, DagRun.state, func.count(), func.max(DagRun.updated_at))
    of_dags = facts.where(DagRun.dag_id.in_(found)).group_by(DagRun.dag_id, DagRun.state)
    for number, run_ids in enumerate(batched(sorted(set[str]().union(*asked.values())))):
        for dag_id, *facts_of_it in session.execute(of_dags.where(DagRun.run_id.in_(run_ids))):
            found[dag_id].add((number, *facts_of_it))
    return {name: frozenset(found[dags[name]]) for name in asked}


def _read_states(
    asked: Mapping[str, Mapping[str, str]], dags: Mapping[str, str], session: Session
) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {name: {} for name in asked}
    of_dag: defaultdict[str, list[str]] = defaultdict(list)
    for name in asked:
        of_dag[dags[name]].append(name)
    of_dags = select(DagRun.dag_id, DagRun.run_id, DagRun.state).where(DagRun.dag_id.in_(of_dag))
    for run_ids in batched(sorted(set[str]().union(*asked.values()))):
        for dag_id, run_id, state in session.execute(of_dags.where(DagRun.run_id.in_(run_ids))):
            for name in of_dag[dag_id]:
                if run_id in asked[name]:
                    found[name][asked[name][run_id]] = str(state)
    return found


PACKAGES = ("stagehold", "apache-airflow", *SPARK, "delta-spark", "deltalake", "great-expectations")


@cache
def installed_versions() -> tuple[InstalledVersion, ...]:
    """Versions of installed packages, from their metadata: nothing is imported."""
    return tuple(_installed())


def _installed() -> Iterator[InstalledVersion]:
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            yield InstalledVersion(package=package, version=version(package))


def stale_overview(visible: Iterable[VisiblePipeline]) -> StaleOverview:
    """How stale each pipeline is. Pipelines whose runs the reader may not see are left out."""
    lines = tuple(_line(listed) for listed in visible if listed.runs)
    return StaleOverview(planned=all(line.planned_at or line.problem for line in lines), pipelines=lines)


def _line(listed: VisiblePipeline) -> PipelineStaleness:
    try:
        found = staleness(listed.pipeline, server_ledger(listed.settings), listed.settings, MOST_MARKS)
    except StageholdError as error:  # of this pipeline alone
        return PipelineStaleness(name=listed.name, planned_at=None, problem=str(error))
    return PipelineStaleness(
        name=listed.name,
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
