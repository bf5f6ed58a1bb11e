"""The web API of a pipeline's tab: its intervals, how they grew, and what went wrong on the way."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter

from stagehold.airflow.answering.access import MAY_SEE_RUN
from stagehold.airflow.answering.keeping import KeptPages
from stagehold.airflow.answering.server import answer_unless_known, answering
from stagehold.airflow.pipeline_page.facts import in_order, read_facts
from stagehold.airflow.pipeline_page.grid import IntervalPage, interval_page
from stagehold.airflow.pipeline_page.history import PipelineHistory, pipeline_history
from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline
from stagehold.airflow.pipeline_page.recoveries import PipelineRecoveries, recoveries
from stagehold.airflow.pipeline_page.stale import Staleness, staleness

MOST_CELLS = 240  # of a page, so that its answer stays small however many stages there are
LEAST_ROWS = 3
MOST_POINTS = 200

_PAGES = KeptPages[IntervalPage]()
_HISTORIES = KeptPages[PipelineHistory]()
_PAGE = TypeAdapter(IntervalPage)
_HISTORY = TypeAdapter(PipelineHistory)
_STALE = TypeAdapter(Staleness)
router = APIRouter(prefix="/api/dags/{dag_id}")


@router.get("/intervals", dependencies=[MAY_SEE_RUN], response_model=IntervalPage)
def show_intervals(
    dag_id: str,
    session: SessionDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20,
    before: str | None = None,
) -> Response:
    """The newest intervals, or those before one: at most ``limit``, fewer of a pipeline with many stages. Whoever has
    the answer already, by its ETag, is told so with 304.
    """
    with answering():
        known = KnownPipeline.read(dag_id, session)
        most = _most(limit, known)
        page = _PAGES.page(
            (dag_id, most, before), known.seen, lambda: interval_page(read_facts(known, most, before)), lambda: False
        )
        assert page is not None, "only pages that are large are waited for"
        return answer_unless_known(_PAGE.dump_json(page), request)


@router.get("/stale", dependencies=[MAY_SEE_RUN], response_model=Staleness)
def show_stale(
    dag_id: str,
    session: SessionDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20,
    before: str | None = None,
) -> Response:
    """Which intervals of such a page would come out differently now, as they were planned at a moment, which is None
    as long as that is being worked out. Whoever has the answer already, by its ETag, is told so with 304.
    """
    with answering():
        known = KnownPipeline.read(dag_id, session)
        found = staleness(known.pipeline, known.ledger, known.settings, _most(limit, known), before)
        return answer_unless_known(_STALE.dump_json(found), request)


@router.get("/history", dependencies=[MAY_SEE_RUN], response_model=PipelineHistory)
def show_history(
    dag_id: str, session: SessionDep, request: Request, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 60
) -> Response:
    """How long each stage took for the newest intervals, and how many rows and bytes it made. Whoever has the answer
    already, by its ETag, is told so with 304.
    """
    with answering():
        known = KnownPipeline.read(dag_id, session)
        history = _HISTORIES.page((dag_id, limit), known.seen, lambda: _history(known, limit), lambda: False)
        assert history is not None, "only pages that are large are waited for"
        return answer_unless_known(_HISTORY.dump_json(history), request)


@router.get("/recoveries", dependencies=[MAY_SEE_RUN])
def show_recoveries(
    dag_id: str, session: SessionDep, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 20
) -> PipelineRecoveries:
    """The newest failures that were followed by another try in the same run."""
    with answering():
        known = KnownPipeline.read(dag_id, session)
        tried = known.ledger.recoveries.newest(known.pipeline.name, limit)
        runs = {one.run_id for tries in tried for one in tries}
        return recoveries(tried, known.ledger.recoveries.left_behind(runs))


def _most(limit: int, known: KnownPipeline) -> int:
    """Rows of a page."""
    return min(limit, max(LEAST_ROWS, MOST_CELLS // len(known.pipeline.stages)))


def _history(known: KnownPipeline, limit: int) -> PipelineHistory:
    name = known.pipeline.name
    newest = in_order(known.ledger.intervals.known(name))[:limit]
    return pipeline_history(known.pipeline, newest[::-1], known.ledger.partitions.figures(name, newest))
