"""The web API of a run's gates: their verdicts, and waivers of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Response, status
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stagehold.airflow.answering.access import MAY_RESUME, MAY_SEE_RUN, SAME_ORIGIN_JSON
from stagehold.airflow.answering.api_server import answering, server_ledger
from stagehold.airflow.answering.rights import Right, require_right
from stagehold.airflow.run_page.gate_failures import waiver_told, words_told
from stagehold.airflow.run_page.gate_responses import (
    DocsMade,
    ObservedHistory,
    RunVerdicts,
    StageVerdicts,
    WaiveAnswer,
)
from stagehold.airflow.run_page.verdict_answers import last_intervals, observed_points, stage_verdicts
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.airflow.runs.dag_runs import read_dag_run
from stagehold.errors.gate_errors import NothingJudged
from stagehold.errors.request_errors import InvalidArgument, UnknownName
from stagehold.gates.verdict_pages import MOST_SECONDS, POLICY, have_docs, read_page, write_docs_apart
from stagehold.gates.verdicts import waived_in
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import RefusedData, Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished
from stagehold.run.intervals.verdict_site import verdict_site
from stagehold.run.planning.acceptance import newest_verdict, said_waivers
from stagehold.run.planning.planning import IntervalView

LONGEST_REASON = 1000  # characters
MOST_RANGES = 1000
MOST_PARTITION = 1_000_000  # the highest number that may be named

NO_PAGE = (
    "There is no such page. The card Gates of the run's page makes those of its interval, as does `stagehold gates RUN "
    "--docs`."
)
# As strict as the page's own: texts of data and suites are shown, and can do nothing with the reader's cookie.
PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

log = logging.getLogger(__name__)
router = APIRouter(prefix="/api/dags/{dag_id}/runs/{run_id:path}")
Number = Annotated[int, Field(ge=0, le=MOST_PARTITION)]


class WaiveRequest(BaseModel):
    """``partitions`` are ranges that include their ends; ``expectation`` is the beginning of its text. ``until`` is a
    date (UTC) or moment at which the waiver ends; with ``end`` the request takes back an earlier waiver.
    """

    model_config = ConfigDict(extra="forbid")

    stage: str
    expectation: Annotated[str, Field(min_length=1)]
    partitions: Annotated[list[tuple[Number, Number]], Field(min_length=1, max_length=MOST_RANGES)]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]
    until: datetime | None = None
    end: bool = False


def _run(dag: PlacedDep, run_id: str, session: SessionDep) -> IntervalView:
    with answering():
        ledger = server_ledger(dag.settings)
        return IntervalView(read_dag_run(dag, run_id, session, ledger).request, ledger, dag.settings)


GatedRunDep = Annotated[IntervalView, Depends(_run)]


def _cell(run: IntervalView, stage: str) -> Cell:
    """The cell of a stage in the run's interval.

    :raises UnknownName: the pipeline has no such stage.
    """
    pipeline = run.request.pipeline
    for known in pipeline.stages:
        if known.name == stage:
            return Cell(pipeline.name, known.id, run.request.interval)
    raise UnknownName(f"stage of {pipeline.name}", stage, [known.name for known in pipeline.stages])


@router.get("/gates", dependencies=[MAY_SEE_RUN])
def show_gates(run: GatedRunDep) -> RunVerdicts:
    """The verdicts of the gates when they last judged the partitions of the run's interval, whichever run computed
    them.
    """
    with answering():
        docs = have_docs(run.settings.lake_uri, run.request.pipeline.name, run.request.interval)
        return RunVerdicts(stages=tuple(_verdicts(run)), docs=docs)


@router.get("/docs/{page}", dependencies=[MAY_SEE_RUN])
def show_page(page: str, run: GatedRunDep) -> Response:
    """A page that was made for the run's interval."""
    found = read_page(page, run.settings.lake_uri, run.request.pipeline.name, run.request.interval)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, NO_PAGE)
    return Response(found, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@router.post("/gates/docs", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def make_docs(run: GatedRunDep, user: GetUserDep) -> DocsMade:
    """Write the verdicts as pages of Great Expectations, in place of older ones. It takes some seconds; while one
    request writes them, others are refused.
    """
    pipeline, interval = run.request.pipeline.name, run.request.interval
    with answering():
        site = verdict_site(pipeline, interval, run.ledger, run.settings)
        if not site.pages:
            raise NothingJudged(pipeline, interval)
        lease = run.ledger.leases.acquire(f"docs of {pipeline}/{interval}", user.get_name(), MOST_SECONDS)
        try:
            write_docs_apart(site, run.settings.lake_uri)
        finally:
            run.ledger.leases.release(lease)
        log.info("%s has pages of Great Expectations made of %s for %s", user.get_name(), pipeline, interval)
        return DocsMade(pages=len(site.pages))


@router.get("/gates/history", dependencies=[MAY_SEE_RUN])
def show_history(stage: str, expectation: str, run: GatedRunDep) -> ObservedHistory:
    """What an expectation observed in the run's interval and those before it."""
    with answering():
        cell, ledger = _cell(run, stage), run.ledger
        known = [(one.interval, one.started_at) for one in ledger.runs.newest_of_intervals(cell.pipeline)]
        intervals = last_intervals(known, cell.interval, run.request.pipeline.schedule)
        results = ledger.gates.of_expectation(cell.pipeline, cell.stage, intervals, expectation)
        points = observed_points(intervals, results)
        return ObservedHistory(stage=stage, expectation=expectation, points=points)


@router.post("/waive", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def waive(wanted: WaiveRequest, run: GatedRunDep, user: GetUserDep) -> WaiveAnswer:
    """Let partitions be read though they do not meet an expectation, or take that back. The verdict stays on record.

    To let them through needs a right of its own, to take it back the right to resume. A waiver holds for the data that
    is there now. Data that is computed meanwhile is other data, unless it has the same content.
    """
    now = datetime.now(UTC)
    with answering():
        if not wanted.end:
            require_right(Right.WAIVE, user, run.settings)
        cell = _cell(run, wanted.stage)
        records = run.ledger.partitions.newest(cell)
        named = PartitionSet.named(wanted.partitions, [one.partition for one in records])
        until = now if wanted.end else _moment(wanted.until, now)
        wish = WaiverWish(named, wanted.expectation, user.get_name(), wanted.reason, until)
        words = wished(wish, wanted.stage, refused_data(records, None), now)
        run.ledger.waivers.record(words)
        log.info(
            "%s waives %s of %s, %s partitions until %s", wish.waived_by, wish.expectation, cell, len(words), until
        )
        return _answer(wanted.stage, words)


def _verdicts(run: IntervalView) -> Iterator[StageVerdicts]:
    pipeline, ledger = run.request.pipeline, run.ledger
    holding_of, past_of = said_waivers(pipeline, run.request.interval, ledger, run.settings)
    for stage in pipeline.stages:
        cell = Cell(pipeline.name, stage.id, run.request.interval)
        width = ledger.partitions.width(cell) if stage.gate else 0
        if stage.gate and width:
            holding, past = holding_of.get(stage.name, ()), past_of.get(stage.name, ())
            data = _refused(cell, ledger) if holding or past else ()
            told = words_told(data, (*past, *holding), holding)
            results, waived = ledger.gates.verdicts(cell), waived_in(data, holding)
            found = stage_verdicts(stage.name, stage.gate, width, results, waived)
            named = tuple(
                expectation.model_copy(update={"words": told.get(expectation.expectation, ())})
                for expectation in found.expectations
            )
            yield found.model_copy(update={"expectations": named})


def _refused(cell: Cell, ledger: Ledger) -> tuple[RefusedData, ...]:
    """The refused data on record. Records of partitions are read only where somebody has waived something of them."""
    records = ledger.partitions.newest(cell)
    return refused_data(records, newest_verdict(records, ledger)) if records else ()


def _moment(given: datetime | None, now: datetime) -> datetime | None:
    """The moment at which a waiver ends.

    :raises InvalidArgument: the moment is in the past.
    """
    if given is None:
        return None
    try:
        moment = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except OverflowError:  # a moment of the year 9999 that does not exist in UTC
        moment = now
    if moment <= now:
        raise InvalidArgument("until", given.isoformat(), "a date such as 2030-01-31 or a moment, later than now")
    return moment


def _answer(stage: str, words: Sequence[Waiver]) -> WaiveAnswer:
    partitions = PartitionSet(one.partition for one in words).ranges
    waiver = waiver_told(words[0])
    return WaiveAnswer(stage=stage, expectation=words[0].expectation, partitions=partitions, waiver=waiver)
