"""How the web API says no: problem details as RFC 9457 has them, which `detail` makes readable for a person."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from stagehold.airflow.answering.answers import PROBLEM_JSON

SHOWN = 60  # characters of a field's name, which the caller chose
UNEXPECTED = (
    "The server met an error that it did not expect; its log has it. Nothing was changed that this does not show."
)


class ProblemDetails(BaseModel):
    """``title`` follows from the status; ``errors`` are the fields of a request that were not understood."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "It was refused, or did not work.",
        "content": {PROBLEM_JSON: {"schema": ProblemDetails.model_json_schema()}},
    }
}


class ProblemAnswer(JSONResponse):
    media_type = PROBLEM_JSON


def answer_with_problems(api: FastAPI) -> None:
    """Whatever a route raises becomes such an answer."""
    api.add_exception_handler(HTTPException, _refused)
    api.add_exception_handler(RequestValidationError, _not_understood)
    api.add_exception_handler(Exception, _unexpected)


def problem_answer(code: int, detail: str, errors: list[dict[str, Any]] | None = None) -> ProblemAnswer:
    found = ProblemDetails(title=HTTPStatus(code).phrase, status=code, detail=detail, errors=errors)
    return ProblemAnswer(found.model_dump(exclude_none=True), code)


async def _refused(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    answer = problem_answer(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _not_understood(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    """Say what is wrong and where; FastAPI would send the input back, too."""
    assert isinstance(error, RequestValidationError)
    errors = [_field(one) for one in error.errors()]
    detail = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in errors)
    return problem_answer(status.HTTP_422_UNPROCESSABLE_CONTENT, detail, errors)


async def _unexpected(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    """Starlette raises the error again behind it, for the server's log."""
    return problem_answer(status.HTTP_500_INTERNAL_SERVER_ERROR, UNEXPECTED)


def _field(found: dict[str, Any]) -> dict[str, Any]:
    return {"type": found["type"], "loc": [str(part)[:SHOWN] for part in found["loc"]], "msg": found["msg"]}
