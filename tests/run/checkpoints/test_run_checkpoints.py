"""What is in a checkpoint, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import insert
from tests.ledger.samples import record, run
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PIPELINE, RUN, PaperRun

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import row_of
from stagehold.ledger.database.schema import partitions
from stagehold.ledger.leases import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointTrigger
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import take_coordinator_lease
from stagehold.run.checkpoints.run_checkpoints import RunCheckpoints
from stagehold.run.planning.planning import RunRequest
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.slow

CELL = Cell(PIPELINE, LEFT, INTERVAL)


def cut_into(paper: PaperRun, count: int) -> Pipeline:
    (stage,) = paper.pipeline.stages
    wide = stage.model_copy(update={"partitions": count, "max_parallelism": 1 << 17})
    return paper.pipeline.model_copy(update={"stages": (wide,)})


@contextmanager
def coordinator(paper: PaperRun, ledger: Ledger, pipeline: Pipeline) -> Iterator[RunCheckpoints]:
    known = ledger.runs.create(run(RUN, pipeline=PIPELINE, interval=INTERVAL))
    place = paper.workplace(ledger)
    lease = take_coordinator_lease(known, place)
    with Heartbeat(ledger.leases, lease, paper.settings.lease_seconds) as heartbeat:
        yield RunCheckpoints(known, RunRequest(pipeline, RUN, INTERVAL, {}), place, heartbeat)
    ledger.leases.release(lease)


def take(checkpoints: RunCheckpoints) -> CheckpointRecord:
    begun = checkpoints.begin(checkpoints.next_number, CheckpointTrigger.PERIODIC)
    return checkpoints.complete(begun, *checkpoints.write(begun))


def told(ledger: Ledger, *records: PartitionRecord) -> None:
    lease = ledger.leases.acquire("region", "me", 60)
    ledger.partitions.record([replace(record, cell=CELL) for record in records], lease)


def states(paper: PaperRun, number: int) -> dict[int, PartitionState]:
    (stage,) = paper.stored.read_checkpoint(number).stages
    return {partition.partition: partition.state for partition in stage.partitions}


@pytest.mark.parametrize("state", [PartitionState.RELEASED, PartitionState.DAMAGED, PartitionState.BLOCKED])
def test_what_is_no_longer_consumable_is_not_told_as_if_it_were(tmp_path, state):
    paper = PaperRun.make(tmp_path, (LEFT,), retained=9)
    with paper.ledger() as ledger, coordinator(paper, ledger, cut_into(paper, 3)) as checkpoints:
        told(ledger, record(0), record(1))
        take(checkpoints)
        told(ledger, record(1, state=state), record(2))
        take(checkpoints)
    good = PartitionState.CONSUMABLE
    assert states(paper, 1) == {0: good, 1: good}
    assert states(paper, 2) == {0: good, 1: state, 2: good}


def test_a_stage_that_is_cut_differently_now_is_told_anew(tmp_path):
    paper = PaperRun.make(tmp_path, (LEFT,), retained=9)
    with paper.ledger() as ledger:
        told(ledger, record(0), record(1))
        with coordinator(paper, ledger, cut_into(paper, 2)) as checkpoints:
            take(checkpoints)
        with coordinator(paper, ledger, cut_into(paper, 3)) as checkpoints:
            take(checkpoints)
    assert states(paper, 2).keys() == {0, 1}


def test_after_a_ledger_was_rebuilt_ids_of_rows_mean_nothing_and_all_is_asked_for(tmp_path):
    paper = PaperRun.make(tmp_path / "lost", (LEFT,), retained=9)
    with paper.ledger() as ledger, coordinator(paper, ledger, cut_into(paper, 9)) as checkpoints:
        told(ledger, *(record(0, epoch=epoch) for epoch in range(1, 50)), record(1))
        take(checkpoints)
        facts = ledger.facts.all()
    newest = [fact for fact in facts if not (isinstance(fact, PartitionRecord) and fact.epoch < 49)]
    for file in paper.settings.home_path.glob("ledger.db*"):
        file.unlink()
    with paper.ledger() as ledger:
        ledger.facts.mend(lambda _: newest)
        told(ledger, record(2))
        with coordinator(paper, ledger, cut_into(paper, 9)) as checkpoints:
            take(checkpoints)
    assert states(paper, 2).keys() == {0, 1, 2}


def test_a_checkpoint_costs_what_changed_and_not_what_there_is(tmp_path):
    seconds = {}
    for count in (1_000, 20_000):
        paper = PaperRun.make(tmp_path / str(count), (LEFT,))
        with Database(paper.settings.ledger_url).writing() as connection:
            rows = (row_of(replace(record(partition), cell=CELL)) for partition in range(count))
            connection.execute(insert(partitions), list(rows))
        with paper.ledger() as ledger, coordinator(paper, ledger, cut_into(paper, count)) as checkpoints:
            take(checkpoints)
            assert len(states(paper, 1)) == count
            seconds[count] = min(timed(checkpoints, ledger, epoch) for epoch in range(2, 7))
    assert seconds[20_000] < 3 * seconds[1_000], seconds


def timed(checkpoints: RunCheckpoints, ledger: Ledger, epoch: int) -> float:
    told(ledger, *(record(partition, epoch=epoch) for partition in range(500, 520)))
    started = time.process_time()
    taken = take(checkpoints)
    seconds = time.process_time() - started
    assert taken.bytes_written > 0
    return seconds
