"""A savepoint leaves its lake, and comes into another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.made_records import savepoint_request
from tests.run.clearing.nights import PARTITIONS, STAGES, Nights

from stagehold.errors import CopyRefused, ExportUnusable, PartitionDataMissing, SavepointTaken
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.store.files import files_at
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_copies import export_savepoint, import_savepoint
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.settings import Settings

pytestmark = pytest.mark.slow

DAY, NAME = "2026-11-20", "kept"


def silent(line: str) -> None:
    pass


@pytest.fixture
def nights(tmp_path):
    made = Nights(tmp_path / "origin")
    made.run(DAY)
    create_savepoint(savepoint_request(NAME, f"r.{DAY}"), made.pipeline, made.workplace)
    return made


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    return str(tmp_path / "exported") if request.param == "folder" else request.getfixturevalue("s3_lake")


@pytest.fixture
def elsewhere(tmp_path):
    return Settings(home=str(tmp_path / "elsewhere"))


def test_it_is_all_there_in_another_lake(nights, place, elsewhere):
    out = export_savepoint(NAME, place, nights.settings, silent)
    shutil.rmtree(nights.settings.home)
    savepoint, *amount = import_savepoint(place, None, elsewhere, silent)
    assert amount == [*out[1:]]
    savepoints = Savepoints(elsewhere.lake_uri)
    assert savepoints.all() == (savepoint,)
    assert (savepoint.created_by, savepoint.root) == ("ann", f"savepoints/{NAME}")
    checkpoint = savepoints.stored(savepoint).read_checkpoint(savepoint.number)
    assert [stage.shape.name for stage in checkpoint.stages] == list(STAGES)
    for stage in checkpoint.stages:
        assert len(stage.partitions) == PARTITIONS
        assert all(partition.table.startswith(elsewhere.lake_uri) for partition in stage.partitions)
        assert missing_files(stage.partitions) == frozenset()


def test_doing_it_again_copies_nothing_and_says_the_same(nights, place, elsewhere):
    assert export_savepoint(NAME, place, nights.settings, silent) == export_savepoint(
        NAME, place, nights.settings, silent
    )
    assert import_savepoint(place, None, elsewhere, silent) == import_savepoint(place, None, elsewhere, silent)


def test_who_died_in_the_middle_goes_on(nights, tmp_path):
    place = tmp_path / "exported"
    whole = export_savepoint(NAME, str(place), nights.settings, silent)
    (place / "export.json").unlink()
    some = sorted(place.rglob("*.parquet"))[::2]
    times = {path: path.stat().st_mtime_ns for path in place.rglob("*.parquet") if path not in some}
    for path in some:
        path.unlink()
    with pytest.raises(ExportUnusable, match=r"it has no export\.json, which is made last"):
        import_savepoint(str(place), None, nights.settings, silent)
    assert export_savepoint(NAME, str(place), nights.settings, silent) == whole
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_an_imported_one_may_be_exported_again_and_named_anew(nights, tmp_path, elsewhere):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    export_savepoint(NAME, first, nights.settings, silent)
    import_savepoint(first, "theirs", elsewhere, silent)
    export_savepoint("theirs", second, elsewhere, silent)
    again, *_ = import_savepoint(second, None, nights.settings, silent)
    assert again.name == "theirs"
    checkpoint = Savepoints(nights.settings.lake_uri).stored(again).read_checkpoint(again.number)
    assert all(
        "/savepoints/theirs/" in partition.table for stage in checkpoint.stages for partition in stage.partitions
    )


def test_disposing_of_an_imported_one_deletes_its_copy_alone(nights, tmp_path):
    place = str(tmp_path / "exported")
    export_savepoint(NAME, place, nights.settings, silent)
    copy, *_ = import_savepoint(place, "copy", nights.settings, silent)
    dispose_of(copy, nights.workplace)
    assert not Path(nights.settings.lake_uri, "savepoints", "copy").exists()
    assert [one.name for one in Savepoints(nights.settings.lake_uri).all()] == [NAME]
    nights.check()


def test_data_that_is_gone_is_named_before_anything_is_copied(nights, tmp_path):
    Path(nights.files(DAY)["drafts"][1]).unlink()
    with pytest.raises(PartitionDataMissing, match=r"Data of drafts is gone for partition\(s\) 1"):
        export_savepoint(NAME, str(tmp_path / "exported"), nights.settings, silent)
    assert not (tmp_path / "exported").exists()


DAMAGE = [
    ("a file that is gone", lambda file: file.unlink(), "is missing"),
    ("a file that was changed", lambda file: file.write_bytes(b"x" * file.stat().st_size), "another content"),
]


@pytest.mark.parametrize(("damage", "problem"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_what_was_damaged_on_the_way_is_refused(nights, tmp_path, elsewhere, damage, problem):
    place = tmp_path / "exported"
    export_savepoint(NAME, str(place), nights.settings, silent)
    damage(sorted(place.rglob("_data/**/*.parquet"))[0])
    with pytest.raises(ExportUnusable, match=problem):
        import_savepoint(str(place), None, elsewhere, silent)
    assert Savepoints(elsewhere.lake_uri).all() == ()


def test_a_name_that_is_taken_is_refused(nights, tmp_path):
    place = str(tmp_path / "exported")
    export_savepoint(NAME, place, nights.settings, silent)
    with pytest.raises(SavepointTaken, match=NAME):
        import_savepoint(place, None, nights.settings, silent)


def test_a_place_with_another_export_is_refused_and_left_alone(nights, tmp_path):
    place = str(tmp_path / "exported")
    files_at(place).create("export.json", b"mine")
    with pytest.raises(CopyRefused, match=r"export\.json is there already"):
        export_savepoint(NAME, place, nights.settings, silent)
    assert Path(place, "export.json").read_bytes() == b"mine"


def test_a_place_with_other_files_is_refused(nights, tmp_path):
    place = tmp_path / "exported"
    export_savepoint(NAME, str(place), nights.settings, silent)
    sorted(place.rglob("_data/**/*.parquet"))[0].write_bytes(b"other")
    with pytest.raises(CopyRefused, match="is another file"):
        export_savepoint(NAME, str(place), nights.settings, silent)
