"""The web API of a run's page: what it shows, and Resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, HTTPException, Query, Request, Response, status
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from stagehold.airflow.answering.access import MAY_RESUME, MAY_SEE_RUN, SAME_ORIGIN_JSON, may_resume, may_stop
from stagehold.airflow.answering.api_server import (
    answer_unless_known,
    answering,
    call_airflow,
    refuse_as_airflow,
    server_ledger,
)
from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.airflow.answering.response_model import AS_RECORDED
from stagehold.airflow.answering.rights import Right, has_right
from stagehold.airflow.run_page.resume_lease import Presser, resume_lease
from stagehold.airflow.run_page.run_facts import ResumeFacts
from stagehold.airflow.run_page.run_grid import (
    RunPage,
    clear_set,
    refused_to_readers,
    resume_preview,
    run_history,
    run_page,
    seen_by,
    unplanned,
    waiver_lines,
)
from stagehold.airflow.run_page.run_reading import KnownRun, read_facts, read_resume_facts
from stagehold.airflow.run_page.run_responses import (
    PartitionCell,
    ResumeAnswer,
    ResumePreview,
    RunGrid,
    RunHistory,
)
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.airflow.runs.audit import deeds_of_people
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.airflow.runs.task_clearing import TaskToClear
from stagehold.errors.base import StageholdError
from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.errors.request_errors import RunStillActive, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.standing import Standing, together
from stagehold.plan.resume.decisions import also_computed
from stagehold.run.intervals.interval_standings import stage_standings
from stagehold.run.planning.acceptance import all_waivers
from stagehold.run.upkeep.run_archive import report_of
from stagehold.settings import Settings

LARGE = 5_000  # partitions; the first answer for a run with more does not wait for its plan
MOST_CELLS = 2_000  # in one answer
LOOKED_AT = "Stagehold-Looked-At"
NOTE_LENGTH = 1000  # what Airflow accepts as a task's note

_PAGES = KeptPages[RunPage]("pages of runs")
# Run ids may hold any character, a slash too, hence :path.
router = APIRouter(prefix="/api/dags/{dag_id}/runs/{run_id:path}")


class ResumeRequest(BaseModel):
    """With ``dry_run`` nothing is cleared; the answer says what would be, to as many callers at once as ask."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = False


class AgainRequest(ResumeRequest):
    """``stages`` are computed once more; stages that read them run if their data comes out different."""

    stages: Annotated[tuple[str, ...], Field(min_length=1)]


@router.get("/grid", dependencies=[MAY_SEE_RUN], response_model=RunGrid)
def grid(dag: PlacedDep, run_id: str, session: SessionDep, user: GetUserDep, request: Request) -> Response:
    """What the page shows. If nobody can look into the lake, that is the ledger's figures alone, with the reason. A
    caller that has the answer already, by its ETag, gets 304, with the moment at which it was looked at.
    """
    with answering():
        ledger = server_ledger(dag.settings)
        known = KnownRun.read(dag, run_id, session, ledger)
        shown = seen_by(
            _shown(known, ledger, dag.settings),
            known.dag_run,
            may_resume=may_resume(dag.place, user),
            may_waive=has_right(Right.WAIVE, user, dag.settings),
            may_stop=may_stop(dag.place, user),
        )
    timeless = shown.model_copy(update={"looked": shown.looked.model_copy(update={"at": None})})
    answer = answer_unless_known(shown, request, same_as=timeless)
    if shown.looked.at:
        answer.headers[LOOKED_AT] = shown.looked.at.isoformat()
    return answer


@router.get("/plan", dependencies=[MAY_SEE_RUN])
def plan(dag: PlacedDep, run_id: str, session: SessionDep, user: GetUserDep) -> ResumePreview:
    """What Resume would do, planned anew."""
    preview = resume_preview(_facts(dag, run_id, session))
    return preview if may_resume(dag.place, user) else refused_to_readers(preview)


