"""Intervals that are planned one after the other are read some at once, and none of them twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ledger.samples import record
from tests.plan.split.test_partition_counts import stage

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.run.backfill.backfill_planning import RecordsAhead
from stagehold.spec.pipeline import Pipeline

PIPELINE = Pipeline(name="sales", file="sales.yaml", stages=(stage("joined"),))
DAYS = tuple(f"2024-01-{day:02}" for day in range(1, 8))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        lease = opened.leases.acquire(f"sales/{DAYS[0]}/joined", "me", 60)
        opened.partitions.record([record(0, cell=Cell("sales", "joined", day)) for day in DAYS[:2]], lease)
        opened.leases.acquire(f"sales/{DAYS[2]}/joined", "me", 60)
        yield opened


def test_some_are_read_at_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    read = ledger.partitions.newest_of_each
    monkeypatch.setattr(ledger.partitions, "newest_of_each", lambda name, of: asked.append([*of]) or read(name, of))
    ahead = RecordsAhead(PIPELINE, DAYS, ledger, at_once=3 * PIPELINE.stage("joined").partitions)
    found = {day: ahead.of(day) for day in DAYS}
    assert asked == [[*DAYS[:3]], [*DAYS[3:6]], [*DAYS[6:]]]
    assert [bool(found[day].partitions) for day in DAYS] == [True, True, *[False] * 5]


def test_an_interval_is_known_by_its_records_or_by_a_lease(ledger: Ledger) -> None:
    ahead = RecordsAhead(PIPELINE, DAYS, ledger)
    assert [ahead.are_known(day) for day in DAYS[:4]] == [True, True, True, False]
