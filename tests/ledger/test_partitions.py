from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert
from tests.ledger.samples import CELL, in_process_that_dies, in_processes, record
from tests.postgres import BACK_ENDS

from stagehold.errors import Fenced, UnknownName
from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import row_of
from stagehold.ledger.database.schema import partitions
from stagehold.model.records import Cell, DataFile
from stagehold.model.standing import PartitionState
from stagehold.plan.waves.sizing import WaveCost

NAME = "sales/2024-01-01/joined"


@pytest.fixture
def lease(ledger):
    return ledger.leases.acquire(NAME, "me", 60)


def test_records_come_back_as_they_were_given(ledger, lease):
    blocked = record(1, state=PartitionState.BLOCKED, version=None, files=(), reason="3 nulls in price")
    ledger.partitions.record([record(0), blocked], lease)
    assert ledger.partitions.newest(CELL) == (record(0), blocked)
    assert ledger.partitions.of_run("run-1") == (record(0), blocked)


def test_the_width_of_a_cell_is_told_without_its_records(ledger, lease):
    assert ledger.partitions.width(CELL) == 0
    ledger.partitions.record([record(0), record(4), record(2)], lease)
    assert ledger.partitions.width(CELL) == 5
    assert ledger.partitions.width(Cell(CELL.pipeline, "another", CELL.interval)) == 0


def test_recording_nothing_is_still_fenced(ledger, lease):
    ledger.partitions.record([], lease)
    ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    with pytest.raises(Fenced):
        ledger.partitions.record([], lease)


def test_the_newest_record_of_a_partition_counts_and_older_ones_stay(ledger, lease):
    ledger.partitions.record([record(2), record(0), record(1)], lease)
    released = record(1, epoch=2, state=PartitionState.RELEASED, run_id="run-2")
    ledger.partitions.record([released, record(2, epoch=2, run_id="run-2")], lease)
    assert ledger.partitions.newest(CELL) == (record(0), released, record(2, epoch=2, run_id="run-2"))
    assert ledger.partitions.of_run("run-1") == (record(2), record(0), record(1))


def test_other_stages_intervals_and_pipelines_do_not_mix(ledger, lease):
    cells = [
        CELL,
        Cell("sales", "orders", "2024-01-01"),
        Cell("sales", "joined", "2024-01-02"),
        Cell("costs", "joined", "2024-01-01"),
    ]
    ledger.partitions.record([record(0, cell=cell) for cell in cells], lease)
    assert [ledger.partitions.newest(cell) for cell in cells] == [(record(0, cell=cell),) for cell in cells]
    assert ledger.partitions.newest_of("sales", "2024-01-01") == {
        "joined": (record(0),),
        "orders": (record(0, cell=cells[1]),),
    }
    assert ledger.partitions.newest_of("sales", "2024-01-03") == {}
    assert ledger.partitions.knows("sales", "2024-01-02")
    assert not ledger.partitions.knows("sales", "2024-01-03")
    assert not ledger.partitions.knows("costs", "2024-01-02")


def test_the_cost_of_a_stage_is_that_of_the_waves_of_the_first_run_that_timed_some(ledger, lease):
    other = Cell("sales", "orders", "2024-01-01")
    files = (DataFile("_data/a/1/_partition=0/0.parquet", 100, 1), DataFile("_data/a/1/_partition=0/1.parquet", 50, 1))
    timed = [record(0, seconds=1.5, files=files), record(1, seconds=2.5, files=()), record(2)]
    more = [record(0, cell=other, seconds=9.0), record(0, run_id="run-2", seconds=7.0, files=files[:1])]
    ledger.partitions.record([*timed, *more, record(0, run_id="run-3")], lease)
    assert ledger.partitions.usual_cost("joined", ["run-1", "run-2"]) == WaveCost(0.0, 2.0, 75.0)
    assert ledger.partitions.usual_cost("joined", ["run-4", "run-3", "run-2"]) == WaveCost(0.0, 7.0, 100.0)
    assert ledger.partitions.usual_cost("joined", ["run-3"]) is None


def test_waves_of_one_run_tell_what_a_wave_costs_however_small_it_is(ledger, lease):
    sizes = {1: 2, 2: 4, 3: 16, 4: 32}
    for wave, size in sizes.items():
        each = [record(number, wave=wave, seconds=(6.0 + 0.5 * size) / size) for number in range(size)]
        ledger.partitions.record(each, lease)
    cost = ledger.partitions.usual_cost("joined", ["run-1"])
    assert (cost.fixed, cost.each) == pytest.approx((6.0, 0.5))


def test_a_fenced_attempt_records_nothing(ledger, lease):
    newer = ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    with pytest.raises(Fenced):
        ledger.partitions.record([record(0)], lease)
    assert ledger.partitions.newest(CELL) == ()
    ledger.partitions.record([record(0, epoch=2)], newer)
    assert ledger.partitions.newest(CELL) == (record(0, epoch=2),)


def test_a_lease_that_ended_but_was_not_taken_still_records(ledger):
    lease = ledger.leases.acquire(NAME, "me", 0.02)
    time.sleep(0.05)
    ledger.partitions.record([record(0)], lease)
    assert ledger.partitions.newest(CELL) == (record(0),)


def test_an_unknown_lease_records_nothing(ledger, lease):
    with pytest.raises(UnknownName):
        ledger.partitions.record([record(0)], type(lease)("other", "me", 1, lease.expires_at))


