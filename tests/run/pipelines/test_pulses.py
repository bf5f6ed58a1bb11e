"""What the heartbeats of a run say while it computes on a real Spark server, as `stagehold leases` shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.workbench import INTERVAL, Workbench, ended
from tests.run.zygote import Command

from stagehold.ledger.ledger import Ledger
from stagehold.model.pulse import Pulse, Side
from stagehold.run.lease.held_leases import HeldLease, held_leases

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    made = Workbench.make(tmp_path, spark_remote)
    return replace(made, settings=replace(made.settings, lease_seconds=1))


def watched(bench: Workbench, command: Command) -> Iterator[HeldLease]:
    """Each lease as often as it is looked at, until the command has ended."""
    with Ledger.open(bench.settings.ledger_url) as ledger:
        while command.poll() is None:
            yield from held_leases(ledger, "toy")
            time.sleep(0.05)


# Spark's server tells every two seconds what a query has read, so one has to take longer than that behind its reading.
SLOW = """
@stage
def by_colour(ctx: StageContext, by_wave: DataFrame, numbers: DataFrame) -> DataFrame:
    def take_time(batches):
        import time

        time.sleep(3)
        yield from batches

    sums = by_wave.groupBy("colour").agg(F.sum("number").alias("total"))
    counts = numbers.groupBy("colour").agg(F.count("*").alias("numbers"))
    frame = sums.join(counts, "colour").withColumn("factor", F.lit(ctx.params["factor"]))
    return frame.mapInArrow(take_time, "colour long, total long, numbers long, factor int")
"""


def test_heartbeats_tell_how_far_the_work_is_and_what_its_time_goes_for(bench):
    jobs = Path(bench.settings.project) / "toy_jobs.py"
    jobs.write_text(f"{jobs.read_text()}{SLOW}")
    command = bench.command("run", "toy", "--interval", INTERVAL, "--run-id", "r1", "--json")
    seen = [*watched(bench, command)]
    assert ended(command).code == 0
    assert {held.run_id for held in seen if held.attempt_id} == {"r1"}
    assert all(held.holder.host for held in seen)
    pulses: list[Pulse] = [held.lease.pulse for held in seen if held.lease.pulse]
    assert pulses
    assert {pulse.stage for pulse in pulses} <= {"numbers", "by_wave", "by_colour", "summary"}
    working = [pulse for pulse in pulses if pulse.done]
    assert working
    assert all(pulse.done <= pulse.partitions and pulse.rows_a_second > 0 for pulse in working)
    assert max(pulse.read for pulse in working) > 0, "Spark says what it has read"
    assert {Side.JUDGING, Side.PUBLISHING} < {side for pulse in working for side in pulse.seconds}
    assert all(pulse.memory.client > 0 and pulse.memory.server is None for pulse in pulses), "the server is elsewhere"
