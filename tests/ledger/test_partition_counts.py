from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import CELL, START, in_processes

from stagehold.ledger import Ledger
from stagehold.model.records import Cell, PartitionCount

COUNT = PartitionCount(CELL, partitions=12, bytes=200_000_000_000, recorded_at=START)


def test_the_first_count_stands(ledger):
    assert ledger.partition_counts.decide(COUNT) == COUNT
    assert ledger.partition_counts.decide(replace(COUNT, partitions=3)) == COUNT
    assert ledger.partition_counts.decided(CELL.pipeline, CELL.interval) == {CELL.stage: COUNT}


def test_counts_of_other_stages_intervals_and_pipelines_do_not_mix(ledger):
    cells = [
        CELL,
        Cell("sales", "orders", "2024-01-01"),
        Cell("sales", "joined", "2024-01-02"),
        Cell("costs", "joined", "2024-01-01"),
    ]
    counts = [replace(COUNT, cell=cell, partitions=number) for number, cell in enumerate(cells, 1)]
    for count in counts:
        assert ledger.partition_counts.decide(count) == count
    assert ledger.partition_counts.decided("sales", "2024-01-01") == {"joined": counts[0], "orders": counts[1]}
    assert ledger.partition_counts.decided("sales", "2024-01-03") == {}


def test_everybody_gets_the_count_that_stands(ledger_url):
    def decide(number):
        with Ledger.open(ledger_url) as own:
            return own.partition_counts.decide(replace(COUNT, partitions=number + 1))

    with Ledger.open(ledger_url):
        pass
    assert len(set(in_processes(4, decide))) == 1
