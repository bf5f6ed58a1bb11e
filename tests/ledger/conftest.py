"""Every test that takes `ledger` or `ledger_url` is part of the contract,
so it runs on every back end that this machine has.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.postgres import BACK_ENDS, own_schema, postgres_server

from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import metadata

__all__ = ["postgres_server"]


@pytest.fixture(params=BACK_ENDS)
def back_end(request) -> str:
    return request.param


@pytest.fixture
def empty_ledger_url(back_end, request, tmp_path) -> Iterator[str]:
    """A place for a ledger in which there is nothing yet."""
    if back_end == "sqlite":
        yield f"sqlite:///{tmp_path / 'new folder' / 'ledger.db'}"
    else:
        with own_schema(request.getfixturevalue("postgres_server")) as url:
            yield url


@pytest.fixture
def ledger_url(back_end, request) -> str:
    """A ledger in which nothing has happened, for tests that leave its schema as it is.

    Migrating takes longer than most tests, so it is done once: on a server one test after the other has the same schema
    without the rows of the one before.
    """
    if back_end == "sqlite":
        return f"sqlite:///{request.getfixturevalue('ledger_file')}"
    url = request.getfixturevalue("migrated_schema")
    with Database(url).writing() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    return url


@pytest.fixture(scope="session")
def migrated_schema(postgres_server) -> Iterator[str]:
    with own_schema(postgres_server) as url:
        Ledger.open(url).close()
        yield url


@pytest.fixture
def ledger(ledger_url) -> Iterator[Ledger]:
    with Ledger.open(ledger_url) as opened:
        yield opened
