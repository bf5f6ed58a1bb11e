"""The runs of a backfill without Airflow: one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill
from stagehold.model.records import RunState
from stagehold.run.backfill.starting import restore_of
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome
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
    for one in backfill.intervals:
        run_id = run_id_of(backfill, one.interval)
        if _has_finished(run_id, ledger):
            yield IntervalOutcome(one.interval, run_id, finished_before=True)
            continue
        if stopped:
            yield IntervalOutcome(one.interval, run_id)
            continue
        ended = _run(backfill, one.interval, pipeline, work)
        stopped = ended.failure is not None and keeps_state(pipeline)
        yield ended


def run_id_of(backfill: Backfill, interval: str) -> str:
    return f"{backfill.pipeline}/backfill-{backfill.backfill_id}__{interval}"


def keeps_state(pipeline: Pipeline) -> bool:
    """Whether an interval goes on with what the one before it keeps, so that one has to follow the other."""
    return any(stage.state for stage in pipeline.stages)


def _run(backfill: Backfill, interval: str, pipeline: Pipeline, work: Work) -> IntervalOutcome:
    run_id = run_id_of(backfill, interval)
    restore = restore_of(backfill, interval, run_id)
    try:
        return IntervalOutcome(
            interval, run_id, work(RunRequest(pipeline, run_id, interval, dict(pipeline.params), restore))
        )
    except Exception as error:  # noqa: BLE001  # whatever a stage's function raises
        return IntervalOutcome(interval, run_id, failure=str(error) or type(error).__name__)


def _has_finished(run_id: str, ledger: Ledger) -> bool:
    try:
        return ledger.runs.get(run_id).state is RunState.FINISHED
    except UnknownName:
        return False
