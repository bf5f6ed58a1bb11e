"""The web API behind the run page, mounted by the plugin under /stagehold in Airflow's api-server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import httpx
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, status
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Scope

from stagehold.airflow.access import MAY_RESUME, MAY_SEE_PIPELINES, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_resume
from stagehold.airflow.body_limit import BodyLimit
from stagehold.airflow.dag_runs import dag_settings, known_settings, read_dag_run
from stagehold.airflow.gates.routes import router as gate_routes
from stagehold.airflow.grid import ResumePreview, RunFacts, RunGrid, clear_set, resume_preview, run_grid
from stagehold.airflow.intervals import ledger_run_id
from stagehold.airflow.problems import RESPONSES, answer_with_problems
from stagehold.airflow.restores.told import ShownRestore
from stagehold.airflow.resume import TaskToClear
from stagehold.airflow.savepoints.routes import router as savepoint_routes
from stagehold.airflow.server import answering, server_ledger
from stagehold.errors import (
    CodeUnusable,
    LeaseHeld,
    LedgerUnavailable,
    NothingToRestore,
    ResumeUnderWay,
    StageholdError,
)
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult, Lease
from stagehold.plan.resume.decisions import ResumePlan, also_computed
from stagehold.plan.split.regions import stage_regions
from stagehold.run.archive.archive import archived_traces
from stagehold.run.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import RunRequest, plan_run
from stagehold.run.planning.refusal import refuse_broken_code
from stagehold.run.planning.restoring import check_restore
from stagehold.run.planning.vouched import waivers_for
from stagehold.settings import Settings
from stagehold.spec.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

WEB = Path(__file__).resolve().parents[1] / "web"
MOST_BYTES = 64 * 1024  # of a request; ours need a few
RESUME_SECONDS = 60.0  # a resume that takes longer may be overtaken by another one
NOTE_LENGTH = 1000  # what Airflow accepts as a task's note
# Headers by which Airflow knows the caller.
IDENTITY = ("authorization", "cookie")


class ResumeRequest(BaseModel):
    """``dry_run`` only says what would be cleared."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = False


@dataclass(frozen=True)
class ResumeAnswer:
    """What was cleared, or would be."""

    dry_run: bool
    cleared: tuple[TaskToClear, ...]
    reuse: int
    run: int
    along: int
    judge: int


@dataclass(frozen=True)
class PipelineLine:
    name: str
    schedule: str | None
    stages: tuple[str, ...]


def run_facts(dag_id: str, run_id: str, session: SessionDep, user: GetUserDep) -> RunFacts:
    """Everything known of a run, read anew for each request."""
    with answering():
        settings = dag_settings(dag_id, session)
        ledger = server_ledger(settings)
        dag_run = read_dag_run(dag_id, run_id, session, settings, ledger)
        shown = ShownRestore.of(dag_run, ledger, settings)
        request = shown.request
        refuse_lost_ledger(request, ledger, settings)
        plan = plan_run(request, ledger, settings)
        return RunFacts(
            dag_run=replace(dag_run, request=request),
            regions=stage_regions(request.pipeline),
            plan=plan,
            recorded=ledger.partitions.newest_of(request.pipeline.name, request.interval),
            attempts=ledger.attempts.of_run(request.run_id),
            traces=_traces(request.run_id, ledger, settings),
            gate_failures=_gate_failures(request, ledger),
            may_resume=may_resume(dag_id, user),
            refusal=shown.refusal or _refusal(request, plan, ledger, settings),
            restore=shown.told,
            waivers=waivers_for(request.pipeline, request.interval, ledger, settings),
        )


def _traces(run_id: str, ledger: Ledger, settings: Settings) -> Mapping[str, str]:
    """By attempt; of a run whose history the ledger has forgotten, as the lake keeps them."""
    known = ledger.events.traces(run_id)
    forgotten = not known and not ledger.transitions.of_run(run_id)
    return archived_traces(run_id, settings.lake_uri) if forgotten else known


Facts = Annotated[RunFacts, Depends(run_facts)]
router = APIRouter(prefix="/api")


@router.get("/pipelines", dependencies=[MAY_SEE_PIPELINES])
def pipelines(user: GetUserDep, session: SessionDep) -> list[PipelineLine]:
    """The pipelines whose DAGs the caller may see; a file with problems is Airflow's to report, as an import error."""
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    loaded = [one for settings in known_settings(allowed, session) for one in load_each_pipeline(settings)]
    named = {one.name: one for one in loaded if isinstance(one, Pipeline)}
    return [_pipeline_line(pipeline) for name, pipeline in named.items() if name in allowed]


@router.get("/openapi.json", dependencies=[MAY_SEE_PIPELINES])
def describe(request: Request) -> dict[str, Any]:
    """This API as an OpenAPI document."""
    return {**request.app.openapi(), "servers": [{"url": request.scope["root_path"]}]}


# Run ids may hold any character, a slash too, hence :path.
@router.get("/dags/{dag_id}/runs/{run_id:path}/grid", dependencies=[MAY_SEE_RUN])
def grid(facts: Facts) -> RunGrid:
    return run_grid(facts)


