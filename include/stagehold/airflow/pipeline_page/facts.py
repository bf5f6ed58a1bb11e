"""What the tab of a pipeline is made from, read from the ledger in a few queries however large the intervals are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow.models.dagrun import DagRun
from sqlalchemy import select
from sqlalchemy.orm import Session

from stagehold.airflow.dag_runs import dag_settings, pipeline_of
from stagehold.airflow.intervals import ledger_run_id
from stagehold.airflow.run_page.clearing import ACTIVE_RUN_STATES
from stagehold.airflow.server import server_ledger
from stagehold.errors import UnknownName
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import StateFigures
from stagehold.model.interval_key import moment_of
from stagehold.model.records import Run
from stagehold.model.states import RUN
from stagehold.spec.pipeline import Pipeline

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class KnownPipeline:
    """A DAG of ours as its tab knows it. ``at_work`` are its runs, by the ledger's ids, that Airflow has not ended."""

    dag_id: str
    pipeline: Pipeline
    ledger: Ledger
    at_work: frozenset[str]

    @staticmethod
    def read(dag_id: str, session: Session) -> KnownPipeline:
        """:raises ForeignDag: it is none of ours."""
        settings = dag_settings(dag_id, session)
        pipeline = pipeline_of(dag_id, session, settings)
        return KnownPipeline(dag_id, pipeline, server_ledger(settings), _at_work(dag_id, session))

    @property
    def seen(self) -> object:
        """Another one after something changed that the tab says."""
        return self.pipeline, self.at_work, self.ledger.revision

    def goes_on(self, run: Run) -> bool:
        """Of a run that was killed the ledger alone does not know that it has ended."""
        if run.launcher == "airflow":
            return run.run_id in self.at_work
        return not RUN.is_terminal(run.state)


@dataclass(frozen=True)
class IntervalFacts:
    """Some intervals of a pipeline, in the order of the tab, of ``total``. ``warned`` is by interval and stage id,
    ``following`` the interval behind which more are known.
    """

    known: KnownPipeline
    intervals: tuple[str, ...]
    total: int
    following: str | None
    runs: Mapping[str, Run]
    figures: Sequence[StateFigures]
    tries: Sequence[LastTries]
    warned: Mapping[tuple[str, str], int]


def read_facts(known: KnownPipeline, limit: int, before: str | None) -> IntervalFacts:
    """The newest intervals, or the newest of those before one of them.

    :raises UnknownName: there is nothing on record of that one.
    """
    ledger, pipeline = known.ledger, known.pipeline.name
    every = in_order(ledger.intervals.known(pipeline))
    rest = every[_place_of(before, every) + 1 :] if before is not None else every
    shown = rest[:limit]
    runs = {run.interval: run for run in ledger.runs.newest_of_intervals(pipeline, shown)}
    return IntervalFacts(
        known=known,
        intervals=shown,
        total=len(every),
        following=shown[-1] if len(rest) > len(shown) else None,
        runs=runs,
        figures=ledger.partitions.figures(pipeline, shown),
        tries=ledger.intervals.last_tries([run.run_id for run in runs.values()]),
        warned=ledger.intervals.warned(pipeline, shown) if any(one.gate for one in known.pipeline.stages) else {},
    )


def in_order(known: Mapping[str, datetime | None]) -> tuple[str, ...]:
    """Newest first: by the date that a key tells, or else by when a run for it began."""
    # Without the schedule a day is its midnight, which places it as well, and costs a thousandth of asking cron.
    places = {key: moment_of(key, None) or began or BEFORE_ALL for key, began in known.items()}
    return tuple(sorted(known, key=lambda key: (places[key], key), reverse=True))


def _place_of(interval: str, every: Sequence[str]) -> int:
    try:
        return every.index(interval)
    except ValueError:
        raise UnknownName("interval", interval, every[:10]) from None


def _at_work(dag_id: str, session: Session) -> frozenset[str]:
    states: Collection[str] = ACTIVE_RUN_STATES
    query = select(DagRun.run_id).where(DagRun.dag_id == dag_id, DagRun.state.in_(states))
    return frozenset(ledger_run_id(dag_id, run_id) for run_id in session.scalars(query))
