"""The web API behind the run page, mounted by the plugin under /stagehold in Airflow's api-server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from stagehold.airflow.access import MAY_SEE_PIPELINES
from stagehold.airflow.body_limit import BodyLimit, without_input
from stagehold.airflow.gates.routes import router as gate_routes
from stagehold.airflow.run_page.routes import router as run_routes
from stagehold.airflow.savepoints.routes import router as savepoint_routes
from stagehold.settings import load_settings
from stagehold.spec.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

WEB = Path(__file__).resolve().parents[1] / "web"
MOST_BYTES = 64 * 1024  # of a request; ours need a few


@dataclass(frozen=True)
class PipelineLine:
    name: str
    schedule: str | None
    stages: tuple[str, ...]


router = APIRouter(prefix="/api")


@router.get("/pipelines", dependencies=[MAY_SEE_PIPELINES])
def pipelines(user: GetUserDep) -> list[PipelineLine]:
    """The pipelines whose DAGs the caller may see; a file with problems is Airflow's to report, as an import error."""
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    loaded = load_each_pipeline(load_settings())
    return [
        _pipeline_line(pipeline) for pipeline in loaded if isinstance(pipeline, Pipeline) and pipeline.name in allowed
    ]


def _pipeline_line(pipeline: Pipeline) -> PipelineLine:
    return PipelineLine(pipeline.name, pipeline.schedule, tuple(stage.name for stage in pipeline.stages))


class FreshFiles(StaticFiles):
    """Static files that a browser asks for again each time, so that an upgrade never mixes two versions of the page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def create_api() -> FastAPI:
    """The app to mount. Its own documentation pages are off, because they would be public."""
    api = FastAPI(title="Stagehold", docs_url=None, redoc_url=None, openapi_url=None)
    api.include_router(router)
    api.include_router(run_routes)
    api.include_router(savepoint_routes)
    api.include_router(gate_routes)
    api.add_middleware(BodyLimit, most_bytes=MOST_BYTES)
    api.add_exception_handler(RequestValidationError, without_input)
    # Public, like Airflow's own scripts: the files hold no data.
    api.mount("/static", FreshFiles(directory=WEB), name="static")
    return api
