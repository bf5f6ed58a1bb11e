"""How each interval of a pipeline stands, as far as the ledger alone can tell it quickly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import StateFigures
from stagehold.model.choices import Pin
from stagehold.model.records import AttemptState, Run
from stagehold.model.standing import IntervalState, PartitionState, Standing, together
from stagehold.plan.split.partition_counts import declared_stages, with_counts
from stagehold.spec.pipeline import Pipeline

Standings = Mapping[str, Standing]  # by stage id, of all stages that are stored


@dataclass(frozen=True)
class KnownStage:
    """The records of a stage in an interval: of its ``total`` partitions so many are ``consumable`` or, for an inner
    stage, were ``released``. ``rows`` and ``seconds`` are those of all partitions on record, whether they can be read
    or not.
    """

    stage: str
    consumable: int
    released: int
    total: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class KnownInterval:
    """``run`` is the newest run; data that was taken over from elsewhere has none in the ledger. ``pin`` keeps its
    outputs, if it is pinned.
    """

    interval: str
    state: IntervalState
    standing: str
    stages: tuple[KnownStage, ...]
    recorded_at: datetime
    run: Run | None
    pin: Pin | None


def standings(
    pipelines: Mapping[str, Pipeline], places: Collection[Place], ledger: Ledger
) -> Mapping[Place, Standings]:
    """How the stages stand at each place, by three queries however many places there are. They count what each pipeline
    declares now, with the numbers of partitions that were decided for the interval.

    :param pipelines: pipelines of the places, by name.
    """
    decided = ledger.pipelines.decided(places)
    declared = {place: declared_stages(with_counts(pipelines[place[0]], decided.get(place, {}))) for place in places}
    below = {
        place: {stage.stage: stage.partitions for stage in stages if stage.partitions is not None}
        for place, stages in declared.items()
    }
    counts = ledger.pipelines.counts(places, below)
    return {
        place: {stage.stage: Standing.of(stage, counts.get(place, {}).get(stage.stage, {})) for stage in stages}
        for place, stages in declared.items()
    }


def stage_standings(pipeline: Pipeline, interval: str, ledger: Ledger) -> Standings:
    """How the stages of one interval stand."""
    place = (pipeline.name, interval)
    return standings({pipeline.name: pipeline}, [place], ledger)[place]


def states_in_run(pipeline: Pipeline, run_id: str, interval: str, ledger: Ledger) -> Mapping[str, AttemptState]:
    """What each stage, by its id, is in a run now, in one word."""
    from stagehold.plan.split.stage_states import stage_states  # which plans do not ask for
    from stagehold.run.lease.lost_attempts import losses

    place, attempts = (pipeline.name, interval), ledger.attempts.of_run(run_id)
    counted = with_counts(pipeline, ledger.pipelines.decided([place]).get(place, {})).pipeline
    return stage_states(counted, run_id, attempts, ledger.partitions.newest_of(*place), losses(attempts, ledger))


def standing_on_record(pipeline: str, interval: str, ledger: Ledger) -> Standing:
    """The standing of an interval whose pipeline cannot be loaded."""
    counts: Counter[PartitionState] = Counter()
    for states in ledger.partitions.counts(pipeline, interval).values():
        counts.update(states)
    return Standing.on_record(dict(counts))


def known_intervals(pipeline: Pipeline, ledger: Ledger, limit: int | None) -> tuple[KnownInterval, ...]:
    """The intervals on record, the last worked on first."""
    keys = ledger.partitions.intervals(pipeline.name, limit)
    figures, runs = ledger.partitions.figures(pipeline.name, keys), ledger.runs.newest_of_intervals(pipeline.name)
    newest = {run.interval: run for run in runs}
    found = standings({pipeline.name: pipeline}, [(pipeline.name, key) for key in keys], ledger)
    pins = ledger.pins.holding(pipeline.name, keys)
    return tuple(
        _known(
            pipeline,
            key,
            found[pipeline.name, key],
            [figure for figure in figures if figure.interval == key],
            newest.get(key),
            pins.get(key),
        )
        for key in keys
    )


def _known(
    pipeline: Pipeline,
    interval: str,
    stages: Standings,
    figures: Sequence[StateFigures],
    run: Run | None,
    pin: Pin | None,
) -> KnownInterval:
    standing, last = together(stages.values()), max(figure.recorded_at for figure in figures)
    known = tuple(_stages(pipeline, stages, figures))
    return KnownInterval(interval, standing.state, str(standing), known, last, run, pin)


def _stages(pipeline: Pipeline, stages: Standings, figures: Sequence[StateFigures]) -> Iterator[KnownStage]:
    for stage in pipeline.stages:
        if stage.id in stages:
            standing, own = stages[stage.id], [figure for figure in figures if figure.stage == stage.id]
            yield KnownStage(
                stage=stage.name,
                consumable=standing.consumable,
                released=standing.released,
                total=standing.total,
                rows=sum(figure.rows for figure in own),
                seconds=sum(figure.seconds for figure in own),
            )
