from __future__ import annotations

from tests.ledger.samples import CELL, record, run

from stagehold.model.records import Cell, PartitionState


def test_the_newest_runs_of_each_pipeline_come_newest_first(ledger):
    for name, pipeline, minutes in (("a", "sales", 0), ("b", "sales", 2), ("c", "sales", 1), ("d", "costs", 9)):
        ledger.runs.start(run(name, pipeline=pipeline, interval=name, minutes=minutes))
    found = ledger.pipelines.newest_runs(["sales", "costs", "never"], each=2)
    assert {name: [one.run_id for one in some] for name, some in found.items()} == {"sales": ["b", "c"], "costs": ["d"]}
    assert [one.run_id for one in ledger.pipelines.newest_runs(["costs"], each=5)["costs"]] == ["d"]
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
