"""Runs that begin with a savepoint: what they take over, where that goes, and what a death in the middle costs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.made_records import savepoint_request
from tests.run.clearing.nights import PARTITIONS, PIPELINE, STAGES, Nights

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.errors import CheckpointCorrupt, RestoreRefused
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import manifest_file
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.savepoint_copies import export_savepoint, import_savepoint
from stagehold.run.checkpoints.savepoint_creation import create_savepoint

pytestmark = pytest.mark.slow

DAY, OTHER, NAME = "2026-11-20", "2026-11-21", "kept"


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def save(nights: Nights, name: str = NAME) -> str:
    """The address of the manifest."""
    asked = savepoint_request(name, f"r.{DAY}")
    made = create_savepoint(asked, nights.pipeline, nights.workplace)
    return address(nights, made)


def address(nights: Nights, made: Savepoint) -> str:
    return f"{Savepoints(nights.settings.lake_uri).stored(made).uri}/{manifest_file(made.number)}"


def write(nights: Nights, amounts: list[int]) -> None:
    for partition, amount in enumerate(amounts):
        nights.write_source(partition, amount)


def computed(nights: Nights, run: str, interval: str = DAY) -> int:
    """Partitions that the run made itself."""
    every = (nights.ledger.partitions.history(nights_cell(nights, interval, stage)) for stage in STAGES)
    own = [record for records in every for record in records if record.run_id == f"{run}.{interval}"]
    return sum("from savepoint kept" not in (one.reason or "") for one in own)


def nights_cell(nights: Nights, interval: str, stage: str) -> Cell:
    return Cell(PIPELINE, nights.pipeline.stage(stage).id, interval)


OLD, NEW = [1, 2, 3], [11, 12, 13]


def test_an_interval_goes_back_to_what_it_was_and_nothing_is_computed(nights):
    nights.run(DAY)
    manifest = save(nights)
    write(nights, NEW)
    nights.run(DAY, "s")
    assert nights.published(DAY) == [4 * amount for amount in NEW]
    write(nights, OLD)
    nights.run(DAY, "back", snapshot=manifest)
    assert nights.published(DAY) == [4 * amount for amount in OLD]
    assert computed(nights, "back") == 0
    nights.run(DAY, "later")
    assert computed(nights, "later") == 0, "what was put counts as the interval's own"
    nights.check()


def published_table(nights: Nights) -> DeltaTable:
    return DeltaTable(nights.records(DAY, "prints")[0].table)


def test_a_table_that_has_it_all_gets_no_commit_of_it(nights):
    nights.run(DAY)
    manifest = save(nights)
    before = published_table(nights).file_uris()
    nights.run(DAY, "back", snapshot=manifest)
    assert published_table(nights).file_uris() == before
    assert nights.published(DAY) == nights.expected


def test_no_commit_takes_a_file_out_and_puts_it_back(nights):
    """Somebody added rows of theirs to a partition; readers do not agree on what such a commit leaves."""
    nights.run(DAY)
    manifest = save(nights)
    uri = nights.records(DAY, "prints")[0].table
    own = pq.read_table(published_table(nights).file_uris()[0], partitioning=None)
    foreign = own.append_column("_interval", pa.array([DAY] * len(own))).append_column(
        "_partition", pa.array([0] * len(own), pa.int32())
    )
    write_deltalake(uri, foreign, mode="append", partition_by=["_interval", "_partition"])
    assert len(nights.published(DAY)) == PARTITIONS + 1
    nights.run(DAY, "back", snapshot=manifest)
    assert nights.published(DAY) == nights.expected
    for log in Path(uri, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        added, removed = ({one[kind]["path"] for one in actions if kind in one} for kind in ("add", "remove"))
        assert added.isdisjoint(removed)


def test_numbers_of_checkpoints_go_on_after_the_restored_one(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.run(DAY, "back", snapshot=manifest)
    assert [checkpoint.number for checkpoint in nights.ledger.checkpoints.of_run(f"back.{DAY}")] == [3]


def test_what_has_changed_since_is_computed(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.write_source(1, 50)
    nights.run(DAY, "back", snapshot=manifest)
    assert nights.published(DAY) == [4, 200, 12]
    assert computed(nights, "back") == len(STAGES)


def test_what_the_snapshot_lacks_is_computed_though_the_interval_has_it(nights):
    attempt = nights.begin(DAY, "drafts")
    attempt.go_to("its end", most=2000)
    manifest = save(nights)
    nights.run(DAY)
    nights.run(DAY, "back", snapshot=manifest)
    assert computed(nights, "back") == 2 * PARTITIONS
    assert nights.published(DAY) == nights.expected


def test_another_interval_gets_copies_of_its_own(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.run(OTHER, "copy", snapshot=manifest)
    assert computed(nights, "copy", OTHER) == 0
    assert nights.published(OTHER) == nights.published(DAY) == nights.expected
    for stage in STAGES[:-1]:
        assert {Path(record.table).name for record in nights.records(OTHER, stage)} == {OTHER}
        shutil.rmtree(nights.records(DAY, stage)[0].table)
    assert nights.states(OTHER)["drafts"] == {PartitionState.CONSUMABLE}
    write(nights, [*OLD[:2], 7])
    nights.run(OTHER, "more")
    assert nights.published(OTHER) == nights.expected


def test_what_looks_at_its_interval_is_computed_for_another_one(nights):
    nights.rewrite("edits", "return drafts, ctx.logical_date")
    nights.run(DAY)
    manifest = save(nights)
    nights.run(DAY, "same", snapshot=manifest)
    assert computed(nights, "same") == 0
    nights.run(OTHER, "copy", snapshot=manifest)
    assert computed(nights, "copy", OTHER) == PARTITIONS, "and what reads it takes over, since it came out the same"
    assert nights.published(OTHER) == nights.expected


def test_a_savepoint_of_another_lake_is_taken_over(nights, tmp_path):
    nights.run(DAY)
    save(nights)
    export_savepoint(NAME, str(tmp_path / "exported"), nights.settings, print)
    there = Nights(tmp_path / "there")
    back = import_savepoint(str(tmp_path / "exported"), None, there.settings, print)[0]
    there.run(DAY, "taken", snapshot=address(there, back))
    assert there.published(DAY) == there.expected
    tables = {record.table for stage in STAGES for record in there.records(DAY, stage)}
    assert not [table for table in tables if "savepoints" in table]
    there.check()


@pytest.mark.parametrize("interval", [DAY, OTHER])
@pytest.mark.parametrize("stage", STAGES)
def test_who_dies_at_any_step_goes_on_and_puts_nothing_twice(nights, stage, interval):
    nights.run(DAY)
    manifest = save(nights)
    write(nights, NEW)
    nights.run(DAY, "s")
    write(nights, OLD)
    for earlier in STAGES[: STAGES.index(stage)]:
        nights.begin(interval, earlier, "back", snapshot=manifest).go_to("its end", most=2000)
    for steps in range(1, 200, 4):
        attempt = nights.begin(interval, stage, "back", snapshot=manifest)
        for _ in range(steps):
            attempt.step()
        if attempt.ended:
            break
        attempt.kill()
        nights.end_leases()
    assert attempt.error is None
    nights.run(interval, "back", snapshot=manifest)
    assert nights.published(interval) == [4 * amount for amount in OLD]
    assert computed(nights, "back", interval) == 0
    nights.check()


def test_a_retry_keeps_what_the_run_has_computed_since(nights):
    attempt = nights.begin(DAY, "drafts")
    attempt.go_to("its end", most=2000)
    manifest = save(nights)
    nights.run(DAY, "back", snapshot=manifest)
    before = computed(nights, "back")
    nights.run(DAY, "back", snapshot=manifest)
    assert computed(nights, "back") == before


def test_lost_data_of_the_snapshot_is_computed_again(nights):
    nights.run(DAY)
    manifest = save(nights)
    write(nights, NEW)
    nights.run(DAY, "s")
    write(nights, OLD)
    Path(
        checkpoint(nights).stages[2].partitions[1].table, checkpoint(nights).stages[2].partitions[1].files[0].path
    ).unlink()
    nights.run(DAY, "back", snapshot=manifest)
    assert nights.published(DAY) == [4 * amount for amount in OLD]
    assert computed(nights, "back") == 1


def test_what_does_not_fit_is_refused_before_anything_is_done(nights):
    nights.run(DAY)
    manifest = save(nights)
    before = nights.published(DAY)
    drafts, edits, prints = nights.pipeline.stages
    (edge,) = edits.inputs
    renamed = drafts.model_copy(update={"name": "sketches"})
    reader = edits.model_copy(update={"inputs": (edge.model_copy(update={"stage": "sketches"}),)})
    nights.pipeline = nights.pipeline.model_copy(update={"stages": (renamed, reader, prints)})
    attempt = nights.begin(DAY, "sketches", "back", snapshot=manifest)
    attempt.go_to("its end", most=2000)
    assert isinstance(attempt.error, RestoreRefused)
    assert re.search(r"sketches looks like drafts renamed.*put `was: drafts` there", str(attempt.error))
    assert nights.published(DAY) == before


def test_a_stage_that_has_gained_a_uid_is_known_by_the_name_on_record(nights):
    nights.run(DAY)
    manifest = save(nights)
    drafts, *others = nights.pipeline.stages
    nights.pipeline = nights.pipeline.model_copy(
        update={"stages": (drafts.model_copy(update={"uid": "sketches"}), *others)}
    )
    nights.run(DAY, "back", snapshot=manifest)
    assert computed(nights, "back") == 0


def test_a_manifest_that_is_gone_is_named(nights):
    nights.run(DAY)
    with pytest.raises(CheckpointCorrupt, match=r"0000000099\.json is missing"):
        nights.run(DAY, "back", snapshot=save(nights).replace("0000000002", "0000000099"))


def checkpoint(nights: Nights) -> Checkpoint:
    savepoints = Savepoints(nights.settings.lake_uri)
    found = savepoints.get(NAME)
    return savepoints.stored(found).read_checkpoint(found.number)
