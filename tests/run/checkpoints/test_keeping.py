"""What a savepoint points to stays, whatever is released, computed again, collected or vacuumed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable
from sqlalchemy import delete, update
from tests.made_records import savepoint_request
from tests.run.clearing.nights import PARTITIONS, STAGES, Nights

from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.store.location import table_location
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import checkpoints
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import create_savepoint

pytestmark = pytest.mark.slow

DAY = "2026-11-20"
OTHERS = [f"2026-11-{day}" for day in range(21, 25)]


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def create(nights: Nights, name: str = "kept") -> Savepoint:
    asked = savepoint_request(name, f"r.{DAY}")
    return create_savepoint(asked, nights.pipeline, nights.workplace)


def missing(nights: Nights, savepoint: Savepoint) -> dict[str, frozenset[int]]:
    checkpoint = Savepoints(nights.settings.lake_uri).stored(savepoint).read_checkpoint(savepoint.number)
    assert [len(stage.partitions) for stage in checkpoint.stages] == [PARTITIONS] * len(STAGES)
    return {stage.shape.name: gone for stage in checkpoint.stages if (gone := missing_files(stage.partitions))}


def change_sources(nights: Nights) -> None:
    for partition in range(PARTITIONS):
        nights.write_source(partition, nights.sources[partition] + 10)


def test_outputs_that_are_released_stay_for_it_and_go_when_it_is_disposed_of(nights):
    nights.run(DAY)
    made = create(nights)
    for day in OTHERS:
        nights.run(day)
    nights.collect()
    assert nights.states(DAY)["drafts"] == {PartitionState.RELEASED}
    assert missing(nights, made) == {}
    dispose_of(made, nights.workplace)
    nights.collect()
    assert nights.files(DAY) == {"drafts": [], "edits": []}


def test_what_was_computed_again_stays_for_it(nights):
    nights.run(DAY)
    made = create(nights)
    change_sources(nights)
    nights.run(DAY, "r")
    nights.collect()
    assert missing(nights, made) == {}
    dispose_of(made, nights.workplace)
    nights.collect()
    assert [len(files) for files in nights.files(DAY).values()] == [PARTITIONS] * 2
    nights.check()


def test_nobodys_vacuum_reaches_it(nights):
    nights.run(DAY)
    made = create(nights)
    change_sources(nights)
    nights.run(DAY, "r")
    for stage in STAGES:
        uri = table_location(nights.settings.lake_uri, "paper", nights.pipeline.stage(stage), DAY).uri
        gone = DeltaTable(uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        assert not [path for path in gone if "_data" in path]
    assert missing(nights, made) == {}


def test_a_savepoint_whose_disposer_died_is_collected(nights):
    nights.run(DAY)
    made = create(nights)
    Savepoints(nights.settings.lake_uri).remove(made)
    stored = Savepoints(nights.settings.lake_uri).stored(made)
    assert made.number in stored.numbers()
    nights.collect()
    assert made.number not in stored.numbers()


def test_without_a_row_in_the_ledger_it_stays_as_well(nights):
    nights.run(DAY)
    made = create(nights)
    with Database(nights.settings.ledger_url).writing() as connection:
        connection.execute(delete(checkpoints).where(checkpoints.c.savepoint == made.name))
    change_sources(nights)
    for day in (DAY, *OTHERS):
        nights.run(day, "r")
    nights.collect()
    assert missing(nights, made) == {}


def test_the_lake_has_the_last_word_on_whether_there_is_one(nights):
    nights.run(DAY)
    made = create(nights)
    with Database(nights.settings.ledger_url).writing() as connection:
        connection.execute(update(checkpoints).values(discarded_at=datetime.now(UTC)))
    nights.collect()
    assert missing(nights, made) == {}
