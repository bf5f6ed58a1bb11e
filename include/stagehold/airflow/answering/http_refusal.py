"""What a refusing answer of the web API means to a person, whether we, Airflow, FastAPI or a proxy wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

PROBLEM_JSON = "application/problem+json"
RIGHTS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
SHOWN = 300  # characters of what a proxy says
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Refusal:
    """``why`` is empty if the answer gives no reason. If it ``is_whole``, it also says what was refused, as the texts
    of our own errors do.
    """

    status: int
    why: str
    is_whole: bool = False

    @staticmethod
    def of(status: int, media_type: str, text: str) -> Refusal:
        """The refusal in an answer.

        :param media_type: the header `Content-Type`.
        """
        kind = media_type.split(";")[0].strip().lower()
        try:
            said = json.loads(text)
        except ValueError:
            return Refusal(status, _of_page(text) if kind.endswith("html") else _one_line(text)[:SHOWN])
        detail = said.get("detail") if isinstance(said, Mapping) else None
        why = "" if detail == _phrase(status) else _one_line(_of_detail(detail))
        is_ours = isinstance(said, Mapping) and kind == PROBLEM_JSON
        return Refusal(status, why, is_ours and bool(why) and status not in RIGHTS and "errors" not in said)

    def sentence(self, what: str) -> str:
        """The refusal as a sentence.

        :param what: what was not done, such as "start the backfill of orders".
        """
        if self.is_whole:
            return _ended(self.why)
        named = f"{self.status} {_phrase(self.status)}".strip()
        return f"Airflow did not {what} ({named}){f': {_ended(self.why)}' if self.why else ', and does not say why.'}"


def _of_detail(detail: Any) -> str:
    """The text of `detail`: FastAPI has a list of fields there, Airflow a document if its database refused, and
    otherwise it is a text.
    """
    if isinstance(detail, list):
        return "; ".join(_of_field(one) for one in detail)
    if isinstance(detail, Mapping):
        return ". ".join(str(detail[key]).rstrip(".") for key in ("reason", "message") if detail.get(key))
    return "" if detail is None else str(detail)


def _of_field(found: Any) -> str:
    if not isinstance(found, Mapping):
        return str(found)
    place = ".".join(str(part) for part in found.get("loc", ()) if part != "body")
    return f"{place}: {found.get('msg', '')}" if place else str(found.get("msg", ""))


def _of_page(text: str) -> str:
    title = TITLE.search(text)
    return _one_line(title[1])[:SHOWN] if title else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
