"""What the routes of the api-server share: its ledger, and how an error becomes an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from fastapi import HTTPException, status

from stagehold.errors import ForeignDag, LedgerUnavailable, StageholdError, UnknownName
from stagehold.lake.chronicle import open_ledger
from stagehold.ledger.ledger import Ledger
from stagehold.settings import Settings


@cache
def server_ledger(settings: Settings) -> Ledger:
    """One ledger, and so one connection pool, for the life of the api-server."""
    return open_ledger(settings)


@contextmanager
def answering() -> Iterator[None]:
    """Answer an error with its own text, which is the one that a command would print."""
    try:
        yield
    except (UnknownName, ForeignDag) as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, str(error)) from error
    except LedgerUnavailable as error:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error
    except StageholdError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error
