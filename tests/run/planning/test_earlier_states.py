"""Which intervals come before another one."""

from __future__ import annotations

import pytest
from tests.ledger.samples import record
from tests.run.clearing.nights import PIPELINE, Nights
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.run.planning.earlier_states import KnownIntervals, earlier_intervals

JOBS = "from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source):\n    return source\n"
KEYS = ("2026-11-20", "2026-11-19", "2026-11-20T14:05:00Z", "2026-11-21", "whole", "2026-11-08")


@pytest.fixture
def ledger(ledger_file):
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.mark.parametrize(
    ("interval", "earlier"),
    [
        ("2026-11-21", ("2026-11-20T14:05:00Z", "2026-11-20", "2026-11-19", "2026-11-08")),
        ("2026-11-20", ("2026-11-19", "2026-11-08")),
        ("2026-11-15", ("2026-11-08",)),
        ("2026-11-08", ()),
        ("whole", ()),
    ],
)
def test_intervals_are_in_the_order_of_time_whenever_they_ran(tmp_path, ledger, interval, earlier):
    pipeline = SmallProject.make(tmp_path, "", JOBS).pipeline(
        "own", {"numbers": {"source": NUMBERS}}, schedule="@daily"
    )
    (stage,) = pipeline.stages
    own = [Cell("own", stage.id, key) for key in KEYS]
    others = [Cell("own", "another", "2026-11-07"), Cell("another", stage.id, "2026-11-07")]
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record([record(0, cell=cell) for cell in (*own, *others)], lease)
    assert earlier_intervals(pipeline, stage, interval, KnownIntervals(ledger)) == earlier


def test_a_sandbox_knows_productions_intervals_and_production_knows_none_of_a_sandbox(tmp_path, ledger):
    nights = Nights(tmp_path)
    stage = nights.pipeline.stage("prints")
    for night in ("2026-11-18", "2026-11-19"):
        nights.run(night, "a")
    assert KnownIntervals.of(nights.ledger, nights.settings).production is None
    in_sandbox = KnownIntervals(ledger, nights.settings.lake_uri, with_stateless=True)
    assert earlier_intervals(nights.pipeline, stage, "2026-11-20", in_sandbox) == ("2026-11-19", "2026-11-18")
    night = Cell(PIPELINE, stage.id, "2026-11-19")
    assert in_sandbox.newest(night) == nights.ledger.partitions.newest(night)
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record([record(0, cell=night, rows=77)], lease)
    assert [record.rows for record in in_sandbox.newest(night)] == [77], "what a sandbox has computed itself"
