"""What each run of a pipeline did about each stage: what it computed, healed, judged, reused or found released, what is
blocked or missing since, and the time that was spent and saved. It reads the ledger alone, by a few queries for each
page however many stages and partitions there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagehold.errors.request_errors import UnknownName
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.across.run_outcomes import LeftBehind, OwnWork, StageOfRun
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState
from stagehold.model.standing import PartitionState, StageOutcome
from stagehold.model.states import ATTEMPT
from stagehold.plan.split.partition_counts import declared_stages, with_counts
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.lost_attempts import Loss, region_losses, works
from stagehold.spec.pipeline import Pipeline, Stage

MOST_LOOKED_AT = 400  # runs for one page, however few of them match
MOST_LEASES = 10_000
NOTHING = OwnWork(0, 0, 0, 0, 0.0, 0.0)
_KEPT_BACK = {
    PartitionState.BLOCKED: StageOutcome.BLOCKED,
    PartitionState.HELD: StageOutcome.HELD,
    PartitionState.DAMAGED: StageOutcome.DAMAGED,
}


@dataclass(frozen=True)
class StageSquare:
    """What a run did about a stage, by its name. ``counts`` are partitions by outcome: a healed partition counts as
    computed, too, and one may be both computed and blocked. ``attempts`` are those of its region. ``seconds`` is the
    work of this run, ``spared`` the work of earlier runs that it reused. ``lost`` says who noticed, and when, that its
    last attempt was lost.
    """

    stage: str
    outcome: StageOutcome
    counts: Mapping[StageOutcome, int]
    attempts: int
    seconds: float
    spared: float
    cause: str | None = None
    failure: str | None = None
    lost: Loss | None = None

    def has(self, outcome: StageOutcome) -> bool:
        return self.outcome is outcome or self.counts.get(outcome, 0) > 0


@dataclass(frozen=True)
class RunLine:
    run: Run
    active: bool
    squares: tuple[StageSquare, ...]

    @property
    def spared(self) -> float:
        """Seconds of work that it did not do again."""
        return sum(square.spared for square in self.squares)


@dataclass(frozen=True)
class RunsAsked:
    """The runs that a caller asks for: the last ones, or those that began before one. A stage, or ``stage``, has to
    have the ``outcome``. At most ``most`` runs are looked at for a page.
    """

    limit: int
    before: str | None = None
    outcome: StageOutcome | None = None
    stage: str | None = None
    most: int = MOST_LOOKED_AT

    def takes(self, line: RunLine) -> bool:
        if self.outcome is None:
            return True
        squares = (square for square in line.squares if self.stage in (None, square.stage))
        return any(square.has(self.outcome) for square in squares)


@dataclass(frozen=True)
class RunMatrix:
    """Runs, the last first; those behind ``following`` come next. ``looked_at`` runs were looked at for them."""

    lines: tuple[RunLine, ...]
    following: str | None
    looked_at: int


def run_matrix(
    pipeline: Pipeline,
    ledger: Ledger,
    asked: RunsAsked,
    goes_on: Callable[[Run], bool],
    reaches: Callable[[str], bool] | None = None,
) -> RunMatrix:
    """The matrix of the runs that are asked for.

    :param goes_on: whether a run is at work.
    :param reaches: whether an interval is meant; all of them are without it.
    :raises UnknownName: the pipeline has no such stage, or the ledger no such run.
    """
    names = [stage.name for stage in pipeline.stages]
    if asked.stage is not None and asked.stage not in names:
        raise UnknownName(f"stage of {pipeline.name}", asked.stage, names)
    last = _run_named(asked.before, pipeline, ledger)
    found: list[RunLine] = []
    looked_at = 0
    while looked_at < asked.most:
        batch = ledger.runs.before(pipeline.name, last, asked.limit)
        wanted = [run for run in batch if reaches is None or reaches(run.interval)]
        lines = {line.run.run_id: line for line in _lines(pipeline, wanted, ledger, goes_on)}
        for run in batch:
            last, looked_at = run, looked_at + 1
            if run.run_id in lines and asked.takes(lines[run.run_id]):
                found.append(lines[run.run_id])
            if len(found) == asked.limit:
                more = ledger.runs.before(pipeline.name, last, 1)
                return RunMatrix(tuple(found), last.run_id if more else None, looked_at)
        if len(batch) < asked.limit:
            return RunMatrix(tuple(found), None, looked_at)
    return RunMatrix(tuple(found), last.run_id if last else None, looked_at)


def _run_named(run_id: str | None, pipeline: Pipeline, ledger: Ledger) -> Run | None:
    if run_id is None:
        return None
    run = ledger.runs.get(run_id)
    if run.pipeline != pipeline.name:
        some = ledger.runs.before(pipeline.name, None, 10)
        raise UnknownName(f"run of {pipeline.name}", run_id, [other.run_id for other in some])
    return run


@dataclass(frozen=True)
class _Facts:
    """The ledger's facts about some runs, by run and stage id or region."""

    pipeline: Pipeline
    work: Mapping[StageOfRun, OwnWork]
    left: Mapping[StageOfRun, Sequence[LeftBehind]]
    last_tries: Sequence[LastTries]
    tries: Mapping[tuple[str, str], int]
    wanted: Mapping[tuple[str, str], int | None]  # partitions by interval and stage id
    leases: Collection[str]
    losses: Mapping[tuple[str, str], Loss]


