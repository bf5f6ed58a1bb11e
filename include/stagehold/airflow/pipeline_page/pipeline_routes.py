"""The web API of a pipeline's tab: its intervals and their pins, how they grew, what went wrong, and the checkpoints
and verdicts of its runs.
"""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from stagehold.airflow.answering.access import MAY_RESUME, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_resume
from stagehold.airflow.answering.api_server import answer_unless_known, answering
from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.airflow.pipeline_page.checkpoint_page import checkpoint_page, region_parts, stage_parts
from stagehold.airflow.pipeline_page.gate_rates import read_gate_rates
from stagehold.airflow.pipeline_page.interval_grid import interval_page
from stagehold.airflow.pipeline_page.interval_staleness import staleness
from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline
from stagehold.airflow.pipeline_page.pipeline_facts import Asked, in_order, read_facts
from stagehold.airflow.pipeline_page.pipeline_history import pipeline_history, recoveries
from stagehold.airflow.pipeline_page.pipeline_responses import (
    CheckpointAnswers,
    CheckpointPage,
    GateRates,
    IntervalComparison,
    IntervalLook,
    IntervalPage,
    PinAnswer,
    PipelineHistory,
    PipelineRecoveries,
    StageComparison,
    Staleness,
)
from stagehold.airflow.pipeline_page.run_matrix_page import RunMatrixPage, run_matrix_page
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.errors.request_errors import UnknownName
from stagehold.model.standing import StageOutcome
from stagehold.run.intervals.interval_differences import StageDifference, compare_intervals
from stagehold.run.intervals.pinning import pin_intervals, released_before, unpin_intervals
from stagehold.run.intervals.run_matrix import RunsAsked, run_matrix

MOST_CELLS = 240  # on a page, so that its answer stays small however many stages there are
LEAST_ROWS = 3
MOST_POINTS = 200
MOST_CHECKPOINTS = 100  # of a page
MOST_ATTEMPTS = 64  # of a region in the answer about a checkpoint
MOST_INTERVALS = 30
MOST_PINNED = 1000  # intervals at once
HIGHEST = 2**63 - 1  # the highest number that the ledger's column holds

log = logging.getLogger(__name__)
_PAGES = KeptPages[IntervalPage]("pages of intervals")
_HISTORIES = KeptPages[PipelineHistory]("histories of pipelines")
_KEPT_RATES = KeptPages[GateRates]("rates of gates")
_MATRICES = KeptPages[RunMatrixPage]("matrices of runs")
router = APIRouter(prefix="/api/dags/{dag_id}")


class PinRequest(BaseModel):
    """With ``pinned`` the intervals keep their outputs whatever `retain` says; without it they no longer do."""

    model_config = ConfigDict(extra="forbid")

    intervals: Annotated[tuple[Annotated[str, Field(max_length=250)], ...], Field(min_length=1, max_length=MOST_PINNED)]
    pinned: bool = True
    why: Annotated[str, Field(max_length=1000)] = ""


def _known(dag: PlacedDep, session: SessionDep) -> KnownPipeline:
    with answering():
        return KnownPipeline.read(dag, session)


KnownDep = Annotated[KnownPipeline, Depends(_known)]


@router.get("/intervals", dependencies=[MAY_SEE_RUN], response_model=IntervalPage)
def show_intervals(
    known: KnownDep,
    user: GetUserDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20,
    before: str | None = None,
    look: IntervalLook = IntervalLook.ALL,
    first: date | None = None,
    last: date | None = None,
) -> Response:
    """The newest intervals, or those before one: at most ``limit``, fewer for a pipeline with many stages; only those
    that match ``look``, from a ``first`` to a ``last`` date. A caller that has the answer already, by its ETag, gets
    304.
    """
    with answering():
        asked = Asked(_most(limit, known), before, look, _midnight(first), _midnight(last, days=1))
        page = _PAGES.page(
            (known.place, asked),
            known.seen,
            lambda: interval_page(read_facts(known, asked)),
            lambda: False,
        )
        assert page is not None, "only pages that are large are waited for"
        shown = page.model_copy(update={"may_change": may_resume(known.place, user)})
        return answer_unless_known(shown, request)


