"""A region cut into other shares than before, on a real table and a real ledger:
who may still publish, and what is adopted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from tests.lake.paper_table import INTERVAL, InterruptedCommitter, PaperTable, records

from stagehold.errors import Fenced
from stagehold.lake.commit.committed_waves import committed
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import Cell, Lease
from stagehold.plan.split.shares import shares
from stagehold.run.lease.region_tables import adopt

PARTITIONS = 8
REGION = f"p/{INTERVAL}/joined"
CELL = Cell("p", "joined", INTERVAL)
HALVES, QUARTERS = shares(PARTITIONS, 2), shares(PARTITIONS, 4)
Cut = Share | None


@dataclass(frozen=True)
class Attempt:
    """One attempt of a share, from its lease to its fence: what the runner does, without Spark."""

    table: PaperTable
    share: Cut
    ledger: Ledger
    lease: Lease

    @staticmethod
    def begin(table: PaperTable, share: Cut, ledger: Ledger) -> Attempt:
        lease = ledger.leases.take(REGION, share, f"holder of {share}", 60, lambda _: True)
        return Attempt(replace(table, location=table.location.of(share), epoch=lease.epoch), share, ledger, lease)

    @property
    def partitions(self) -> range:
        return range(PARTITIONS) if self.share is None else self.share.partitions

    def fence(self) -> Attempt:
        location = self.table.location
        rivals = [location.of(other) for other in self.ledger.leases.overlapping(REGION, self.share)]
        StagedCommitter().fence(location, self.table.claim, rivals)
        return self

    def publish(self, *partitions: int, wave: int = 1, record: bool = True) -> None:
        commit = self.table.wave({partition: [(str(self.share), self.lease.epoch)] for partition in partitions}, wave)
        landed = self.table.committer.publish(self.table.location, commit)
        if record:
            self.ledger.partitions.record(records(self.table.location, landed), self.lease)

    def adopt(self) -> list[int]:
        adopted, _ = adopt(CELL, self.table.location, self.share, self.ledger, self.lease)
        return [record.partition for record in adopted]


@pytest.fixture
def table(tmp_path: Path) -> PaperTable:
    return PaperTable.own(str(tmp_path / "lake"))


@pytest.fixture
def ledger(ledger_file: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.fixture
def begin(table: PaperTable, ledger: Ledger) -> Callable[[Cut], Attempt]:
    return lambda share: Attempt.begin(table, share, ledger)


def owners(table: PaperTable) -> dict[int, list[tuple[str, int]]]:
    """(share, epoch) of every row that a reader sees, by partition."""
    found: dict[int, list[tuple[str, int]]] = {}
    for _, partition, share, epoch in table.seen():
        found.setdefault(partition, []).append((share, epoch))
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param((None,), HALVES, id="one task becomes two"),
        pytest.param(HALVES, (None,), id="two tasks become one"),
        pytest.param(HALVES, QUARTERS, id="two become four"),
        pytest.param(QUARTERS, shares(PARTITIONS, 3), id="four become three, across the old borders"),
    ],
)
def test_no_zombie_of_an_old_cut_publishes_or_records_beside_the_new_one(begin, table, old, new):
    zombies = [begin(share).fence() for share in old]
    for zombie in zombies:
        zombie.publish(zombie.partitions[0])
    successors = [begin(share).fence() for share in new]
    for zombie in zombies:
        with pytest.raises(Fenced):
            zombie.publish(*zombie.partitions, wave=2)
        with pytest.raises(Fenced):
            zombie.ledger.partitions.record([], zombie.lease)
    for successor in successors:
        successor.publish(*successor.partitions)
    epochs = {partition: successor.lease.epoch for successor in successors for partition in successor.partitions}
    assert {partition: [epoch for _, epoch in rows] for partition, rows in owners(table).items()} == {
        partition: [epoch] for partition, epoch in epochs.items()
    }


def test_a_zombie_whose_handle_is_older_than_the_new_cuts_fence_changes_nothing(begin, table):
    zombie = begin(None).fence()
    overtaken = InterruptedCommitter(lambda: begin(HALVES[0]).fence())
    with pytest.raises(Fenced):
        replace(zombie, table=replace(zombie.table, committer=overtaken)).publish(0)
    assert not overtaken.waiting
    assert owners(table) == {}


def test_shares_of_one_cut_leave_each_other_alone(begin, table):
    attempts = [begin(share).fence() for share in QUARTERS]
    for wave in (0, 1):
        for attempt in attempts:
            attempt.publish(attempt.partitions[wave], wave=wave + 1)
    assert {partition: [epoch for _, epoch in rows] for partition, rows in owners(table).items()} == {
        partition: [attempt.lease.epoch] for attempt in attempts for partition in attempt.partitions
    }


def test_what_one_share_could_not_record_is_adopted_by_the_next_cut_and_each_task_takes_its_own(begin, ledger):
    begin(QUARTERS[0]).fence().publish(0, 1)
    begin(QUARTERS[1]).fence().publish(2, 3, record=False)
    assert [record.partition for record in ledger.partitions.newest(CELL)] == [0, 1]
    three = [begin(share) for share in shares(PARTITIONS, 3)]
    assert [str(attempt.share) for attempt in three] == ["0-1", "2-4", "5-7"]
    assert [attempt.adopt() for attempt in three] == [[], [2, 3], []]
    assert [attempt.adopt() for attempt in three] == [[], [], []]
    assert [(record.partition, record.epoch) for record in ledger.partitions.newest(CELL)] == [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
    ]


def test_a_commit_that_a_newer_cut_replaced_is_not_adopted(begin, ledger):
    begin(None).fence().publish(0, 1, record=False)
    begin(QUARTERS[0]).fence().publish(0)
    assert begin(HALVES[0]).adopt() == [1]
    assert [(record.partition, record.epoch) for record in ledger.partitions.newest(CELL)] == [(0, 2), (1, 1)]


def _compete(number: int, share: Cut, table: PaperTable, url: str, barrier: Barrier, answers: Queue[int]) -> None:
    with Ledger.open(url) as ledger:
        barrier.wait(timeout=60)
        attempt = Attempt.begin(table, share, ledger)
        try:
            attempt.fence()
            for wave, partition in enumerate(attempt.partitions, start=1):
                attempt.publish(partition, wave=wave, record=(wave + number) % 3 > 0)
        except Fenced:
            pass
    answers.put(number)


@pytest.mark.slow
def test_of_cuts_that_race_every_partition_ends_with_one_attempts_rows_and_the_ledger_agrees(table, ledger, tmp_path):
    cuts: tuple[Cut, ...] = (None, *HALVES, *QUARTERS, *shares(PARTITIONS, 3))
    context = get_context("spawn")
    barrier, answers = context.Barrier(len(cuts)), context.Queue()
    arguments = (table, f"sqlite:///{tmp_path / 'ledger.db'}", barrier, answers)
    processes = [
        context.Process(target=_compete, args=(number, share, *arguments)) for number, share in enumerate(cuts)
    ]
    for process in processes:
        process.start()
    assert sorted(answers.get(timeout=120) for _ in processes) == list(range(len(cuts)))
    for process in processes:
        process.join(timeout=60)
    last = Attempt.begin(table, None, ledger)
    last.adopt()
    live = {
        partition.partition: (version, commit.epoch)
        for version, commit in committed(table.location)
        for partition in commit.partitions
    }
    assert {record.partition: (record.version, record.epoch) for record in ledger.partitions.newest(CELL)} == live
    assert {partition: [epoch for _, epoch in rows] for partition, rows in owners(table).items()} == {
        partition: [epoch] for partition, (_, epoch) in live.items()
    }
    last.fence().publish(*range(PARTITIONS))
    assert owners(table) == {partition: [("None", last.lease.epoch)] for partition in range(PARTITIONS)}