@router.get("/dags/{dag_id}/runs/{run_id:path}/plan", dependencies=[MAY_SEE_RUN])
def plan(facts: Facts) -> ResumePreview:
    return resume_preview(facts)


@router.post("/dags/{dag_id}/runs/{run_id:path}/resume", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
async def resume(
    dag_id: str, run_id: str, wanted: ResumeRequest, session: SessionDep, user: GetUserDep, request: Request
) -> ResumeAnswer:
    """Clear the least that brings the run to its end, in the same run, with the caller's own rights.

    Of several callers at once one has the run's resume lease. Airflow's record of the run is read under it, so whoever
    has it next finds the run under way. What somebody clears meanwhile in another way is not seen.
    """
    with answering():
        ledger = server_ledger(await run_in_threadpool(dag_settings, dag_id, session))
    lease = await run_in_threadpool(_resume_lease, ledger, dag_id, run_id)
    try:
        facts = await run_in_threadpool(run_facts, dag_id, run_id, session, user)
        chosen, preview = _chosen(facts), resume_preview(facts)
        if not wanted.dry_run:
            await run_in_threadpool(ledger.runs.lift_suspension, ledger_run_id(dag_id, run_id))
            await _clear(facts, chosen, preview, request)
        return ResumeAnswer(wanted.dry_run, chosen, preview.reuse, preview.run, preview.along, preview.judge)
    finally:
        await run_in_threadpool(ledger.leases.release, lease)


def _resume_lease(ledger: Ledger, dag_id: str, run_id: str) -> Lease:
    name = f"resume of {ledger_run_id(dag_id, run_id)}"
    try:
        return ledger.leases.acquire(name, str(uuid4()), RESUME_SECONDS)
    except LeaseHeld as held:
        raise HTTPException(status.HTTP_409_CONFLICT, str(ResumeUnderWay(f"{dag_id} {run_id}"))) from held
    except LedgerUnavailable as error:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error


def _chosen(facts: RunFacts) -> tuple[TaskToClear, ...]:
    try:
        return clear_set(facts)
    except StageholdError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error


async def _clear(facts: RunFacts, chosen: tuple[TaskToClear, ...], preview: ResumePreview, request: Request) -> None:
    """Call Airflow's public REST route inside this process: it checks the rights again and writes the audit log."""
    from airflow.api_fastapi.main import app

    body: Mapping[str, Any] = {
        "dry_run": False,
        "only_failed": False,
        "reset_dag_runs": True,
        "dag_run_id": facts.dag_run.run_id,
        "task_ids": list(dict.fromkeys(task.address for task in chosen)),
        "note": _note(chosen, preview),
    }
    headers = {name: request.headers[name] for name in IDENTITY if name in request.headers}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url=str(request.base_url.replace(path="/"))
    ) as client:
        answer = await client.post(
            f"/api/v2/dags/{facts.dag_run.dag_id}/clearTaskInstances", json=body, headers=headers
        )
    if answer.is_error:
        raise HTTPException(
            answer.status_code, f"Airflow did not clear the tasks: {answer.json().get('detail', answer.text)}"
        )


def _note(chosen: tuple[TaskToClear, ...], preview: ResumePreview) -> str:
    judged = f", has {preview.judge} judged again" if preview.judge else ""
    counts = f"reuses {preview.reuse} partitions, runs {preview.run}{also_computed(preview.along)}{judged}"
    return "\n".join([f"Resumed by Stagehold: {counts}.", *(f"{task.name}: {task.reason}" for task in chosen)])[
        :NOTE_LENGTH
    ]


def _refusal(request: RunRequest, plan: ResumePlan, ledger: Ledger, settings: Settings) -> StageholdError | None:
    try:
        check_restore(request, ledger)
        refuse_broken_code(request.pipeline, plan, settings)
    except (NothingToRestore, CodeUnusable) as error:
        return error
    return None


def _gate_failures(request: RunRequest, ledger: Ledger) -> Mapping[str, Sequence[GateResult]]:
    gated = [stage.id for stage in request.pipeline.stages if stage.gate]
    return {stage: ledger.gates.failures(Cell(request.pipeline.name, stage, request.interval)) for stage in gated}


def _pipeline_line(pipeline: Pipeline) -> PipelineLine:
    return PipelineLine(pipeline.name, pipeline.schedule, tuple(stage.name for stage in pipeline.stages))


class FreshFiles(StaticFiles):
    """Static files that a browser asks for again each time, so that an upgrade never mixes two versions of the page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def create_api() -> FastAPI:
    """The app to mount. FastAPI's own pages are off, because they would be public."""
    api = FastAPI(title="Stagehold", docs_url=None, redoc_url=None, openapi_url=None, responses=RESPONSES)
    api.include_router(router)
    api.include_router(savepoint_routes)
    api.include_router(gate_routes)
    api.add_middleware(BodyLimit, most_bytes=MOST_BYTES)
    answer_with_problems(api)
    # Public, like Airflow's own scripts: the files hold no data.
    api.mount("/static", FreshFiles(directory=WEB), name="static")
    return api
