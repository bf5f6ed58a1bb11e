"""How a pipeline stands, from the ledger's and Airflow's facts about its runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.overview.overview_responses import (
    IntervalMark,
    NewestInterval,
    NextStep,
    PipelineKind,
    PipelineRow,
)
from stagehold.airflow.overview.pipeline_choice import PipelineBrief
from stagehold.airflow.pipeline_page.pipeline_facts import ledger_word
from stagehold.ledger.across.pipelines import Place
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Run
from stagehold.model.standing import Need, PipelineStanding, RunWord, Standing, need_of
from stagehold.spec.pipeline import Pipeline

MOST_MARKS = 14  # intervals that are shown
LATE = timedelta(minutes=5)  # a scheduler that starts a run later than this is behind
NOTHING = Standing()
BY_AIRFLOW = "airflow"  # the launcher of a run that Airflow knows


@dataclass(frozen=True)
class DagNow:
    """Airflow's facts about a DAG. ``due`` is when it is to start the next scheduled run, None without a schedule;
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
    """The facts about a pipeline. ``runs`` are the newest ones, the newest first, and ``shown`` those that are shown;
    ``states`` are Airflow's states of the runs that it knows. ``at_work`` are the places, pipeline and interval, for
    which somebody has a lease. ``standings`` are by interval. Failures are read only for pipelines that are shown.
    """

    pipeline: Pipeline
    place: DagPlace
    dag: DagNow
    runs: Sequence[Run]
    shown: Sequence[Run]
    states: Mapping[str, str]
    at_work: Collection[Place]
    standings: Mapping[str, Standing] = field(default_factory=dict)
    waived: Collection[Place] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    def standing(self, interval: str) -> Standing:
        return self.standings.get(interval, NOTHING)

    @property
    def active(self) -> int:
        """Runs that wait or go on. Airflow counts its own, including queued ones that the ledger does not know yet."""
        of_commands = (run for run in self.runs if run.run_id not in self.states)
        return self.dag.active + sum(run_word(run, self).active for run in of_commands)

    def is_waived(self, run: Run) -> bool:
        return (run.pipeline, run.interval) in self.waived


def hidden_row(pipeline: Pipeline, dag: DagNow, place: DagPlace) -> PipelineRow:
    """The row for a reader who may see only the DAG."""
    return PipelineRow(
        name=pipeline.name,
        place=str(place),
        tags=dag.tags,
        owners=dag.owners,
        schedule=str(pipeline.starts) or None,
        paused=False,
        standing=PipelineStanding.HIDDEN,
        active=0,
        due=None,
        newest=None,
        marks=(),
    )


def hidden_brief(pipeline: Pipeline, dag: DagNow) -> PipelineBrief:
    return PipelineBrief(pipeline.name, PipelineStanding.HIDDEN, frozenset({PipelineKind.HIDDEN}), dag.tags, dag.owners)


def pipeline_brief(facts: PipelineFacts, now: datetime) -> PipelineBrief:
    """The facts that decide about its place. They are made for every pipeline, so nothing is put in words here."""
    needs = [
        (run, need) for run in facts.shown if (need := need_of(run_word(run, facts), facts.standing(run.interval)))
    ]
    standing = _standing(facts, now, in_need=bool(needs))
    return PipelineBrief(
        name=facts.pipeline.name,
        standing=standing,
        kinds=frozenset(_kinds(standing, facts, [need for _, need in needs], now)),
        tags=facts.dag.tags,
        owners=facts.dag.owners,
        began_at=max((run.started_at for run in facts.shown), default=None),
        needed_at=max((run.started_at for run, _ in needs), default=None),
    )


def _standing(facts: PipelineFacts, now: datetime, *, in_need: bool) -> PipelineStanding:
    if in_need:
        return PipelineStanding.FAILING
    true = {
        PipelineStanding.RUNNING: facts.active > 0,
        PipelineStanding.OVERDUE: is_late(facts.dag, now),
        PipelineStanding.NEVER_RUN: not facts.shown,
    }
    return next((standing for standing, is_so in true.items() if is_so), PipelineStanding.CURRENT)


def _kinds(
    standing: PipelineStanding, facts: PipelineFacts, needs: Sequence[Need], now: datetime
) -> Iterator[PipelineKind]:
    yield PipelineKind(standing.value)
    true = {
        PipelineKind.RUNNING: facts.active > 0,
        PipelineKind.BLOCKED: Need.BLOCKED in needs,
        PipelineKind.WAIVED: any(map(facts.is_waived, facts.shown)),
        PipelineKind.OVERDUE: is_late(facts.dag, now),
    }
    yield from (kind for kind, is_so in true.items() if is_so)


def pipeline_row(facts: PipelineFacts, now: datetime) -> PipelineRow:
    dag, marks = facts.dag, interval_marks(facts)
    return PipelineRow(
        name=facts.pipeline.name,
        place=str(facts.place),
        tags=dag.tags,
        owners=dag.owners,
        schedule=str(facts.pipeline.starts) or None,
        paused=dag.paused,
        standing=_standing(facts, now, in_need=any(mark.need for mark in marks)),
        active=facts.active,
        due=dag.due if is_late(dag, now) else None,
        newest=_newest(marks[-1], facts.standing(marks[-1].interval)) if marks else None,
        marks=marks,
    )


def shown_runs(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The newest run of each of the newest intervals, the oldest first. An interval that is no date has its place by
    when its run began.

    :param runs: runs of a pipeline, the newest first.
    """
    newest = {run.interval: run for run in reversed(runs)}
    # Without the schedule a day is its midnight. That orders days as well, and takes a thousandth of the time of cron.
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
        waived=facts.is_waived(run),
    )


def _reason(need: Need, run: Run, standing: Standing, facts: PipelineFacts) -> str:
    failure = facts.failures.get(run.run_id, "").strip() if need is Need.FAILED else ""
    return "; ".join((*failure.splitlines()[:1], str(standing)))


def _step(need: Need, *, known: bool) -> NextStep:
    """The next step for the interval.

    :param known: Airflow knows the run.
    """
    if need is Need.BLOCKED:
        return NextStep.LOOK
    return NextStep.RESUME if known else NextStep.RUN


def run_word(run: Run, facts: PipelineFacts) -> RunWord:
    if run.launcher == BY_AIRFLOW and run.run_id in facts.states:
        return _OF_AIRFLOW.get(facts.states[run.run_id], RunWord.FAILED)
    return ledger_word(run, active=(run.pipeline, run.interval) in facts.at_work)


def _newest(mark: IntervalMark, standing: Standing) -> NewestInterval:
    return NewestInterval(
        mark=mark,
        state=standing.state if standing.recorded else None,
        consumable=standing.consumable,
        done=standing.done,
        partitions=standing.total,
        text=str(standing),
    )


def is_late(dag: DagNow, now: datetime) -> bool:
    return not dag.paused and dag.due is not None and dag.due + LATE < now
