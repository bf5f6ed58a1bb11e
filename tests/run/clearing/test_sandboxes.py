"""Which sandboxes there are, and what goes with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import BACK_ENDS, own_schema

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import LeaseHeld, ProductionMissing, UnknownName
from stagehold.lake.store.files import files_at
from stagehold.ledger.database.migrate import drop_schema
from stagehold.run.clearing.sandboxes import remove_sandbox, require_production, sandboxes
from stagehold.settings import Settings


@pytest.fixture
def production(tmp_path) -> Settings:
    settings = Settings(home=str(tmp_path / "home"))
    files_at(settings.lake_uri).create("raw/a", b"data")
    return settings


def make(production: Settings, name: str, content: bytes = b"12345") -> Settings:
    own = production.in_sandbox(name)
    open_ledger(own).close()
    files_at(own.lake_uri).create("stages/a", content)
    return own


def everything(settings: Settings) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in settings.home_path.rglob("*") if path.is_file()}


def test_all_of_a_home_are_found_with_what_they_have(production):
    assert sandboxes(production) == ()
    own = make(production, "b")
    make(production, "a")
    found = sandboxes(own)
    assert [one.name for one in found] == ["a", "b"]
    assert found[1].lake == own.lake_uri
    assert found[1].ledger == own.ledger_url
    assert found[1].bytes == 5 + sum(path.stat().st_size for path in Path(own.sandboxes_folder, "b").glob("ledger*"))
    assert found[1].changed_at is not None


def test_removing_one_leaves_production_and_the_others(production):
    open_ledger(production).close()
    make(production, "b")
    before = everything(production)
    make(production, "a")
    assert remove_sandbox("a", production).name == "a"
    assert everything(production) == before
    with pytest.raises(UnknownName, match=r"There is no sandbox 'a'. Known: b"):
        remove_sandbox("a", production)


@pytest.mark.parametrize("name", ["..", ".", "", "../lake"])
def test_what_is_no_name_removes_nothing(production, name):
    before = everything(production)
    with pytest.raises(UnknownName):
        remove_sandbox(name, production)
    assert everything(production) == before


def test_a_sandbox_that_somebody_works_in_stays(production):
    with open_ledger(make(production, "a")) as ledger:
        lease = ledger.leases.acquire("sales/2026-11-20/orders", "me", 60)
        with pytest.raises(LeaseHeld, match="worked on by me"):
            remove_sandbox("a", production)
        ledger.leases.release(lease)
    remove_sandbox("a", production)
    assert sandboxes(production) == ()


def test_a_sandbox_without_production_is_refused(production, tmp_path):
    require_production(production)
    require_production(production.in_sandbox("a"))
    nowhere = Settings(home=str(tmp_path / "nowhere"))
    require_production(nowhere)
    with pytest.raises(ProductionMissing, match="nowhere/lake, so sandbox a has nothing to read"):
        require_production(nowhere.in_sandbox("a"))


def test_in_a_bucket_they_lie_beside_the_lake(s3_lake, tmp_path):
    production = Settings(home=str(tmp_path / "home"), lake=s3_lake)
    files_at(s3_lake).create("raw/a", b"data")
    own = make(production, "a")
    make(production, "ab")
    require_production(own)
    assert own.lake_uri == f"{s3_lake}-sandboxes/a/lake"
    assert [sandbox.name for sandbox in sandboxes(production)] == ["a", "ab"]
    remove_sandbox("a", production)
    assert [sandbox.name for sandbox in sandboxes(production)] == ["ab"]
    assert files_at(s3_lake).read("raw/a") == b"data"
    assert not Path(own.sandboxes_folder, "a").exists()


@pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL")
def test_a_ledger_on_a_server_is_found_and_goes_as_well(postgres_server, tmp_path):
    with own_schema(postgres_server) as url:
        production = Settings(home=str(tmp_path / "home"), ledger=url)
        open_ledger(production).close()
        own = production.in_sandbox("pg-1")
        open_ledger(own).close()
        try:
            assert [sandbox.name for sandbox in sandboxes(production)] == ["pg-1"], "though it has no file yet"
            remove_sandbox("pg-1", production)
            assert sandboxes(production) == ()
            with open_ledger(production) as ledger:
                assert ledger.runs.recent(1) == ()
        finally:
            drop_schema(own.ledger_url)