@router.get("/stages/{stage}/cells", dependencies=[MAY_SEE_RUN])
def cells(
    dag: PlacedDep,
    run_id: str,
    stage: str,
    first: Annotated[int, Query(ge=0)],
    last: Annotated[int, Query(ge=0)],
    session: SessionDep,
) -> tuple[PartitionCell, ...]:
    """Partitions of a stage, from one number to another, both included."""
    if not 0 <= last - first < MOST_CELLS:
        allowed = f"a range of at most {MOST_CELLS:,} partitions, the first one first"
        raise HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, f"first={first}&last={last}: ask for {allowed}.")
    with answering():
        ledger = server_ledger(dag.settings)
        page = _page(KnownRun.read(dag, run_id, session, ledger), ledger, dag.settings)
    if page is None:
        raise HTTPException(status.HTTP_409_CONFLICT, "The run is being looked at. Ask again in some seconds.")
    _, cells_of = page
    if stage not in cells_of:
        known = ", ".join(cells_of)
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"The pipeline has no stage {stage}. It has: {known}.")
    return cells_of[stage].between(first, last)


@router.get("/timeline", dependencies=[MAY_SEE_RUN])
def timeline(dag: PlacedDep, run_id: str, session: SessionDep) -> RunHistory:
    """What happened to the run, who did what to it in Airflow, and what people waived in its interval. The part that
    the ledger has forgotten comes from the lake.
    """
    deeds = deeds_of_people(dag.place.dag_id, run_id, session)
    with answering():
        settings, own = dag.settings, dag.place.run(run_id)
        ledger = server_ledger(settings)
        try:
            report = report_of(own, ledger, settings.lake_uri)
        except UnknownName:
            return run_history(None, deeds)
        pipeline = dag.pipeline
        words = waiver_lines(pipeline, all_waivers(pipeline.name, report.run.interval, ledger, settings))
        archived = len(report.history) > len(ledger.transitions.of_run(own))
        return run_history(report, deeds, words=words, archived=archived)