def test_a_takeover_comes_before_or_after_a_record_but_never_within(ledger):
    """Each process seizes the lease and so fences the one before;
    whoever recorded did so before its successor began.
    """

    def seize_and_record(number: int) -> int | None:
        mine = ledger.leases.take(NAME, None, f"process {number}", 60, lambda _: True)
        try:
            ledger.partitions.record([record(partition, epoch=mine.epoch) for partition in range(20)], mine)
        except Fenced:
            return None
        return mine.epoch

    recorded = [epoch for epoch in in_processes(8, seize_and_record) if epoch is not None]
    epochs = [found.epoch for found in ledger.partitions.of_run("run-1")]
    assert epochs == sorted(epochs)
    assert {epoch: epochs.count(epoch) for epoch in recorded} == dict.fromkeys(recorded, 20)
    assert len(epochs) == 20 * len(recorded)
    assert 8 in recorded


def test_a_process_that_dies_inside_a_transaction_leaves_nothing_and_no_lock(ledger, ledger_url):
    lease = ledger.leases.acquire(NAME, "me", 60)

    def die_half_way() -> None:
        with Database(ledger_url).writing() as connection:
            connection.execute(partitions.insert(), [row_of(record(0)), row_of(record(1))])
            os._exit(9)

    in_process_that_dies(die_half_way)
    assert ledger.partitions.newest(CELL) == ()
    ledger.partitions.record([record(0)], lease)
    assert Ledger.open(ledger_url).partitions.newest(CELL) == (record(0),)


@pytest.mark.slow
def test_ten_thousand_partitions_with_several_attempts_are_read_quickly(ledger, lease):
    cells = [Cell("sales", f"stage {number}", "2024-01-01") for number in range(10)]
    for epoch in (1, 2, 3):
        ledger.partitions.record(
            [record(partition, cell=cell, epoch=epoch) for cell in cells for partition in range(1000)], lease
        )
    started = time.process_time()
    found = ledger.partitions.newest_of("sales", "2024-01-01")
    taken = time.process_time() - started
    assert {len(records) for records in found.values()} == {1000}
    assert {record.epoch for records in found.values() for record in records} == {3}
    assert taken < 2, f"{taken:.2f} s"


def test_the_history_of_a_cell_has_every_record_of_it_oldest_first(ledger, lease):
    ledger.partitions.record([record(1), record(0)], lease)
    ledger.partitions.record([record(1, epoch=2)], lease)
    ledger.partitions.record([record(0, cell=Cell("sales", "joined", "2024-01-02"))], lease)
    assert [(partition.partition, partition.epoch) for partition in ledger.partitions.history(CELL)] == [
        (1, 1),
        (0, 1),
        (1, 2),
    ]


def test_the_records_of_an_interval_are_those_of_all_its_stages_oldest_first(ledger, lease):
    other = Cell("sales", "other", "2024-01-01")
    ledger.partitions.record([record(1), record(0, cell=other)], lease)
    ledger.partitions.record([record(1, epoch=2), record(0, cell=Cell("sales", "joined", "2024-01-02"))], lease)
    found = ledger.partitions.of_interval("sales", "2024-01-01")
    assert [(attempt.cell.stage, attempt.epoch) for attempt in found] == [("joined", 1), ("other", 1), ("joined", 2)]


def test_what_came_since_a_row_is_found_without_what_was_there_before(ledger, lease):
    assert ledger.partitions.highest_id() == 0
    ledger.partitions.record([record(0), record(1), record(2)], lease)
    before = ledger.partitions.highest_id()
    released = record(1, epoch=3, state=PartitionState.RELEASED)
    ledger.partitions.record([record(1, epoch=2), released, record(3)], lease)
    ledger.partitions.record([record(0, cell=Cell("sales", "joined", "elsewhere"))], lease)
    upto = ledger.partitions.highest_id()
    ledger.partitions.record([record(2, epoch=4)], lease)
    assert ledger.partitions.between("sales", "2024-01-01", before, upto) == {"joined": (released, record(3))}
    assert ledger.partitions.between("sales", "2024-01-01", 0, upto) == {
        "joined": (record(0), released, record(2), record(3))
    }
    assert ledger.partitions.between("sales", "2024-01-01", upto, upto) == {}


@pytest.mark.parametrize("back_end", [one for one in BACK_ENDS if one == "postgresql"], indirect=True)
def test_a_row_whose_id_was_given_out_first_is_waited_for_though_it_is_committed_last(ledger, ledger_url, lease):
    """Or it would be below an id that a checkpoint says it covers, and in no checkpoint."""
    database = Database(ledger_url)
    with ThreadPoolExecutor() as pool:
        with database.writing() as connection:
            connection.execute(insert(partitions).values(row_of(record(0))))
            highest = pool.submit(ledger.partitions.highest_id)
            time.sleep(0.2)
            assert not highest.done()
        upto = highest.result(10)
    assert ledger.partitions.between("sales", "2024-01-01", 0, upto) == {"joined": (record(0),)}


def test_what_came_since_costs_the_same_however_many_rows_there_are(ledger, ledger_url, lease):
    def seconds(new: int) -> float:
        after = ledger.partitions.highest_id()
        ledger.partitions.record([record(partition, epoch=2) for partition in range(new)], lease)
        upto = ledger.partitions.highest_id()
        started = time.process_time()
        assert len(ledger.partitions.between("sales", "2024-01-01", after, upto)["joined"]) == new
        return time.process_time() - started

    few = min(seconds(20) for _ in range(5))
    with Database(ledger_url).writing() as connection:
        rows = [row_of(record(partition)) for partition in range(20_000)]
        connection.execute(insert(partitions), rows)
    assert min(seconds(20) for _ in range(5)) < 3 * few + 0.005
