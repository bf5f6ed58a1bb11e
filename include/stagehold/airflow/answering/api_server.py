"""What all routes of the api-server share: the ledger, errors as answers, answers that the caller already has, and
calls of Airflow's own routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any

import httpx
from fastapi import HTTPException, Request, Response, status
from pydantic import BaseModel

from stagehold.airflow.answering.http_refusal import Refusal
from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors.base import StageholdError
from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.errors.request_errors import ForeignDag, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.settings import Settings

IDENTITY = ("authorization", "cookie")  # headers by which Airflow knows the caller


@cache
def server_ledger(settings: Settings) -> Ledger:
    """The ledger, with one connection pool, for the life of the api-server."""
    return open_ledger(settings)


@contextmanager
def answering() -> Iterator[None]:
    """Answer an error with its own text, which is the text that a command would print."""
    try:
        yield
    except (UnknownName, ForeignDag) as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, str(error)) from error
    except LedgerUnavailable as error:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error
    except StageholdError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error


def answer_unless_known(told: BaseModel, request: Request, *, same_as: BaseModel | None = None) -> Response:
    """The answer as JSON with its ETag. A caller that names this ETag has the same answer already, and gets 304.

    :param same_as: the answer without the parts whose changes do not count.
    """
    body = told.model_dump_json().encode()
    told_apart = body if same_as is None else same_as.model_dump_json().encode()
    headers = {
        "ETag": f'"{sha256(told_apart).hexdigest()[:32]}"',
        "Cache-Control": "private, no-cache",
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


async def call_airflow(method: str, path: str, body: Mapping[str, Any], request: Request) -> httpx.Response:
    """Call a public REST route of Airflow's inside this process, as whoever made the ``request``: it checks the rights
    again and writes the audit log.
    """
    from airflow.api_fastapi.main import app

    headers = {name: request.headers[name] for name in IDENTITY if name in request.headers}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=str(request.base_url.replace(path="/"))) as client:
        return await client.request(method, path, json=body, headers=headers)


def refuse_as_airflow(answer: httpx.Response, what: str) -> None:
    """Answer as Airflow did, if it refused.

    :param what: was asked of it, such as "clear the tasks".
    """
    if answer.is_error:
        said = Refusal.of(answer.status_code, answer.headers.get("content-type", ""), answer.text)
        raise HTTPException(answer.status_code, said.sentence(what))
