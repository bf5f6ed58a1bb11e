"""Which checkpoint a run begins with is looked for once, whatever its name stands for later."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.run.clearing.nights import PIPELINE, Nights

from stagehold.errors import NoSnapshot, UnknownCheckpoint
from stagehold.model.records import Restore
from stagehold.run.planning.candidates import Candidates, manifest_named, settled

pytestmark = pytest.mark.slow

DAY = "2026-11-20"
ASKED = Restore("airflow/new", "asked", None, datetime(2026, 11, 21, tzinfo=UTC))


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path, retained=9)
    nights.run(DAY, "a")
    return nights


def look(nights: Nights, reference: str, said: list[str] | None = None) -> Restore:
    """As each task of the run does."""
    candidates = Candidates(PIPELINE, DAY, ASKED.run_id, nights.settings.lake_uri, nights.ledger)
    said = [] if said is None else said
    asked = nights.ledger.restores.ask(ASKED)
    return settled(asked, lambda: manifest_named(reference, candidates, said.append), nights.ledger)


def test_the_latest_stays_what_it_was_for_the_first_task(nights):
    first = look(nights, "latest")
    assert first.snapshot.endswith(f"a.{DAY}/0000000001.json")
    nights.run(DAY, "b")
    assert look(nights, "latest") == first


def test_what_was_passed_over_is_told(nights):
    nights.run(DAY, "b")
    manifest = look_for(nights, "b")
    manifest.write_text("torn")
    said: list[str] = []
    assert look(nights, "latest", said).snapshot.endswith(f"a.{DAY}/0000000001.json")
    assert "passed over checkpoint of another run 1" in said[0]


@pytest.mark.parametrize(("reference", "refusal"), [("nobody", UnknownCheckpoint), ("latest", NoSnapshot)])
def test_what_is_not_there_is_refused_and_nothing_is_noted(tmp_path, reference, refusal):
    nights = Nights(tmp_path)
    with pytest.raises(refusal):
        look(nights, reference)
    assert nights.ledger.restores.ask(ASKED) == ASKED


def test_a_restore_from_a_stage_needs_no_lake(nights):
    nights.ledger.restores.ask(stage := Restore("airflow/other", "asked", "drafts", ASKED.requested_at))
    assert settled(stage, lambda: pytest.fail("looked for one"), nights.ledger) == stage


def look_for(nights: Nights, run: str):
    return next(nights.settings.home_path.rglob(f"{run}.{DAY}/0000000001.json"))
