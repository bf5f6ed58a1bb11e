"""Refusals of the web API as problem details of RFC 9457, with a `detail` that a person can read."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException as AnyHttpException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stagehold.airflow.answering.http_refusal import PROBLEM_JSON

log = logging.getLogger(__name__)

SHOWN = 60  # characters of a field's name, which the caller chose
UNEXPECTED = (
    "The server met an error that it did not expect; its log has it. Nothing was changed that this does not show."
)
DATABASE_BUSY = (
    "Airflow's database did not answer: it is locked by another process, or cannot be reached. Nothing was changed. "
    "Ask again in some seconds."
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
    """Turn every error that a route raises into such an answer."""
    api.add_exception_handler(AnyHttpException, _refused)
    api.add_exception_handler(RequestValidationError, _not_understood)
    api.add_exception_handler(OperationalError, _database_busy)
    api.add_exception_handler(Exception, _unexpected)


def problem_answer(code: int, detail: str, errors: list[dict[str, Any]] | None = None) -> ProblemAnswer:
    found = ProblemDetails(title=HTTPStatus(code).phrase, status=code, detail=detail, errors=errors)
    return ProblemAnswer(found.model_dump(exclude_none=True), code)


async def _refused(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    assert isinstance(error, AnyHttpException)
    answer = problem_answer(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _not_understood(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    """Say what is wrong and where; FastAPI would send the input back, too."""
    assert isinstance(error, RequestValidationError)
    errors = [_field(one) for one in error.errors()]
    detail = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in errors)
    return problem_answer(status.HTTP_422_UNPROCESSABLE_CONTENT, detail, errors)


async def _database_busy(request: Request, error: Exception) -> ProblemAnswer:
    """Airflow's own database is locked or away; errors of the ledger have other classes."""
    log.warning("%s %s: %s", request.method, request.url.path, error)
    answer = problem_answer(status.HTTP_503_SERVICE_UNAVAILABLE, DATABASE_BUSY)
    answer.headers["Retry-After"] = "2"
    return answer


async def _unexpected(request: Request, error: Exception) -> ProblemAnswer:  # noqa: ARG001
    """Starlette raises the error again behind it, for the server's log."""
    return problem_answer(status.HTTP_500_INTERNAL_SERVER_ERROR, UNEXPECTED)


def _field(found: dict[str, Any]) -> dict[str, Any]:
    return {"type": found["type"], "loc": [str(part)[:SHOWN] for part in found["loc"]], "msg": found["msg"]}


CLOSED = {"Connection": "close"}  # else the server receives the whole body, only to throw it away


class BodyLimit:
    """Refuses a request whose body is larger than ``most_bytes``: by its header, or when the body passes the limit."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _declared_bytes(scope) > self.most_bytes:
            answer = problem_answer(status.HTTP_413_CONTENT_TOO_LARGE, self._text)
            answer.headers.update(CLOSED)
            await answer(scope, receive, send)
        else:
            await self.app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > self.most_bytes:
                raise HTTPException(status.HTTP_413_CONTENT_TOO_LARGE, self._text, CLOSED)
            return message

        return counted

    @property
    def _text(self) -> str:
        return f"The request is larger than {self.most_bytes} bytes and was not read."


def _declared_bytes(scope: Scope) -> int:
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    return int(declared) if declared.isdigit() else 0