@router.post("/pins", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def pin(wanted: PinRequest, known: KnownDep, user: GetUserDep) -> PinAnswer:
    """Pin intervals, or unpin them: all of them or, if one is not on record or not pinned, none."""
    with answering():
        say = pin_intervals if wanted.pinned else unpin_intervals
        name, ledger = known.pipeline.name, known.ledger
        words = say(name, wanted.intervals, user.get_name(), wanted.why.strip(), ledger)
        log.info("%s %s %s intervals of %s", user.get_name(), "pins" if wanted.pinned else "unpins", len(words), name)
        late = sum(released_before(name, one.interval, ledger) for one in words) if wanted.pinned else 0
        return PinAnswer(intervals=tuple(one.interval for one in words), pinned=wanted.pinned, released=late)


@router.get("/comparison", dependencies=[MAY_SEE_RUN])
def compare(known: KnownDep, one: str, other: str) -> IntervalComparison:
    """How two intervals differ, stage by stage."""
    with answering():
        found = compare_intervals(known.pipeline, one, other, known.ledger)
        return IntervalComparison(one=one, other=other, stages=tuple(map(_comparison, found)))


@router.get("/run-matrix", dependencies=[MAY_SEE_RUN], response_model=RunMatrixPage)
def show_run_matrix(
    known: KnownDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20,
    before: str | None = None,
    outcome: StageOutcome | None = None,
    stage: str | None = None,
    first: date | None = None,
    last: date | None = None,
) -> Response:
    """What the newest runs, or those that began before one, did about each stage: at most ``limit``, fewer for a
    pipeline with many stages; only those with such an ``outcome``, of that ``stage`` if it is given, for intervals from
    a ``first`` to a ``last`` date. A caller that has the answer already, by its ETag, gets 304.
    """
    with answering():
        dates = Asked(0, first=_midnight(first), end=_midnight(last, days=1))
        asked = RunsAsked(_most(limit, known), before, outcome, stage)
        matrix = _MATRICES.page(
            (known.place, limit, before, outcome, stage, first, last),
            known.seen,
            lambda: run_matrix_page(
                known, run_matrix(known.pipeline, known.ledger, asked, known.goes_on, dates.reaches)
            ),
            lambda: False,
        )
        assert matrix is not None, "only pages that are large are waited for"
        return answer_unless_known(matrix, request)


@router.get("/stale", dependencies=[MAY_SEE_RUN], response_model=Staleness)
def show_stale(
    known: KnownDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20,
    before: str | None = None,
) -> Response:
    """Which intervals of such a page would come out differently now. They were planned at a moment that is None while
    the first plan is being made. A caller that has the answer already, by its ETag, gets 304.
    """
    with answering():
        found = staleness(known.pipeline, known.ledger, known.settings, _most(limit, known), before)
        return answer_unless_known(found, request)


@router.get("/history", dependencies=[MAY_SEE_RUN], response_model=PipelineHistory)
def show_history(
    known: KnownDep, request: Request, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 60
) -> Response:
    """How long each stage took for the newest intervals, and how many rows and bytes it made. A caller that has the
    answer already, by its ETag, gets 304.
    """
    with answering():
        history = _HISTORIES.page((known.place, limit), known.seen, lambda: _history(known, limit), lambda: False)
        assert history is not None, "only pages that are large are waited for"
        return answer_unless_known(history, request)


@router.get("/recoveries", dependencies=[MAY_SEE_RUN])
def show_recoveries(known: KnownDep, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20) -> PipelineRecoveries:
    """The newest failures that were followed by another try in the same run."""
    with answering():
        tried = known.ledger.recoveries.newest(known.pipeline.name, limit)
        runs = {one.run_id for tries in tried for one in tries}
        return recoveries(tried, known.ledger.recoveries.left_behind(runs))


@router.get("/checkpoints", dependencies=[MAY_SEE_RUN], response_model=CheckpointPage)
def list_checkpoints(
    known: KnownDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_CHECKPOINTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """The checkpoints of all runs of the DAG's pipeline, newest first, with counts and the latest of each kind. A
    caller that has the answer already, by its ETag, gets 304.
    """
    with answering():
        page = checkpoint_page(known.pipeline.name, known.ledger, limit, offset)
        return answer_unless_known(page, request)


@router.get("/checkpoints/{number}", dependencies=[MAY_SEE_RUN])
def show_checkpoint(number: Annotated[int, Path(ge=0, le=HIGHEST)], run: str, known: KnownDep) -> CheckpointAnswers:
    """The answers of the attempts that had a part in a checkpoint, and what it has of each stage; ``run`` is the
    ledger's id of its run.
    """
    with answering():
        name = f"{run}#{number}"
        found = next((one for one in known.ledger.checkpoints.of_run(run) if one.number == number), None)
        if found is None or found.pipeline != known.pipeline.name:
            raise UnknownName(f"checkpoint of {known.pipeline.name}", name, ())
        return CheckpointAnswers(
            run_id=run,
            number=number,
            regions=region_parts(known.ledger.acknowledgements.of(found), MOST_ATTEMPTS),
            stages=stage_parts(known.pipeline, known.ledger.checkpoint_history.covered(found)),
        )


@router.get("/gate-rates", dependencies=[MAY_SEE_RUN], response_model=GateRates)
def show_gate_rates(
    known: KnownDep, request: Request, intervals: Annotated[int, Query(ge=1, le=MOST_INTERVALS)] = 14
) -> Response:
    """How often each expectation was met in the newest intervals. A caller that has the answer already, by its ETag,
    gets 304.
    """
    with answering():
        rates = _KEPT_RATES.page((known.place, intervals), known.seen, lambda: _rates(known, intervals), lambda: False)
        assert rates is not None, "only pages that are large are waited for"
        return answer_unless_known(rates, request)


def _comparison(found: StageDifference) -> StageComparison:
    return StageComparison(
        stage=found.stage,
        one=found.one,
        other=found.other,
        equal=found.equal,
        causes=found.causes,
        columns=found.columns,
    )


def _midnight(day: date | None, days: int = 0) -> datetime | None:
    """The beginning of a day, or of the day so many days later."""
    return None if day is None else datetime.combine(day, time.min, UTC) + timedelta(days=days)


def _most(limit: int, known: KnownPipeline) -> int:
    """The most rows of a page."""
    return min(limit, max(LEAST_ROWS, MOST_CELLS // len(known.pipeline.stages)))


def _history(known: KnownPipeline, limit: int) -> PipelineHistory:
    name = known.pipeline.name
    newest = in_order(known.ledger.intervals.known(name))[:limit]
    return pipeline_history(known.pipeline, newest[::-1], known.ledger.partitions.figures(name, newest))


def _rates(known: KnownPipeline, most: int) -> GateRates:
    newest = in_order(known.ledger.intervals.known(known.pipeline.name))[:most]
    return read_gate_rates(known.pipeline, newest[::-1], known.ledger)
