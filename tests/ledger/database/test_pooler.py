"""A ledger behind pgbouncer, which gives each transaction another connection and takes no options of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text
from tests.ledger.samples import run
from tests.pooler import PROGRAM, own_pooler
from tests.postgres import BACK_ENDS

from stagehold.errors import LedgerUnavailable
from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.migrate import drop_schema, sandboxes_with_schema
from stagehold.settings import Settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL"),
]


@pytest.fixture
def pooled(postgres_server: str) -> Iterator[str]:
    if PROGRAM is None:
        pytest.skip("this machine has no pgbouncer")
    with own_pooler(postgres_server) as url:
        yield url


def test_production_and_a_sandbox_share_a_pooler_and_no_table(pooled: str, migrated_schema: str) -> None:
    schema = migrated_schema.rpartition("search_path%3D")[2]
    production = Settings(ledger=f"{pooled}&options=-csearch_path%3D{schema}")
    sandbox = production.in_sandbox("pooled")
    try:
        with Ledger.open(production.ledger_url) as ledger, Ledger.open(sandbox.ledger_url) as own:
            before = {found.run_id for found in ledger.runs.recent(100)}
            for turn in range(5):
                own.runs.start(replace(run(), run_id=f"tried-{turn}"))
                assert {found.run_id for found in ledger.runs.recent(100)} == before
            assert len(own.runs.recent(100)) == 5
        assert "pooled" in sandboxes_with_schema(production.ledger_url)
    finally:
        drop_schema(sandbox.ledger_url)
    assert "pooled" not in sandboxes_with_schema(production.ledger_url)


def test_what_a_transaction_sets_is_gone_with_it(postgres_server: str) -> None:
    """The next one may be somebody else's."""
    database = Database(f"{postgres_server}&options=-csearch_path%3Dpg_catalog%20-cstatement_timeout%3D7s")
    with database.reading() as connection:
        assert connection.scalar(text("SHOW search_path")) == "pg_catalog"
        assert connection.scalar(text("SHOW lock_timeout")) == "10s"
        assert connection.scalar(text("SHOW statement_timeout")) == "7s"
        connection.commit()
        bare = connection.connection.cursor()
        bare.execute("SHOW search_path")
        assert bare.fetchone() == ('"$user", public',)
    database.close()


def test_of_two_search_paths_the_last_counts(postgres_server: str) -> None:
    twice = Database(f"{postgres_server}&options=-csearch_path%3Da%20-csearch_path%3Dpg_catalog")
    with twice.reading() as connection:
        assert connection.scalar(text("SHOW search_path")) == "pg_catalog"
    twice.close()


@pytest.mark.parametrize("password", ["p/q", "p@q", 'p"q', "p:q", "p%q", "p q#?", "ü"])
def test_a_password_may_have_any_characters_that_are_written_as_in_an_address(password: str) -> None:
    """It is read back as it is, and shown by no error."""
    from urllib.parse import quote

    database = Database(f"postgresql://me:{quote(password, safe='')}@127.0.0.1:1/ledger?options=-csearch_path%3Dx")
    assert database.url.password == password
    with pytest.raises(LedgerUnavailable) as away, database.reading():
        pass
    assert password not in str(away.value)
    assert Settings(ledger=str(database.url.render_as_string(hide_password=False))).in_sandbox("a").ledger_url
