"""What `stagehold gc` deletes, and what it leaves to those who need it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.run.clearing.nights import PARTITIONS, Nights
from tests.run.protocol.stepper import Stepper

from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.location import table_location
from stagehold.model.standing import PartitionState
from stagehold.plan.garbage import Why
from stagehold.spec.settings.run_settings import ReleasePolicy

pytestmark = pytest.mark.slow

DAY = "2026-11-20"
OTHERS = [f"2026-11-{day}" for day in range(21, 25)]


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def found(nights: Nights, **options: object) -> dict[tuple[str, str, Why], int]:
    return {(record.interval, record.stage, record.why): record.files for record in nights.collect(**options).cleared}


def other_data(nights: Nights, run: str) -> None:
    """The same interval once more, all of it computed anew."""
    for partition in range(PARTITIONS):
        nights.write_source(partition, nights.sources[partition] + 10)
    nights.run(DAY, run)


def test_what_was_computed_again_goes_when_it_is_old_enough(nights):
    nights.run(DAY)
    other_data(nights, "r")
    assert found(nights, older_than=timedelta(hours=1)) == {}
    expected = {(DAY, stage, Why.SUPERSEDED): PARTITIONS for stage in ("drafts", "edits")}
    assert found(nights, dry_run=True) == expected
    assert [len(files) for files in nights.files(DAY).values()] == [2 * PARTITIONS] * 2
    assert found(nights) == expected
    assert [len(files) for files in nights.files(DAY).values()] == [PARTITIONS] * 2
    assert found(nights) == {}
    assert nights.published(DAY) == nights.expected
    nights.check()


def test_readers_of_a_published_table_have_a_day(nights):
    nights.run(DAY)
    other_data(nights, "r")
    assert (DAY, "prints", Why.SUPERSEDED) not in found(nights, dry_run=True)
    nights.readers_time = timedelta(0)
    assert found(nights)[DAY, "prints", Why.SUPERSEDED] == PARTITIONS
    assert nights.published(DAY) == nights.expected


def test_what_a_checkpoint_points_to_stays_for_as_long_as_that_is_kept(tmp_path):
    nights = Nights(tmp_path, retained=2)
    nights.run(DAY)
    other_data(nights, "r")
    assert len(list(nights.kept(DAY))) == 2
    assert found(nights) == {}
    nights.check()
    nights.run(DAY)  # nothing is computed, and a third checkpoint takes the place of the first
    assert found(nights) == {(DAY, stage, Why.SUPERSEDED): PARTITIONS for stage in ("drafts", "edits")}
    nights.check()


def test_checkpoints_of_a_run_go_when_a_newer_run_has_gone_on_for_long_enough(nights):
    nights.run(DAY, "first")
    other_data(nights, "second")
    assert found(nights, older_than=timedelta(hours=1)) == {}
    cleared = found(nights)
    assert cleared[DAY, "", Why.CHECKPOINT] > 0
    assert cleared[DAY, "drafts", Why.SUPERSEDED] == PARTITIONS
    assert [stored.uri.rsplit("/", 1)[1] for stored, _ in nights.kept(DAY)] == [f"second.{DAY}"]
    nights.check()


def test_nothing_goes_while_a_checkpoint_cannot_be_read(nights):
    nights.run(DAY)
    other_data(nights, "second")
    ((stored, number),) = [one for one in nights.kept(DAY) if "second" in one[0].uri]
    manifest = next(nights.settings.home_path.glob(f"**/second.{DAY}/{number:010d}.json"))
    manifest.write_bytes(manifest.read_bytes()[:-9])
    before = nights.files(DAY)
    (told,) = nights.collect().passed_over
    assert "Checkpoint 1 cannot be read" in told
    assert str(manifest) in told
    assert nights.files(DAY) == before
    assert isinstance(stored, StoredCheckpoints)


def test_a_log_that_cannot_be_read_holds_up_its_interval_only(nights):
    nights.run(DAY)
    other_data(nights, "r")
    nights.run(OTHERS[0])
    uri = table_location(nights.settings.lake_uri, "paper", nights.pipeline.stage("prints"), DAY).uri
    for file in Path(uri, "_delta_log").glob("*.json"):
        file.write_text("{")
    (told,) = nights.collect().passed_over
    assert told.startswith(f"paper {DAY}: The log of {uri} cannot be read")


def test_what_was_refused_goes_when_it_was_computed_again(nights):
    nights.settings = replace(nights.settings, sweep_after_seconds=3600)  # or the next attempt deletes it already
    nights.write_source(1, -5)
    with pytest.raises(Exception, match="not refused"):
        nights.run(DAY)
    assert found(nights) == {}  # somebody may look at it
    nights.write_source(1, 5)
    nights.run(DAY)
    assert found(nights) == {(DAY, "drafts", Why.REFUSED): 1}
    assert nights.published(DAY) == nights.expected


def test_the_announcement_of_a_release_is_what_is_released(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.KEEP)
    for day in (DAY, *OTHERS):
        nights.run(day)
    nights.pipeline = nights.pipeline.model_copy(update={"release": ReleasePolicy.RUN_END})
    announced = {place: files for place, files in found(nights, dry_run=True).items() if place[2] is Why.RELEASED}
    assert announced == {(day, stage, Why.RELEASED): 3 for day in (DAY, OTHERS[0]) for stage in ("drafts", "edits")}
    assert nights.states(DAY)["drafts"] == {PartitionState.CONSUMABLE}
    assert {place: files for place, files in found(nights).items() if place[2] is Why.RELEASED} == announced
    assert found(nights) == {}
    nights.check()


def test_an_interval_that_somebody_works_on_is_passed_over(nights):
    nights.run(DAY)
    other_data(nights, "r")
    nights.write_source(0, 99)
    nights.begin(DAY, "drafts").go_to("its end")
    reader = nights.begin(DAY, "edits")
    assert reader.go_to("session")
    before = nights.files(DAY)
    (told,) = nights.collect().passed_over
    assert f"paper/{DAY}/edits is being worked on by" in told
    assert nights.files(DAY)["drafts"] == before["drafts"]
    reader.go_to("its end")
    assert (reader.ended, reader.error) == (True, None)


def test_records_stay_for_as_long_as_their_files(nights):
    nights.run(DAY)
    other_data(nights, "r")
    assert found(nights)[DAY, "drafts", Why.SUPERSEDED] == PARTITIONS
    assert nights.collect().forgotten.partitions == 0  # files of the published table stay for a day
    later = nights.collector(older_than=-timedelta(days=2))
    assert later.collect([nights.pipeline]).forgotten.partitions == 0


def test_the_ledger_forgets_what_was_superseded_when_its_files_are_gone(nights):
    nights.readers_time = timedelta(0)
    nights.run(DAY)
    other_data(nights, "r")
    assert nights.collect().forgotten.partitions == 3 * PARTITIONS
    assert nights.collect().forgotten.partitions == 0
    assert nights.collect().chronicle.why_not is None
    nights.run(DAY)
    assert nights.published(DAY) == nights.expected


@pytest.mark.parametrize("place", range(1, 5))
def test_what_is_superseded_while_garbage_is_collected_goes_the_next_time(nights, place):
    """Records by which alone somebody finds files are not forgotten, however the two meet."""
    nights.readers_time = timedelta(0)
    nights.run(DAY)
    collecting = Stepper(nights.collect)
    for _ in range(place):
        collecting.go_to("before a row")
    other_data(nights, "r")
    collecting.go_to("its end")
    assert (collecting.ended, collecting.error) == (True, None)
    assert [len(files) for files in nights.files(DAY).values()] == [2 * PARTITIONS] * 2
    assert found(nights)[DAY, "drafts", Why.SUPERSEDED] == PARTITIONS
    assert [len(files) for files in nights.files(DAY).values()] == [PARTITIONS] * 2
    nights.check()
