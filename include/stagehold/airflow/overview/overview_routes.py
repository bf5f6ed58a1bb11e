"""The web API of all pipelines together. An answer has no trace of anything that its reader may not see."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query, Request, Response

from stagehold.airflow.answering.access import MAY_SEE_PIPELINES
from stagehold.airflow.answering.api_server import answer_unless_known, answering, server_ledger
from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.airflow.overview.ledger_sizes import LedgerSums, ledger_sums, sizes_seen
from stagehold.airflow.overview.overview import by_project, overview, stale_overview
from stagehold.airflow.overview.overview_responses import (
    Overview,
    PipelineKind,
    PipelineOrder,
    SizesSeen,
    StaleOverview,
)
from stagehold.airflow.overview.pipeline_choice import Wanted
from stagehold.airflow.overview.visible_pipelines import VisiblePipeline, visible_pipelines
from stagehold.ledger.ledger import Ledger
from stagehold.settings import Settings

MOST_ROWS = 200  # of a page
MOST_LETTERS = 250  # in a name
MOST_AT_ONCE = 20_000  # rows of partitions that are added up while somebody waits
_SUMS = KeptPages[LedgerSums]("sizes of ledgers")
router = APIRouter(prefix="/api/overview")


def _visible(user: GetUserDep, session: SessionDep) -> tuple[VisiblePipeline, ...]:
    return visible_pipelines(user, session)


VisibleDep = Annotated[tuple[VisiblePipeline, ...], Depends(_visible)]


def _wanted(
    search: Annotated[str, Query(max_length=MOST_LETTERS)] = "",
    kind: PipelineKind | None = None,
    tag: str = "",
    owner: str = "",
    order: PipelineOrder = PipelineOrder.STATE,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Wanted:
    return Wanted(search, kind, tag, owner, order, limit, offset)


@router.get("", dependencies=[MAY_SEE_PIPELINES], response_model=Overview)
def show_overview(
    visible: VisibleDep,
    wanted: Annotated[Wanted, Depends(_wanted)],
    session: SessionDep,
    user: GetUserDep,
    request: Request,
) -> Response:
    """How pipelines stand and what they need, a page of those that are asked for; the holders of leases, and what is
    installed. A caller that has the answer already, by its ETag, gets 304.
    """
    with answering():
        return answer_unless_known(overview(visible, wanted, user.get_name(), session), request)


@router.get("/stale", dependencies=[MAY_SEE_PIPELINES], response_model=StaleOverview)
def show_stale(visible: VisibleDep, request: Request, names: Annotated[list[str] | None, Query()] = None) -> Response:
    """How many of the newest intervals of each pipeline, or of these ``names``, would come out differently now. A
    caller that has the answer already, by its ETag, gets 304.
    """
    with answering():
        asked = visible if names is None else [one for one in visible if one.name in names]
        return answer_unless_known(stale_overview(asked), request)


@router.get("/sizes", dependencies=[MAY_SEE_PIPELINES])
def show_sizes(visible: VisibleDep) -> SizesSeen:
    """How large ledgers are, and how much data is in the lake by their records."""
    with answering():
        return sizes_seen([_sums(settings) for settings in by_project(one for one in visible if one.runs)], visible)


def _sums(settings: Settings) -> LedgerSums | None:
    """The sums. Once they are made, they are shown as they were while a thread makes them anew."""
    ledger = server_ledger(settings)
    return _SUMS.page(ledger.name, ledger.revision, lambda: ledger_sums(ledger), lambda: _is_large(ledger))


def _is_large(ledger: Ledger) -> bool:
    rows, *_ = ledger.revision
    return rows > MOST_AT_ONCE
