"""The web API behind our tabs, mounted by the plugin under /stagehold in Airflow's api-server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from stagehold.airflow.answering.access import MAY_SEE_PIPELINES
from stagehold.airflow.answering.problems import RESPONSES, BodyLimit, answer_with_problems
from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.airflow.overview.overview_routes import router as overview_routes
from stagehold.airflow.overview.visible_pipelines import visible_pipelines
from stagehold.airflow.pipeline_page.backfill_routes import router as backfill_routes
from stagehold.airflow.pipeline_page.pipeline_routes import router as pipeline_routes
from stagehold.airflow.pipeline_page.savepoint_routes import router as savepoint_routes
from stagehold.airflow.run_page.gate_routes import router as gate_routes
from stagehold.airflow.run_page.lease_routes import router as lease_routes
from stagehold.airflow.run_page.run_routes import router as run_routes
from stagehold.airflow.run_page.stop_routes import router as stop_routes
from stagehold.model.kept import OF_PROCESS, KeptKind
from stagehold.spark.processes import resident_bytes
from stagehold.spec.pipeline import Pipeline

WEB = Path(__file__).resolve().parents[1] / "web"
MOST_BYTES = 64 * 1024  # of a request; ours need a few


class PipelineLine(ResponseModel):
    name: str
    schedule: str | None
    stages: tuple[str, ...]


class Health(ResponseModel):
    """What this process keeps to answer later requests sooner: so many bytes of at most so many, by kind.
    STAGEHOLD_KEPT_MEGABYTES limits it; values that nobody asked for in 15 minutes are dropped. ``resident_bytes`` is
    the memory that the process has of the system now, including Airflow's.
    """

    kept_bytes: int
    most_bytes: int
    kept: tuple[KeptKind, ...]
    resident_bytes: int


router = APIRouter(prefix="/api")


@router.get("/pipelines", dependencies=[MAY_SEE_PIPELINES])
def pipelines(user: GetUserDep, session: SessionDep) -> list[PipelineLine]:
    """The pipelines whose DAGs the caller may see. A file with problems is left out: Airflow reports it as an import
    error.
    """
    return [_pipeline_line(one.pipeline) for one in visible_pipelines(user, session)]


@router.get("/health", dependencies=[MAY_SEE_PIPELINES])
def show_health() -> Health:
    """What the answering process keeps in memory."""
    kinds = OF_PROCESS.kinds
    return Health(
        kept_bytes=sum(one.bytes for one in kinds),
        most_bytes=OF_PROCESS.most_bytes,
        kept=kinds,
        resident_bytes=resident_bytes(),
    )


@router.get("/openapi.json", dependencies=[MAY_SEE_PIPELINES])
def describe(request: Request) -> dict[str, Any]:
    """This API as an OpenAPI document."""
    return {**request.app.openapi(), "servers": [{"url": request.scope["root_path"]}]}


def _pipeline_line(pipeline: Pipeline) -> PipelineLine:
    stages = tuple(stage.name for stage in pipeline.stages)
    return PipelineLine(name=pipeline.name, schedule=str(pipeline.starts) or None, stages=stages)


class FreshFiles(StaticFiles):
    """Static files that a browser requests again each time, so that an upgrade never mixes two versions of the page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def create_api() -> FastAPI:
    """The app to mount. FastAPI's own pages are off, because they would be public."""
    api = FastAPI(title="Stagehold", docs_url=None, redoc_url=None, openapi_url=None, responses=RESPONSES)
    api.include_router(router)
    api.include_router(overview_routes)
    api.include_router(run_routes)
    api.include_router(lease_routes)
    api.include_router(stop_routes)
    api.include_router(savepoint_routes)
    api.include_router(gate_routes)
    api.include_router(pipeline_routes)
    api.include_router(backfill_routes)
    api.add_middleware(BodyLimit, most_bytes=MOST_BYTES)
    answer_with_problems(api)
    # Public, like Airflow's own scripts: the files hold no data.
    api.mount("/static", FreshFiles(directory=WEB), name="static")
    return api