@router.post("/resume", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
async def resume(
    dag: PlacedDep, run_id: str, wanted: ResumeRequest, session: SessionDep, user: GetUserDep, request: Request
) -> ResumeAnswer:
    """Clear the least that brings the run to its end, in the same run, with the caller's own rights.

    Of several callers at once one has the run's resume lease. Airflow's record of the run is read under it, so whoever
    has it next finds the run under way. What somebody clears meanwhile in another way is not seen.
    """
    return await _resume((), wanted, dag, run_id, session, user.get_name(), request)


@router.post("/again", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
async def again(
    dag: PlacedDep, run_id: str, wanted: AgainRequest, session: SessionDep, user: GetUserDep, request: Request
) -> ResumeAnswer:
    """Resume the run, and have it compute stages once more even if nothing changed: once, however often its tasks are
    tried or cleared after that.
    """
    return await _resume(wanted.stages, wanted, dag, run_id, session, user.get_name(), request)


async def _resume(
    stages: Sequence[str],
    wanted: ResumeRequest,
    dag: PlacedPipeline,
    run_id: str,
    session: Session,
    user: str,
    request: Request,
) -> ResumeAnswer:
    if wanted.dry_run:
        facts = await run_in_threadpool(_facts, dag, run_id, session, stages)
        return _answer(wanted, _chosen(facts), resume_preview(facts))
    presser = Presser.now(user)
    with answering():
        ledger = server_ledger(dag.settings)
    lease = await run_in_threadpool(resume_lease, ledger, dag.place, run_id, presser)
    try:
        facts = await run_in_threadpool(_facts, dag, run_id, session, stages)
        chosen, preview = _chosen(facts), resume_preview(facts)
        if stages and facts.dag_run.request.restore:
            await run_in_threadpool(ledger.restores.ask, facts.dag_run.request.restore)
        await run_in_threadpool(ledger.runs.lift_suspension, dag.place.run(run_id))
        await _clear(facts, chosen, _note(chosen, preview), request)
        await run_in_threadpool(presser.put_on_record, facts.dag_run.request.run_id, _note(chosen, preview), ledger)
        return _answer(wanted, chosen, preview)
    finally:
        await run_in_threadpool(ledger.leases.release, lease)


def _answer(wanted: ResumeRequest, chosen: tuple[TaskToClear, ...], preview: ResumePreview) -> ResumeAnswer:
    counts = preview.model_dump(include={"reuse", "run", "along", "judge", "retract"})
    return ResumeAnswer(dry_run=wanted.dry_run, cleared=chosen, **counts)


def _facts(dag: PlacedPipeline, run_id: str, session: Session, again: Sequence[str] = ()) -> ResumeFacts:
    """The facts, read anew: a change is decided by the present state.

    :param again: stages that are to be computed once more.
    """
    with answering():
        ledger = server_ledger(dag.settings)
        known = KnownRun.read(dag, run_id, session, ledger)
        return read_resume_facts(known.again(again) if again else known, ledger, dag.settings)


def _page(known: KnownRun, ledger: Ledger, settings: Settings) -> RunPage | None:
    request = known.request
    return _PAGES.page(
        request.run_id,
        (request, ledger.revision, known.dag_run.state, known.dag_run.places),
        lambda: run_page(read_facts(known, ledger, settings)),
        lambda: _is_large(known, ledger),
    )


def _is_large(known: KnownRun, ledger: Ledger) -> bool:
    """Whether the run has very many partitions. The declared numbers cost nothing to read, and are mostly the true
    ones.
    """
    declared = sum(stage.partitions for stage in known.request.pipeline.stages)
    return declared > LARGE or _standing(known, ledger).total > LARGE


def _standing(known: KnownRun, ledger: Ledger) -> Standing:
    return together(stage_standings(known.request.pipeline, known.request.interval, ledger).values())


def _shown(known: KnownRun, ledger: Ledger, settings: Settings) -> RunGrid:
    """The grid with what is found in the lake now, or else with what is recorded."""
    looked = AS_RECORDED
    try:
        if page := _page(known, ledger, settings):
            grid, _ = page
            return grid
    except (UnknownName, LedgerUnavailable):
        raise
    except StageholdError as error:
        looked = AS_RECORDED.model_copy(update={"problem": str(error)})
    return unplanned(known.dag_run, _standing(known, ledger), looked)


def _chosen(facts: ResumeFacts) -> tuple[TaskToClear, ...]:
    try:
        return clear_set(facts)
    except RunStillActive as error:
        raise HTTPException(status.HTTP_409_CONFLICT, f"{error}{_pressed(facts)}") from error
    except StageholdError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error


def _pressed(facts: ResumeFacts) -> str:
    """The user who resumed a run that goes on."""
    last = facts.resumed
    return f" {last.subject} resumed it at {last.recorded_at:%Y-%m-%d %H:%M:%S} (UTC)." if last else ""


async def _clear(facts: ResumeFacts, chosen: tuple[TaskToClear, ...], note: str, request: Request) -> None:
    body: Mapping[str, Any] = {
        "dry_run": False,
        "only_failed": False,
        "reset_dag_runs": True,
        "dag_run_id": facts.dag_run.run_id,
        "task_ids": list(dict.fromkeys(task.address for task in chosen)),
        "note": note,
    }
    answer = await call_airflow("POST", f"/api/v2/dags/{facts.dag_run.place.dag_id}/clearTaskInstances", body, request)
    refuse_as_airflow(answer, "clear the tasks")


def _note(chosen: tuple[TaskToClear, ...], preview: ResumePreview) -> str:
    judged = f", has {preview.judge} judged again" if preview.judge else ""
    retracted = f", takes {preview.retract} out of their tables" if preview.retract else ""
    counts = f"reuses {preview.reuse} partitions, runs {preview.run}{also_computed(preview.along)}{judged}{retracted}"
    released = (f"{preview.released}.",) if preview.released else ()
    reasons = (f"{task.name}: {task.reason}" for task in chosen)
    return "\n".join([f"Resumed by Stagehold: {counts}.", *released, *reasons])[:NOTE_LENGTH]
