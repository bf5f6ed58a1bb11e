"""How a pipeline stands, from what ledger and Airflow say of its runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from stagehold.airflow.overview.overview_responses import IntervalMark, NewestInterval, NextStep, PipelineRow
from stagehold.airflow.pipeline_page.pipeline_facts import ledger_word
from stagehold.ledger.across.pipelines import Place
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Run
from stagehold.model.standing import Need, PipelineStanding, RunWord, Standing, need_of
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
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


_OF_AIRFLOW = {"queued": RunWord.QUEUED, "running": RunWord.RUNNING, "success": RunWord.SUCCESS}


@dataclass(frozen=True)
class PipelineFacts:
    """``runs`` are the newest ones, the newest first, ``shown`` those of them of which something is told; ``states``
    Airflow's words for those that it knows. ``at_work`` are the places, pipeline and interval, that somebody has a
    lease of. How intervals stand, of which of them waivers hold, and why runs failed, is asked when the runs are known.
    """

    pipeline: Pipeline
    dag: DagNow
    runs: Sequence[Run]
    shown: Sequence[Run]
    states: Mapping[str, str]
    at_work: Collection[Place]
    standings: Mapping[Place, Standing] = field(default_factory=dict)
    waived: Collection[Place] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    def standing(self, interval: str) -> Standing:
        return self.standings.get((self.pipeline.name, interval), Standing())


def hidden_row(pipeline: Pipeline, dag: DagNow) -> PipelineRow:
    """For who may see the DAG alone."""
    return PipelineRow(
        name=pipeline.name,
        tags=dag.tags,
        owners=dag.owners,
        schedule=pipeline.schedule,
        paused=False,
        standing=PipelineStanding.HIDDEN,
        active=0,
        due=None,
        newest=None,
        marks=(),
    )


def pipeline_row(facts: PipelineFacts, now: datetime) -> PipelineRow:
    dag, marks = facts.dag, interval_marks(facts)
    active, late = dag.active + sum(one.active for one in _by_command(facts)), _is_late(dag, now)
    return PipelineRow(
        name=facts.pipeline.name,
        tags=dag.tags,
        owners=dag.owners,
        schedule=facts.pipeline.schedule,
        paused=dag.paused,
        standing=_standing(marks, active=bool(active), late=late),
        active=active,
        due=dag.due if late else None,
        newest=_newest(marks[-1], facts.standing(marks[-1].interval)) if marks else None,
        marks=marks,
    )


def shown_runs(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The newest run of each of the newest intervals, the oldest first; what is no date has its place by when its run
    began.

    :param runs: of a pipeline, the newest first.
    """
    newest = {run.interval: run for run in reversed(runs)}
    # Without the schedule a day is its midnight, which places it as well, and costs a thousandth of asking cron.
    placed = sorted((moment_of(key, None) or run.started_at, key) for key, run in newest.items())
    return tuple(newest[key] for _, key in placed[-MOST_MARKS:])


def interval_marks(facts: PipelineFacts) -> tuple[IntervalMark, ...]:
    return tuple(_mark(run, facts) for run in facts.shown)


def _mark(run: Run, facts: PipelineFacts) -> IntervalMark:
    word, standing = run_word(run, facts), facts.standing(run.interval)
    need = need_of(word, standing)
    return IntervalMark(
        interval=run.interval,
        word=word,
        run_id=run.run_id,
        started_at=run.started_at,
        ended_at=run.ended_at,
        need=need,
        reason=_reason(need, run, standing, facts) if need else None,
        step=_step(need, known=run.run_id in facts.states) if need else None,
        waived=(run.pipeline, run.interval) in facts.waived,
    )


def _reason(need: Need, run: Run, standing: Standing, facts: PipelineFacts) -> str:
    failure = facts.failures.get(run.run_id, "").strip() if need is Need.FAILED else ""
    return "; ".join((*failure.splitlines()[:1], str(standing)))


def _step(need: Need, *, known: bool) -> NextStep:
    """:param known: Airflow knows the run."""
    if need is Need.BLOCKED:
        return NextStep.LOOK
    return NextStep.RESUME if known else NextStep.RUN


def run_word(run: Run, facts: PipelineFacts) -> RunWord:
    if run.launcher == BY_AIRFLOW and run.run_id in facts.states:
        return _OF_AIRFLOW.get(facts.states[run.run_id], RunWord.FAILED)
    return ledger_word(run, active=(run.pipeline, run.interval) in facts.at_work)


def _by_command(facts: PipelineFacts) -> Sequence[RunWord]:
    """Those of Airflow are counted by Airflow, queued ones that the ledger has not heard of among them."""
    return [run_word(run, facts) for run in facts.runs if run.run_id not in facts.states]


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


def _standing(marks: Sequence[IntervalMark], *, active: bool, late: bool) -> PipelineStanding:
    true = {
        PipelineStanding.FAILING: any(one.need for one in marks),
        PipelineStanding.RUNNING: active,
        PipelineStanding.OVERDUE: late,
        PipelineStanding.NEVER_RUN: not marks,
    }
    return next((standing for standing, is_so in true.items() if is_so), PipelineStanding.CURRENT)
