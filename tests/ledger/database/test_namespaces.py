"""The ledger of a sandbox in production's database: a schema of its own, made with it and deleted with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError
from tests.ledger.samples import run
from tests.postgres import BACK_ENDS, GIVEN_SERVER

from stagehold.errors import LedgerUnavailable
from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.migrate import drop_schema, sandboxes_with_schema
from stagehold.settings import Settings

pytestmark = pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL")
NAME = "fix-2"


@pytest.fixture
def production(migrated_schema) -> Settings:
    settings = Settings(ledger=migrated_schema)
    yield settings
    drop_schema(settings.in_sandbox(NAME).ledger_url)


def test_a_sandbox_has_tables_of_its_own(production):
    sandbox = production.in_sandbox(NAME)
    with Ledger.open(production.ledger_url) as ledger, Ledger.open(sandbox.ledger_url) as own:
        before = ledger.runs.recent(100)
        own.runs.start(replace(run(), run_id="tried"))
        assert [run.run_id for run in own.runs.recent(100)] == ["tried"]
        assert ledger.runs.recent(100) == before
    with Ledger.open(sandbox.ledger_url) as again:
        assert [run.run_id for run in again.runs.recent(100)] == ["tried"]


def test_it_is_listed_and_goes_alone(production):
    sandbox = production.in_sandbox(NAME)
    Ledger.open(sandbox.ledger_url).close()
    assert NAME in sandboxes_with_schema(production.ledger_url)
    drop_schema(sandbox.ledger_url)
    assert NAME not in sandboxes_with_schema(production.ledger_url)
    drop_schema(sandbox.ledger_url)
    drop_schema(production.ledger_url)
    with Ledger.open(production.ledger_url) as ledger:
        ledger.runs.recent(1)


@pytest.mark.skipif(bool(GIVEN_SERVER), reason="roles of a server that is not ours are left alone")
def test_who_may_not_write_to_production_can_work_in_a_sandbox(production, postgres_server):
    """By permission of the server: a role that may read production's schema, and make others."""
    schema = production.ledger_url.rpartition("search_path%3D")[2]
    sandbox = production.in_sandbox(NAME)
    asking = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with asking.connect() as connection:
        connection.execute(text("CREATE ROLE guest LOGIN"))
        connection.execute(text("GRANT CREATE ON DATABASE postgres TO guest"))
        connection.execute(text(f"GRANT USAGE ON SCHEMA {schema} TO guest"))
        connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO guest"))
    try:
        as_guest = sandbox.ledger_url.replace("postgres@", "guest@", 1)
        with Ledger.open(as_guest) as own:
            assert own.runs.start(run()) == run()
        refused = Database(production.ledger_url.replace("postgres@", "guest@", 1))
        with (
            pytest.raises(LedgerUnavailable, match=r"permission denied.*owner and permissions"),
            refused.writing() as connection,
        ):
            connection.execute(text("DELETE FROM runs"))
        drop_schema(as_guest)
    finally:
        with asking.connect() as connection:
            connection.execute(text("DROP OWNED BY guest CASCADE"))
            connection.execute(text("DROP ROLE guest"))
        asking.dispose()


def test_a_schema_that_is_no_sandboxs_is_not_made(postgres_server):
    mistyped = Settings(ledger=postgres_server).in_sandbox(NAME).ledger_url.replace("sandbox_fix_2", "prodction")
    with pytest.raises(ProgrammingError, match="no schema has been selected"):
        Ledger.open(mistyped)
