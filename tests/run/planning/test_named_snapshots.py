"""Which checkpoint a run begins with is looked for once, whatever its name stands for later."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.run.clearing.nights import PIPELINE, Nights

from stagehold.errors import NoSnapshot, UnknownCheckpoint
from stagehold.model.records import Restore
from stagehold.run.planning.candidates import Candidates, manifest_named, settled
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.spec.settings.run_settings import RestorePolicy

pytestmark = pytest.mark.slow

DAY = "2026-11-20"
ASKED = Restore("airflow/new", "asked", None, datetime(2026, 11, 21, tzinfo=UTC))


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path, retained=9)
    nights.run(DAY, "a")
    return nights


def look(
    nights: Nights, reference: str, said: list[str] | None = None, policy: RestorePolicy = RestorePolicy.FALL_BACK
) -> Restore:
    """As each task of the run does."""
    candidates = Candidates(PIPELINE, DAY, ASKED.run_id, nights.settings.lake_uri, nights.ledger, policy)
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


def test_a_run_that_may_begin_with_nothing_does_so_for_all_of_its_tasks(tmp_path):
    nights = Nights(tmp_path, retained=9)
    said: list[str] = []
    first = look(nights, "latest_or_none", said)
    assert first.snapshot == ""
    assert "there is no checkpoint" in said[0]
    nights.run(DAY, "a")
    assert look(nights, "latest_or_none") == first
    assert BeginsWith.of(first, nights.pipeline, DAY) is None
    assert nights.ledger.checkpoint_history.restored(PIPELINE) == (0, None)


def test_where_there_is_one_it_is_the_latest_and_one_that_cannot_be_read_is_not_none(nights):
    look_for(nights, "a").write_text("torn")
    with pytest.raises(NoSnapshot, match="none of its checkpoints and savepoints verifies"):
        look(nights, "latest_or_none")
    nights.run(DAY, "b")
    assert look(nights, "latest_or_none").snapshot.endswith(f"b.{DAY}/0000000001.json")


def test_a_strict_pipeline_takes_none_but_the_first(nights):
    nights.run(DAY, "b")
    torn = look_for(nights, "b")
    whole = torn.read_text()
    torn.write_text("torn")
    with pytest.raises(NoSnapshot, match=r"(?s)`restore: strict`.*checkpoint of another run 1 \(a.*0000000001.json"):
        look(nights, "latest", policy=RestorePolicy.STRICT)
    torn.write_text(whole)
    assert look(nights, "latest", policy=RestorePolicy.STRICT).snapshot.endswith(f"b.{DAY}/0000000001.json")


def test_a_restore_from_a_stage_needs_no_lake(nights):
    nights.ledger.restores.ask(stage := Restore("airflow/other", "asked", "drafts", ASKED.requested_at))
    assert settled(stage, lambda: pytest.fail("looked for one"), nights.ledger) == stage


def look_for(nights: Nights, run: str):
    return next(nights.settings.home_path.rglob(f"{run}.{DAY}/0000000001.json"))
