"""The runs of a backfill: begun, run one after the other in this process, and listed.

What each run is told is kept, so that a retry, a clear or a resume does the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from uuid import uuid4

from stagehold.errors import BackfillChanged, BackfillRefused, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill, OrderedInterval
from stagehold.model.records import Restore, Run, RunState
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.plan.backfill.token import difference
from stagehold.run.backfill.backfill_planning import restore_ordered
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome
from stagehold.sources.attempt_sources import is_incremental
from stagehold.spec.pipeline import Pipeline

Work = Callable[[RunRequest], RegionOutcome]


@dataclass(frozen=True)
class IntervalOutcome:
    """How the run of an interval ended: with an outcome, or with why it failed; with neither it did not begin. Of one
    that had ``finished_before`` nothing is told.
    """

    interval: str
    run_id: str
    outcome: RegionOutcome | None = None
    failure: str | None = None
    finished_before: bool = False


def run_intervals(backfill: Backfill, pipeline: Pipeline, ledger: Ledger, work: Work) -> Iterator[IntervalOutcome]:
    """Run what is planned and not done yet. A failure stops nothing but the intervals that go on with what the failed
    one keeps. Whoever is interrupted may call this again.

    :param work: runs a request to its end.
    """
    stopped = False
    for interval in backfill.intervals:
        run_id = run_id_of(backfill, interval.interval)
        if has_finished(run_id, ledger):
            yield IntervalOutcome(interval.interval, run_id, finished_before=True)
            continue
        if stopped:
            yield IntervalOutcome(interval.interval, run_id)
            continue
        ended = _run(backfill, interval.interval, pipeline, work)
        stopped = ended.failure is not None and keeps_state(pipeline)
        yield ended


def run_id_of(backfill: Backfill, interval: str) -> str:
    return f"{backfill.pipeline}/backfill-{backfill.backfill_id}__{interval}"


def keeps_state(pipeline: Pipeline) -> bool:
    """Whether an interval goes on with what the one before it keeps, so that one has to follow the other."""
    return any(stage.state for stage in pipeline.stages)


def follow_each_other(pipeline: Pipeline) -> bool:
    """Whether an interval may depend on those before it: by what they keep, or what they took of a source."""
    return keeps_state(pipeline) or any(map(is_incremental, pipeline.stages))


def request_of(backfill: Backfill, interval: str, pipeline: Pipeline) -> RunRequest:
    run_id = run_id_of(backfill, interval)
    restore = restore_of(backfill, interval, run_id)
    return RunRequest(pipeline, run_id, interval, dict(pipeline.params), restore)


def _run(backfill: Backfill, interval: str, pipeline: Pipeline, work: Work) -> IntervalOutcome:
    request = request_of(backfill, interval, pipeline)
    try:
        return IntervalOutcome(interval, request.run_id, work(request))
    except Exception as error:  # noqa: BLE001  # whatever a stage's function raises
        return IntervalOutcome(interval, request.run_id, failure=str(error) or type(error).__name__)


def has_finished(run_id: str, ledger: Ledger) -> bool:
    try:
        return ledger.runs.get(run_id).state is RunState.FINISHED
    except UnknownName:
        return False


DIGITS = 10  # of an id


def begin_backfill(plan: BackfillPlan, token: str | None, asked_by: str, ledger: Ledger) -> Backfill:
    """Keep what was planned.

    :param token: of the plan that whoever asks was shown; None if that is this one.
    :raises BackfillChanged: something else would run than was shown.
    :raises BackfillRefused: nothing can be run.
    """
    changed = difference(token, plan.planned) if token else None
    if changed:
        raise BackfillChanged(plan.pipeline, changed)
    if plan.refusal:
        raise BackfillRefused(plan.pipeline, plan.refusal)
    backfill_id = uuid4().hex[:DIGITS]
    backfill = Backfill(
        backfill_id=backfill_id,
        pipeline=plan.pipeline,
        asked_by=asked_by,
        requested_at=datetime.now(UTC),
        choice=plan.choice,
        intervals=tuple(
            OrderedInterval(interval.interval, replace(interval.order, backfill=backfill_id))
            for interval in plan.ordered
        ),
        cells=plan.planned,
    )
    ledger.backfills.record(backfill)
    return backfill


def restore_of(backfill: Backfill, interval: str, run_id: str) -> Restore:
    """The request of a run of it, the same one each time."""
    asked = restore_ordered(run_id, backfill.order(interval), f"backfill {backfill.backfill_id}")
    return replace(asked, requested_at=backfill.requested_at)


NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class KnownBackfill:
    """``runs`` are those of its intervals that have begun, by interval, as they are recorded."""

    backfill: Backfill
    runs: Mapping[str, Run]

    @cached_property
    def states(self) -> Mapping[str, str]:
        """The state of each interval's run."""
        intervals = (interval.interval for interval in self.backfill.intervals)
        return {key: self.runs[key].state if key in self.runs else NOT_BEGUN for key in intervals}

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.states.values())

    @property
    def resume(self) -> str | None:
        """The command that goes on with it; None if it has finished, or if Airflow has its runs."""
        done = all(state == RunState.FINISHED for state in self.states.values())
        if done or any(run.launcher == "airflow" for run in self.runs.values()):
            return None
        return f"stagehold backfill {self.backfill.pipeline} --resume {self.backfill.backfill_id}"


def known_backfills(pipeline: str, ledger: Ledger, limit: int) -> tuple[KnownBackfill, ...]:
    """The newest first."""
    runs = ledger.restores.runs_of_backfills(pipeline)
    found = ledger.backfills.newest(pipeline, limit)
    return tuple(
        KnownBackfill(backfill, {run.interval: run for run in runs.get(backfill.backfill_id, ())}) for backfill in found
    )
