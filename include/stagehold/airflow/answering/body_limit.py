"""Refuses requests that are too large, before anything of them is kept and before anybody asks who sends them."""

from __future__ import annotations

from fastapi import HTTPException, status
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stagehold.airflow.answering.problems import problem_answer

CLOSED = {"Connection": "close"}  # else the server takes all of it, to throw it away


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
