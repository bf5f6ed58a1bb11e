"""The base of all answers of the web API: models whose fields are the JSON, and when their facts were looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class ResponseModel(BaseModel):
    """An answer, or a part of one: FastAPI sends its fields in their order, and describes them by its docstring."""

    model_config = ConfigDict(frozen=True)


class LookedInto(StrEnum):
    RECORD = "record"  # the ledger alone
    LAKE = "lake"  # the ledger, and whether the files that it has on record are still there


class Looked(ResponseModel):
    """What an answer was made from. ``at`` is None if that is the ledger alone, which is read for each answer;
    ``problem`` says why the lake was not looked into although it should have been.
    """

    into: LookedInto
    at: datetime | None = None
    problem: str | None = None


AS_RECORDED = Looked(into=LookedInto.RECORD)


def found_now() -> Looked:
    """The lake is being looked into at this moment."""
    return Looked(into=LookedInto.LAKE, at=datetime.now(UTC))