def _lines(
    pipeline: Pipeline, runs: Sequence[Run], ledger: Ledger, goes_on: Callable[[Run], bool]
) -> Iterator[RunLine]:
    if not runs:
        return
    active = {run.run_id for run in runs if goes_on(run)}
    facts = _read(pipeline, runs, ledger, active)
    regions = {stage: region.name for region in stage_regions(pipeline) for stage in region.stages}
    for run in runs:
        going = run.run_id in active
        squares = (_square(stage, regions[stage.name], run, facts, active=going) for stage in pipeline.stages)
        yield RunLine(run, going, tuple(squares))


def _read(pipeline: Pipeline, runs: Sequence[Run], ledger: Ledger, active: Collection[str]) -> _Facts:
    ids = [run.run_id for run in runs]
    places = {(pipeline.name, run.interval) for run in runs}
    decided = ledger.pipelines.decided(places)
    alive = ledger.leases.alive_among((), [f"{pipeline.name}/"], MOST_LEASES) if active else ()
    last_tries = ledger.intervals.last_tries(ids)
    return _Facts(
        pipeline=pipeline,
        work=ledger.run_outcomes.own_work(ids),
        left=ledger.run_outcomes.left_behind(ids, active),
        last_tries=last_tries,
        tries=ledger.run_outcomes.tries(ids),
        wanted={
            (place[1], declared.stage): declared.partitions
            for place in places
            for declared in declared_stages(with_counts(pipeline, decided.get(place, {})))
        },
        leases=frozenset(lease.name for lease in alive),
        losses=region_losses(last_tries, ledger),
    )


def _square(stage: Stage, region: str, run: Run, facts: _Facts, *, active: bool) -> StageSquare:
    tries = [tried for tried in facts.last_tries if (tried.run_id, tried.region) == (run.run_id, region)]
    work, left = facts.work.get((run.run_id, stage.id), NOTHING), facts.left.get((run.run_id, stage.id), ())
    working = works(facts.pipeline.name, run.interval, tries, facts.leases, active=active)
    wanted = facts.wanted.get((run.interval, stage.id))
    # A run that finished had all that was declared then.
    recorded = sum(found.partitions for found in left)
    lacking = 0 if run.state is RunState.FINISHED or not left else (wanted or 0) - recorded
    counts = _counts(work, left, max(0, lacking))
    kept_back = any(outcome in counts for outcome in _KEPT_BACK.values())
    unmade = stage.output.stored and (not left or lacking > 0 or kept_back)
    failed = [tried for tried in tries if tried.failed(active=working)] if unmade or not stage.output.stored else []
    reused = sum(found.seconds for found in left if not found.own and found.state is PartitionState.CONSUMABLE)
    return StageSquare(
        stage=stage.name,
        outcome=_outcome(counts, running=working and any(_at_work(tried) for tried in tries), failed=bool(failed)),
        counts=counts,
        attempts=facts.tries.get((run.run_id, region), 0),
        seconds=round(work.seconds, 1),
        spared=round(work.spared + reused, 1),
        cause=failed[0].cause if failed else None,
        failure=failed[0].failure if failed else None,
        lost=facts.losses.get((run.run_id, region)) if failed and failed[0].may_be_lost else None,
    )


def _at_work(tries: LastTries) -> bool:
    return not ATTEMPT.is_terminal(tries.state)


def _counts(work: OwnWork, left: Sequence[LeftBehind], lacking: int) -> Mapping[StageOutcome, int]:
    counts: Counter[StageOutcome] = Counter()
    for found in left:
        if found.state in _KEPT_BACK:
            counts[_KEPT_BACK[found.state]] += found.partitions
        elif not found.own:
            released = found.state is PartitionState.RELEASED
            counts[StageOutcome.RELEASED if released else StageOutcome.REUSED] += found.partitions
    counts[StageOutcome.RAN] = work.computed
    counts[StageOutcome.HEALED] = work.healed
    counts[StageOutcome.JUDGED] = work.judged
    counts[StageOutcome.REUSED] += work.restored
    counts[StageOutcome.MISSING] = lacking
    return {outcome: counts[outcome] for outcome in StageOutcome if counts[outcome]}


def _outcome(counts: Mapping[StageOutcome, int], *, running: bool, failed: bool) -> StageOutcome:
    true = {**counts, StageOutcome.RUNNING: running, StageOutcome.FAILED: failed}
    return next((outcome for outcome in StageOutcome if true.get(outcome)), StageOutcome.NONE)
