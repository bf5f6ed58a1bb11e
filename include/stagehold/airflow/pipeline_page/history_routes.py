"""The web API of what a pipeline's runs left behind: their checkpoints, and what gates said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import TypeAdapter

from stagehold.airflow.answering.access import MAY_SEE_RUN
from stagehold.airflow.answering.keeping import KeptPages
from stagehold.airflow.answering.server import answer_unless_known, answering
from stagehold.airflow.pipeline_page.checkpoint_history import (
    CheckpointPage,
    RegionParts,
    checkpoint_page,
    region_parts,
)
from stagehold.airflow.pipeline_page.facts import in_order
from stagehold.airflow.pipeline_page.gate_rates import GateRates, read_gate_rates
from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline
from stagehold.errors import UnknownName

MOST_CHECKPOINTS = 100  # of a page
MOST_ATTEMPTS = 64  # of a region that are told of a checkpoint
MOST_INTERVALS = 30
HIGHEST = 2**63 - 1  # number that the ledger's column holds

_PAGE, _RATES = TypeAdapter(CheckpointPage), TypeAdapter(GateRates)
_KEPT_RATES = KeptPages[GateRates]()
router = APIRouter(prefix="/api/dags/{dag_id}")


@dataclass(frozen=True)
class CheckpointAnswers:
    """Who had a part in a checkpoint, by region."""

    run_id: str
    number: int
    regions: tuple[RegionParts, ...]


def _known(dag_id: str, session: SessionDep) -> KnownPipeline:
    with answering():
        return KnownPipeline.read(dag_id, session)


KnownDep = Annotated[KnownPipeline, Depends(_known)]


@router.get("/checkpoints", dependencies=[MAY_SEE_RUN], response_model=CheckpointPage)
def list_checkpoints(
    known: KnownDep,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_CHECKPOINTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Those of all runs of the DAG's pipeline, newest first, with counts and the latest of each kind. Whoever has the
    answer already, by its ETag, is told so with 304.
    """
    with answering():
        page = checkpoint_page(known.pipeline.name, known.ledger, limit, offset)
        return answer_unless_known(_PAGE.dump_json(page), request)


@router.get("/checkpoints/{number}", dependencies=[MAY_SEE_RUN])
def show_checkpoint(number: Annotated[int, Path(ge=0, le=HIGHEST)], run: str, known: KnownDep) -> CheckpointAnswers:
    """What the attempts answered that had a part in a checkpoint; ``run`` is its run, as the ledger calls it."""
    with answering():
        name = f"{run}#{number}"
        found = next((one for one in known.ledger.checkpoints.of_run(run) if one.number == number), None)
        if found is None or found.pipeline != known.pipeline.name:
            raise UnknownName(f"checkpoint of {known.pipeline.name}", name, ())
        return CheckpointAnswers(run, number, region_parts(known.ledger.acknowledgements.of(found), MOST_ATTEMPTS))


@router.get("/gate-rates", dependencies=[MAY_SEE_RUN], response_model=GateRates)
def show_gate_rates(
    dag_id: str, known: KnownDep, request: Request, intervals: Annotated[int, Query(ge=1, le=MOST_INTERVALS)] = 14
) -> Response:
    """How often each expectation was met in the newest intervals. Whoever has the answer already, by its ETag, is told
    so with 304.
    """
    with answering():
        rates = _KEPT_RATES.page((dag_id, intervals), known.seen, lambda: _rates(known, intervals), lambda: False)
        assert rates is not None, "only pages that are large are waited for"
        return answer_unless_known(_RATES.dump_json(rates), request)


def _rates(known: KnownPipeline, most: int) -> GateRates:
    newest = in_order(known.ledger.intervals.known(known.pipeline.name))[:most]
    return read_gate_rates(known.pipeline, newest[::-1], known.ledger)
