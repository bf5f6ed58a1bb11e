"""What a run begins with that is to begin with the latest."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.run.clearing.nights import PIPELINE, Nights

from stagehold.errors import NoSnapshot
from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.run.planning.candidates import Candidates
from stagehold.run.savepoints.creating import create_savepoint

DAY = "2026-11-20"


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path, retained=9)
    nights.run(DAY, "a")
    nights.run(DAY, "b")
    asked = SavepointRequest("kept", f"b.{DAY}", False, "ann", "", datetime.now(UTC))
    create_savepoint(asked, nights.pipeline, nights.workplace)
    return nights


def latest(nights: Nights, run: str = "new") -> tuple[str, list[str]]:
    """Run, number, and why others were passed over."""
    found = Candidates(PIPELINE, DAY, f"{run}.{DAY}", nights.settings.lake_uri, nights.ledger)
    address, choice = found.latest()
    return "/".join(address.split("/")[-2:]), [f"{source}: {why}" for source, why in choice.passed_over]


def manifest(nights: Nights, run: str, number: int) -> Path:
    return Path(nights.settings.lake_uri, "checkpoints", PIPELINE, DAY, f"{run}.{DAY}", f"{number:010d}.json")


def test_other_runs_newest_comes_before_savepoints_and_the_runs_own_before_that(nights):
    assert latest(nights) == (f"b.{DAY}/0000000001.json", [])
    assert latest(nights, "a") == (f"a.{DAY}/0000000001.json", [])


def test_one_that_cannot_be_read_is_passed_over_and_named(nights):
    manifest(nights, "b", 1).write_text("torn")
    found, passed = latest(nights)
    assert found == f"a.{DAY}/0000000001.json"
    assert len(passed) == 1
    assert "0000000001.json is no JSON" in passed[0]


def test_one_whose_data_is_gone_is_passed_over(nights):
    Path(nights.files(DAY)["drafts"][0]).unlink()
    with pytest.raises(NoSnapshot, match="the data of 1 partitions of drafts is gone") as refused:
        latest(nights)
    assert len(refused.value.refused) == 3


def test_without_any_there_is_none(tmp_path):
    with pytest.raises(NoSnapshot, match="it has no checkpoint or savepoint"):
        latest(Nights(tmp_path))
