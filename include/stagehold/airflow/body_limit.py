"""What the web API does with requests that are too large or say nothing that it understands:
refuse them without repeating them.
"""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHOWN = 60  # characters of a field's name, which the caller chose


class BodyLimit:
    """Refuses a request whose body is larger than ``most_bytes``:
    at its header, or where what arrives passes the limit.
    """

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _declared_bytes(scope) > self.most_bytes:
            await JSONResponse({"detail": self._text}, status.HTTP_413_CONTENT_TOO_LARGE)(scope, receive, send)
        else:
            await self.app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > self.most_bytes:
                raise HTTPException(status.HTTP_413_CONTENT_TOO_LARGE, self._text)
            return message

        return counted

    @property
    def _text(self) -> str:
        return f"The request is larger than {self.most_bytes} bytes and was not read."


async def without_input(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    """Say what is wrong and where; FastAPI would send the input back, too."""
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": [_problem(one) for one in error.errors()]}, status.HTTP_422_UNPROCESSABLE_CONTENT)


def _problem(found: dict[str, Any]) -> dict[str, Any]:
    return {"type": found["type"], "loc": [str(part)[:SHOWN] for part in found["loc"]], "msg": found["msg"]}


def _declared_bytes(scope: Scope) -> int:
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    return int(declared) if declared.isdigit() else 0
