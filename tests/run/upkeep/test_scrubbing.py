"""A scrub of one stage without Spark: what happens to the ledger while the data is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from tests.lake.paper_table import PaperTable, records
from tests.run.workbench import INTERVAL, NOWHERE, Workbench

from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import table_location
from stagehold.ledger import Ledger
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import as_damaged
from stagehold.plan.scrub import Condition, Sample, StageScrub
from stagehold.run.lease.lease_holder import this_process
from stagehold.run.upkeep.scrubbing import ScrubPlace, requests_asked, scrub
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline

STAGE = "by_colour"
REGION = f"toy/{INTERVAL}/{STAGE}"
ALL = Sample("seed").draw
BAD = 1  # the partition whose content is another one


@dataclass
class Reader:
    """Stands for Spark. ``meanwhile`` happens while it reads."""

    meanwhile: Callable[[], object] = lambda: None
    opened: list[timedelta] = field(default_factory=list)

    @contextmanager
    def open(self, stall_timeout: timedelta) -> Iterator[Reader]:
        self.opened.append(stall_timeout)
        yield self

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        self.meanwhile()
        return {record.partition: "c-0-0-0" if record.partition == BAD else record.fingerprint for record in records}

    def read_log(self, table: str) -> None:
        raise AssertionError(f"{table} was read by its records")


@dataclass(frozen=True)
class Scene:
    settings: Settings
    ledger: Ledger
    table: PaperTable

    def publish(self, *partitions: int, epoch: int = 1) -> list[PartitionRecord]:
        """As an attempt would that has had the region and has ended."""
        lease = self.ledger.leases.take(REGION, None, f"attempt {epoch}", 60, lambda _: True)
        table = replace(self.table, epoch=epoch)
        wave = table.wave({partition: [("a", partition)] for partition in partitions})
        landed = StagedCommitter().publish(table.location, wave)
        recorded = [
            replace(record, cell=Cell("toy", STAGE, INTERVAL), fingerprint=f"c-1-{record.partition}-{epoch}")
            for record in records(table.location, landed)
        ]
        self.ledger.partitions.record(recorded, lease)
        self.ledger.leases.release(lease)
        return recorded

    def scrub(self, reader: Reader) -> StageScrub:
        requests = requests_asked([find_pipeline("toy", self.settings)], None, self.ledger)
        (result,) = scrub(requests, ALL, ScrubPlace(self.ledger, self.settings, print, reader.open))
        return result

    def states(self) -> list[PartitionState]:
        return [partition.state for partition in self.ledger.partitions.newest(Cell("toy", STAGE, INTERVAL))]


@pytest.fixture
def scene(tmp_path):
    settings = Workbench.make(tmp_path, NOWHERE).settings
    location = table_location(settings.lake_uri, "toy", find_pipeline("toy", settings).stage(STAGE), INTERVAL)
    with Ledger.open(settings.ledger_url) as ledger:
        made = Scene(settings, ledger, PaperTable(location).create())
        made.publish(0, 1, 2, 3)
        yield made


def found(result: StageScrub) -> list[tuple[int, Condition, bool]]:
    return [(finding.record.partition, finding.condition, finding.marked) for finding in result.findings]


CONSUMABLE = PartitionState.CONSUMABLE
MARKED = [CONSUMABLE, PartitionState.DAMAGED, CONSUMABLE, CONSUMABLE]


def test_what_differs_is_marked_and_the_lease_is_free_again(scene):
    result = scene.scrub(Reader())
    assert found(result) == [(BAD, Condition.DAMAGED, True)]
    assert (result.checked, scene.states(), scene.ledger.leases.holder(REGION)) == (4, MARKED, None)


def test_what_was_computed_anew_meanwhile_is_not_marked(scene):
    result = scene.scrub(Reader(lambda: scene.publish(BAD, epoch=2)))
    assert found(result) == [(BAD, Condition.SKIPPED, False)]
    assert scene.states() == [CONSUMABLE] * 4


def test_what_another_scrub_has_marked_meanwhile_is_not_marked_twice(scene):
    def mark() -> None:
        lease = scene.ledger.leases.take(REGION, None, "another", 60, lambda _: True)
        bad = scene.ledger.partitions.newest(Cell("toy", STAGE, INTERVAL))[BAD]
        scene.ledger.partitions.record([as_damaged(bad, bad.recorded_at)], lease)
        scene.ledger.leases.release(lease)

    scene.scrub(Reader(mark))
    history = scene.ledger.partitions.history(Cell("toy", STAGE, INTERVAL))
    assert [one.state for one in history].count(PartitionState.DAMAGED) == 1


def test_what_disappeared_meanwhile_is_not_marked(scene):
    result = scene.scrub(Reader(lambda: files_at(scene.table.location.uri).delete("_data")))
    assert found(result) == [(BAD, Condition.SKIPPED, False)]
    assert scene.states() == [CONSUMABLE] * 4


def test_damage_in_a_region_that_somebody_took_meanwhile_is_told_and_not_marked(scene):
    result = scene.scrub(Reader(lambda: scene.ledger.leases.take(REGION, None, "somebody", 60, lambda _: False)))
    assert found(result) == [(BAD, Condition.DAMAGED, False)]
    assert "being worked on by somebody" in result.findings[0].differs
    assert scene.states() == [CONSUMABLE] * 4


@pytest.mark.parametrize("share", [REGION, f"{REGION}/0-1"])
def test_a_region_that_is_worked_on_is_skipped_and_nothing_of_it_is_read(scene, share):
    scene.ledger.leases.acquire(share, "somebody", 60)
    reader = Reader()
    result = scene.scrub(reader)
    assert [condition for _, condition, _ in found(result)] == [Condition.SKIPPED] * 4
    assert (result.checked, reader.opened) == (0, [])


def test_the_lease_of_a_process_that_has_ended_stops_no_scrub(scene):
    ended = replace(this_process("cli/run"), started="0")
    scene.ledger.leases.take(REGION, None, str(ended), 60, lambda _: False)
    assert found(scene.scrub(Reader())) == [(BAD, Condition.DAMAGED, True)]
