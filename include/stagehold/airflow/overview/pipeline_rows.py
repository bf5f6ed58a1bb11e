"""How a pipeline stands, from what ledger and Airflow say of its runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from stagehold.airflow.overview.overview_responses import IntervalMark, NewestInterval, PipelineRow
from stagehold.ledger.across.pipelines import Place
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Run, RunState
from stagehold.model.standing import IntervalState, PipelineStanding, RunWord, Standing
from stagehold.spec.pipeline import Pipeline

MOST_MARKS = 14  # intervals that are shown
LATE = timedelta(minutes=5)  # a scheduler that starts a run later than this is behind
BY_AIRFLOW = "airflow"  # the launcher of a run that Airflow knows


@dataclass(frozen=True)
class DagNow:
    """What Airflow says of a DAG. ``due`` is when it is to start the next scheduled run, None without a schedule;
    ``active`` runs wait or go on.
    """

    paused: bool
    due: datetime | None
    active: int


ACTIVE = (RunWord.QUEUED, RunWord.RUNNING)
ENDED_BADLY = (RunWord.FAILED, RunWord.CANCELED, RunWord.SUSPENDED, RunWord.SILENT)
_OF_THE_LEDGER = {
    RunState.FINISHED: RunWord.SUCCESS,
    RunState.FAILED: RunWord.FAILED,
    RunState.CANCELED: RunWord.CANCELED,
    RunState.SUSPENDED: RunWord.SUSPENDED,
}
_OF_AIRFLOW = {"queued": RunWord.QUEUED, "running": RunWord.RUNNING, "success": RunWord.SUCCESS}


@dataclass(frozen=True)
class PipelineFacts:
    """``runs`` are the newest ones, the newest first; ``states`` Airflow's words for those that it knows. ``at_work``
    are the places, pipeline and interval, that somebody has a lease of.
    """

    pipeline: Pipeline
    dag: DagNow
    runs: Sequence[Run]
    states: Mapping[str, str]
    at_work: Collection[Place]


def hidden_row(pipeline: Pipeline) -> PipelineRow:
    """For who may see the DAG alone."""
    return PipelineRow(
        name=pipeline.name,
        schedule=pipeline.schedule,
        paused=False,
        standing=PipelineStanding.HIDDEN,
        active=0,
        due=None,
        newest=None,
        marks=(),
    )


def pipeline_row(
    facts: PipelineFacts, marks: tuple[IntervalMark, ...], standing: Standing, now: datetime
) -> PipelineRow:
    """:param standing: that of the newest interval, which is that of the last mark."""
    newest = _newest(marks[-1], standing) if marks else None
    by_command = sum(one.word in ACTIVE for one in _by_command(facts))
    active = facts.dag.active + by_command
    late = _is_late(facts.dag, now)
    return PipelineRow(
        name=facts.pipeline.name,
        schedule=facts.pipeline.schedule,
        paused=facts.dag.paused,
        standing=PipelineStanding.RUNNING if active else _resting(newest, late=late),
        active=active,
        due=facts.dag.due if late else None,
        newest=newest,
        marks=marks,
    )


def interval_marks(facts: PipelineFacts) -> tuple[IntervalMark, ...]:
    """Of the newest intervals, the oldest first; what is no date has its place by when its run began."""
    newest = {run.interval: run for run in reversed(facts.runs)}
    schedule = facts.pipeline.schedule
    placed = sorted((moment_of(key, schedule) or run.started_at, key) for key, run in newest.items())
    return tuple(_mark(newest[key], facts) for _, key in placed[-MOST_MARKS:])


def _mark(run: Run, facts: PipelineFacts) -> IntervalMark:
    return IntervalMark(
        interval=run.interval,
        word=run_word(run, facts),
        run_id=run.run_id,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def run_word(run: Run, facts: PipelineFacts) -> RunWord:
    if run.launcher == BY_AIRFLOW and run.run_id in facts.states:
        return _OF_AIRFLOW.get(facts.states[run.run_id], RunWord.FAILED)
    if run.state in _OF_THE_LEDGER:
        return _OF_THE_LEDGER[run.state]
    return RunWord.RUNNING if (run.pipeline, run.interval) in facts.at_work else RunWord.SILENT


def _by_command(facts: PipelineFacts) -> Sequence[IntervalMark]:
    """Those of Airflow are counted by Airflow, queued ones that the ledger has not heard of among them."""
    return [_mark(run, facts) for run in facts.runs if run.run_id not in facts.states]


def _newest(mark: IntervalMark, standing: Standing) -> NewestInterval:
    return NewestInterval(
        mark=mark,
        state=standing.state if standing.recorded else None,
        consumable=standing.consumable,
        done=standing.done,
        partitions=standing.total,
        text=str(standing),
    )


def _is_late(dag: DagNow, now: datetime) -> bool:
    return not dag.paused and dag.due is not None and dag.due + LATE < now


def _resting(newest: NewestInterval | None, *, late: bool) -> PipelineStanding:
    """Of a pipeline of which no run goes on."""
    if newest is not None and newest.mark.word in ENDED_BADLY:
        return PipelineStanding.FAILING
    if late:
        return PipelineStanding.OVERDUE
    if newest is None:
        return PipelineStanding.NEVER_RUN
    return PipelineStanding.CURRENT if newest.state is IntervalState.COMPLETE else PipelineStanding.INCOMPLETE
