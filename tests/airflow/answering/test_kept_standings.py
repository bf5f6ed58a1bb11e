"""What is kept of how intervals stand: never other than what the ledger says, and counted again only where it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ledger.samples import record, run

from stagehold.airflow.answering.kept_standings import KeptStandings
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import KeptMemory
from stagehold.model.records import Cell
from stagehold.model.states import RunEvent
from stagehold.spec.loading.loader import build_pipeline

SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 2}
DECLARED = {"pipeline": "sales", "stages": {"orders": {"job": "jobs.tpch:orders", "source": SOURCE}}}
PIPELINE = build_pipeline(DECLARED, project=Path(), suites=Path())
ORDERS = PIPELINE.stage("orders").id
PIPELINES = {"sales": PIPELINE}
PLACES = [("sales", "2026-11-01"), ("sales", "2026-11-02")]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        yield opened


def write(ledger: Ledger, interval: str, partition: int) -> None:
    lease = ledger.leases.acquire(f"sales/{interval}/orders", "me", 60)
    ledger.partitions.record([record(partition, cell=Cell("sales", PIPELINE.stage("orders").id, interval))], lease)
    ledger.leases.release(lease)


def done(kept: KeptStandings) -> list[int]:
    found = kept.of(PLACES, PIPELINES)
    return [found[place][ORDERS].done for place in PLACES]


def test_kept_standings_follow_the_ledger(ledger):
    kept = KeptStandings(ledger)
    assert done(kept) == [0, 0]
    write(ledger, "2026-11-01", 0)
    assert done(kept) == [1, 0]
    write(ledger, "2026-11-02", 0)
    write(ledger, "2026-11-01", 1)
    assert done(kept) == [2, 1]


def test_only_intervals_that_were_written_are_counted_again(ledger):
    kept, asked = KeptStandings(ledger), []
    counts = ledger.pipelines.counts
    ledger.pipelines.counts = lambda places, below: asked.append(places) or counts(places, below)
    write(ledger, "2026-11-01", 0)
    done(kept)
    done(kept)
    write(ledger, "2026-11-02", 0)
    assert done(kept) == [1, 1]
    assert asked == [PLACES, [PLACES[1]]]


def test_a_pipeline_that_declares_something_else_is_counted_again(ledger):
    kept = KeptStandings(ledger)
    write(ledger, "2026-11-01", 0)
    assert kept.of(PLACES, PIPELINES)[PLACES[0]][ORDERS].total == 2
    more = {"orders": {"job": "jobs.tpch:orders", "source": {**SOURCE, "splits": 5}}}
    changed = build_pipeline({**DECLARED, "stages": more}, project=Path(), suites=Path())
    assert kept.of(PLACES, {"sales": changed})[PLACES[0]][ORDERS].total == 5
    ledger.runs.start(run("a", pipeline="sales", interval="2026-11-01"))
    assert done(kept) == [1, 0]


def test_standings_without_room_are_counted_again(ledger):
    memory = KeptMemory(1)
    kept = KeptStandings(ledger, memory)
    write(ledger, "2026-11-01", 0)
    assert [done(kept), done(kept)] == [[1, 0], [1, 0]]
    assert [one.values for one in memory.kinds] == [1]


def test_runs_of_a_pipeline_are_read_again_only_when_one_of_them_has_moved(ledger, monkeypatch):
    kept, asked = KeptStandings(ledger), []
    read = ledger.pipelines.newest_runs
    monkeypatch.setattr(
        ledger.pipelines, "newest_runs", lambda names, each: asked.append(list(names)) or read(names, each)
    )

    def states() -> dict[str, list[str]]:
        return {name: [one.state for one in some] for name, some in kept.newest_runs(["sales", "costs", "new"]).items()}

    ledger.runs.start(run("a", pipeline="sales", interval="2026-11-01"))
    ledger.runs.start(run("b", pipeline="costs", interval="2026-11-01"))
    before = {"sales": ["running"], "costs": ["running"], "new": []}
    assert [states(), states()] == [before, before]
    ledger.runs.apply("b", RunEvent.ALL_FINISHED)
    assert states() == {**before, "costs": ["finished"]}
    assert asked == [["sales", "costs", "new"], ["costs"]]
