"""Which checkpoint is meant by a run, a number, an address or a folder; in a folder and in a bucket."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lake.checkpoints.samples import NOW, PIPELINE, RUN, checkpoint, record, stage, stored

from stagehold.errors import CheckpointCorrupt, UnknownCheckpoint, UnknownName
from stagehold.lake.checkpoints.references import find_checkpoint
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import files_at

OTHER = replace(RUN, run_id="sample/cli#1", interval="a b")


@pytest.fixture
def two_runs(lake):
    """Checkpoints 1 and 2 of one run, and 7, which was taken later, of another."""
    for number in (1, 2):
        stored(lake).write(checkpoint(number), PIPELINE)
    later = replace(checkpoint(7, run_id=OTHER.run_id), interval=OTHER.interval)
    StoredCheckpoints(lake, OTHER).write(later, PIPELINE)
    return lake


def found(reference: str, lake: str) -> tuple[str, int]:
    checkpoints, number = find_checkpoint(reference, lake)
    manifest = checkpoints.read_manifest(number)
    return manifest.run.run_id, manifest.number


def test_every_form_finds_its_checkpoint(two_runs):
    assert found("run", two_runs) == ("run", 2)
    assert found("run#1", two_runs) == ("run", 1)
    assert found(f"{stored(two_runs).uri}/0000000001.json", "/nowhere") == ("run", 1)
    assert found(stored(two_runs).uri, "/nowhere") == ("run", 2)
    assert found(f"{StoredCheckpoints(two_runs, OTHER).uri}/", "/nowhere") == (OTHER.run_id, 7)
    assert found("sample/cli#1#7", two_runs) == (OTHER.run_id, 7)
    assert found(two_runs, "/nowhere") == (OTHER.run_id, 7)


def test_an_unknown_one_names_the_forms_and_what_there_is(two_runs):
    with pytest.raises(
        UnknownCheckpoint, match=r"no checkpoint 'ran'.*Newest runs with one: .*RUN_ID#NUMBER"
    ) as raised:
        find_checkpoint("ran", two_runs)
    assert set(raised.value.runs) == {"run", OTHER.run_id}
    with pytest.raises(UnknownName, match=r"checkpoint of run '3'. Known: 1, 2"):
        find_checkpoint("run#3", two_runs)


def test_an_empty_lake_says_so(lake):
    with pytest.raises(UnknownCheckpoint, match="No run has left one there"):
        find_checkpoint("run", lake)


def test_no_other_one_is_taken_for_one_that_cannot_be_read(two_runs):
    folder = files_at(stored(two_runs).uri)
    folder.remove(["0000000002.json"])
    folder.create("0000000002.json", b"{")
    with pytest.raises(CheckpointCorrupt, match=r"0000000002\.json"):
        find_checkpoint("run", two_runs)
    assert found("run#1", two_runs) == ("run", 1)


def test_a_savepoint_is_found_by_its_name(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(3, stage([record(0)])), PIPELINE)
    savepoint = Savepoint("before-the-fix", RUN.pipeline, RUN.interval, RUN.run_id, 3, "ann", "", NOW)
    Savepoints(str(tmp_path)).create(savepoint)
    for name, lake in (("before-the-fix", str(tmp_path)), (f"{tmp_path}/savepoints/before-the-fix.json", "/nowhere")):
        checkpoints, number = find_checkpoint(name, lake)
        assert (number, checkpoints.address(number)) == (3, f"{there.uri}/0000000003.json")
    with pytest.raises(UnknownCheckpoint, match=r"savepoints/NAME\.json"):
        find_checkpoint(f"{tmp_path}/savepoints/other.json", str(tmp_path))
