from __future__ import annotations

from tests.ledger.samples import CELL, RUN_ENDS, START, record, run

from stagehold.model.records import Cell, PartitionCount, RunState
from stagehold.model.standing import PartitionState


def test_the_newest_runs_of_each_pipeline_come_newest_first(ledger):
    for name, pipeline, minutes in (("a", "sales", 0), ("b", "sales", 2), ("c", "sales", 1), ("d", "costs", 9)):
        ledger.runs.start(run(name, pipeline=pipeline, interval=name, minutes=minutes))
    found = ledger.pipelines.newest_runs(["sales", "costs", "never"], each=2)
    assert {name: [one.run_id for one in some] for name, some in found.items()} == {"sales": ["b", "c"], "costs": ["d"]}
    assert [run.run_id for run in ledger.pipelines.newest_runs(["costs"], each=5)["costs"]] == ["d"]
    assert ledger.pipelines.newest_runs([], each=2) == {}
    assert ledger.pipelines.known() == {"sales", "costs"}


def test_the_counts_of_several_places_are_those_of_each(ledger):
    lease = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    other, unasked = Cell("costs", "joined", "day"), Cell("sales", "joined", "another day")
    ledger.partitions.record([record(number) for number in range(3)], lease)
    ledger.partitions.record([record(2, state=PartitionState.BLOCKED, epoch=2)], lease)
    ledger.partitions.record([record(0, cell=other), record(0, cell=unasked)], lease)
    places = [(CELL.pipeline, CELL.interval), ("costs", "day"), ("never", "day")]
    consumable, blocked = PartitionState.CONSUMABLE, PartitionState.BLOCKED
    assert ledger.pipelines.counts(places) == {
        (CELL.pipeline, CELL.interval): {"joined": {consumable: 2, blocked: 1}},
        ("costs", "day"): {"joined": {consumable: 1}},
    }
    assert ledger.pipelines.counts([]) == {}


def test_partitions_from_a_number_on_do_not_count(ledger):
    lease = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    ledger.partitions.record([record(number) for number in range(5)], lease)
    ledger.partitions.record([record(number, state=PartitionState.BLOCKED, epoch=2) for number in (1, 4)], lease)
    place = (CELL.pipeline, CELL.interval)
    consumable, blocked = PartitionState.CONSUMABLE, PartitionState.BLOCKED
    expected = {9: {consumable: 3, blocked: 2}, 5: {consumable: 3, blocked: 2}, 4: {consumable: 3, blocked: 1}, 0: {}}
    for end, counts in expected.items():
        assert ledger.pipelines.counts([place], {place: {"joined": end}}) == {place: {"joined": counts}}


def test_numbers_that_were_decided_are_found_for_several_places(ledger):
    other = Cell("costs", "joined", "day")
    for cell, number in ((CELL, 3), (other, 5), (Cell("sales", "joined", "unasked"), 7)):
        ledger.partition_counts.decide(PartitionCount(cell, number, 100, START))
    places = [(CELL.pipeline, CELL.interval), ("costs", "day"), ("never", "day")]
    assert ledger.pipelines.decided(places) == {places[0]: {"joined": 3}, places[1]: {"joined": 5}}
    assert ledger.pipelines.decided([]) == {}


def test_what_changed_is_told_by_its_place(ledger):
    lease = ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)
    ledger.partitions.record([record(0)], lease)
    here, there = (CELL.pipeline, CELL.interval), ("costs", "day")
    changed, partition, transition = ledger.pipelines.changed(0, 0)
    assert changed == {here}
    assert ledger.pipelines.changed(partition, transition) == (frozenset(), partition, transition)
    ledger.runs.start(run("a", pipeline="costs", interval="day"))
    changed, partition, later = ledger.pipelines.changed(partition, transition)
    assert (changed, later > transition) == ({there}, True)
    ledger.partitions.record([record(0, state=PartitionState.BLOCKED, epoch=2)], lease)
    ledger.runs.apply("a", *RUN_ENDS[RunState.FINISHED])
    assert ledger.pipelines.changed(partition, later)[0] == {here, there}
