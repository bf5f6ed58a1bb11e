"""Intervals by stages: how each stands in the ledger. Pure: `pipeline_facts` reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from stagehold.airflow.pipeline_page.pipeline_facts import IntervalFacts
from stagehold.airflow.pipeline_page.pipeline_responses import (
    IntervalPage,
    IntervalPin,
    IntervalRow,
    MadeBy,
    NewestRun,
    StageCell,
    StageColumn,
    TryFailure,
)
from stagehold.airflow.run_page.run_responses import AttemptLoss
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.partitions import StateFigures
from stagehold.model.choices import Pin
from stagehold.model.standing import PartitionState, StageStanding, Standing
from stagehold.model.states import ATTEMPT
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.lost_attempts import works
from stagehold.spec.pipeline import Pipeline, Stage

MOST_RUNS = 3  # runs that are named where several made a stage's partitions


def interval_page(facts: IntervalFacts) -> IntervalPage:
    pipeline = facts.known.pipeline
    regions = _regions(pipeline)
    figures = _by_place(facts)
    return IntervalPage(
        dag_id=facts.known.place.dag_id,
        place=str(facts.known.place),
        places={name: str(place) for name, place in facts.known.places.items()},
        pipeline=pipeline.name,
        schedule=str(pipeline.starts) or None,
        total=facts.total,
        looks=facts.looks,
        stages=tuple(
            StageColumn(name=one.name, region=regions[one.name], gate=one.gate, stored=one.output.stored)
            for one in pipeline.stages
        ),
        intervals=tuple(_row(interval, facts, figures, regions) for interval in facts.intervals),
        following=facts.following,
    )


def _row(
    interval: str,
    facts: IntervalFacts,
    figures: Mapping[tuple[str, str], Sequence[StateFigures]],
    regions: Mapping[str, str],
) -> IntervalRow:
    run = _newest_run(interval, facts)
    tries = [one for one in facts.tries if run is not None and one.run_id == run.run_id]
    cells = []
    for stage in facts.known.pipeline.stages:
        own = [one for one in tries if one.region == regions[stage.name]]
        active = run is not None and run.active
        working = works(facts.known.pipeline.name, interval, own, facts.leases, active=active)
        cells.append(_cell(stage, interval, facts, figures.get((interval, stage.id), ()), own, run, active=working))
    return IntervalRow(
        interval=interval,
        looks=tuple(sorted(facts.looks_of[interval])),
        run=run,
        cells=tuple(cells),
        pin=_pin(facts.pins.get(interval)),
    )


def _pin(pin: Pin | None) -> IntervalPin | None:
    return IntervalPin(by=pin.said_by, at=pin.recorded_at, reason=pin.reason) if pin else None


def _cell(
    stage: Stage,
    interval: str,
    facts: IntervalFacts,
    figures: Sequence[StateFigures],
    tries: Sequence[LastTries],
    run: NewestRun | None,
    *,
    active: bool,
) -> StageCell:
    made_by: Counter[str] = Counter()
    for one in figures:
        made_by[one.run_id] += one.partitions
    computed = made_by[run.run_id] if run else 0
    found = facts.standings[interval].get(stage.id) or _along(figures)
    return StageCell(
        stage=stage.name,
        state=_state(found, tries, active=active),
        counts=found.counts,
        wanted=found.total if found.declared else None,
        computed=computed,
        reused=sum(made_by.values()) - computed,
        rows=sum(one.rows for one in figures),
        bytes=sum(one.bytes for one in figures),
        seconds=round(sum(one.seconds for one in figures), 1),
        recorded_at=max((one.recorded_at for one in figures), default=None),
        made_by=tuple(
            MadeBy(run_id=run_id, partitions=count) for run_id, count in made_by.most_common(MOST_RUNS) if count
        ),
        judged=sum(one.judged for one in figures),
        refused=sum(one.refused for one in figures),
        warned=facts.warned.get((interval, stage.id), 0),
        failures=tuple(_failures(tries, facts, active=active)),
    )


def _along(figures: Sequence[StateFigures]) -> Standing:
    """The standing of a stage that is computed along with its reader, unless a larger attempt failed and it was
    stored.
    """
    counts: Counter[PartitionState] = Counter()
    for one in figures:
        counts[one.state] += one.partitions
    return Standing.on_record(dict(counts))


def _state(standing: Standing, tries: Sequence[LastTries], *, active: bool) -> StageStanding:
    counts = standing.counts
    true = {
        StageStanding.RUNNING: active and any(not ATTEMPT.is_terminal(one.state) for one in tries),
        StageStanding.BLOCKED: bool(counts.get(PartitionState.BLOCKED)),
        StageStanding.FAILED: any(one.failed(active=active) for one in tries),
        StageStanding.HELD: bool(counts.get(PartitionState.HELD)),
        StageStanding.DAMAGED: bool(counts.get(PartitionState.DAMAGED)),
        StageStanding.MISSING: not standing.recorded,
        StageStanding.PARTIAL: standing.missing > 0,
        StageStanding.RELEASED: not counts.get(PartitionState.CONSUMABLE),
    }
    return next((state for state, is_so in true.items() if is_so), StageStanding.CONSUMABLE)


def _failures(tries: Sequence[LastTries], facts: IntervalFacts, *, active: bool) -> Iterator[TryFailure]:
    for one in tries:
        if one.failed(active=active):
            lost = AttemptLoss.of(facts.losses.get((one.run_id, one.region))) if one.may_be_lost else None
            yield TryFailure(tries=one.tries, cause=one.cause, failure=one.failure, lost=lost)


def _newest_run(interval: str, facts: IntervalFacts) -> NewestRun | None:
    run = facts.runs.get(interval)
    if run is None:
        return None
    return NewestRun(
        run_id=run.run_id,
        state=run.state,
        active=facts.known.goes_on(run),
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def _regions(pipeline: Pipeline) -> Mapping[str, str]:
    return {stage: region.name for region in stage_regions(pipeline) for stage in region.stages}


def _by_place(facts: IntervalFacts) -> Mapping[tuple[str, str], Sequence[StateFigures]]:
    found: dict[tuple[str, str], list[StateFigures]] = {}
    for one in facts.figures:
        found.setdefault((one.interval, one.stage), []).append(one)
    return found
