"""A run whose regions are split over tasks, killed and resumed with another cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.workbench import INTERVAL, Workbench, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, RunState
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def split(bench: Workbench, tasks: int) -> None:
    """Cut the fused region of two stages, and the keyed stage that reads it, into so many shares."""
    path = Path(bench.settings.pipelines) / "toy.yaml"
    lines = [line for line in path.read_text().splitlines() if "max_parallel_tasks" not in line]
    for stage in ("by_wave", "by_colour"):
        lines.insert(lines.index(f"    job: toy_jobs:{stage}"), f"    max_parallel_tasks: {tasks}")
    path.write_text("\n".join(lines) + "\n")


def test_what_a_share_committed_before_it_was_killed_is_adopted_by_the_shares_of_another_cut(bench):
    split(bench, 2)
    bench.inject(Point.AFTER_PUBLISH, "by_wave", 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", "r1"))
    assert bench.records("by_wave") == ()
    split(bench, 4)
    resumed = bench.run("--run-id", "r1")
    assert resumed.counts == (4 + 2, 2 + 4 + 1)
    assert resumed.err.count("adopted 1 partitions") == 2  # of the two that the old share had, each new one takes its own
    assert bench.published() == bench.expected()
    with Ledger.open(bench.settings.ledger_url) as ledger:
        attempts = [one for one in ledger.attempts.of_run("r1") if one.region == "doubled__by_wave"]
        assert ledger.runs.get("r1").state is RunState.FINISHED
    assert [one.share for one in attempts] == ["0-1", "0-0", "1-1", "2-2", "3-3"]
    assert [one.epoch for one in attempts] == [1, 2, 3, 4, 5]
    assert [one.state for one in attempts[1:]] == [AttemptState.FINISHED] * 4
    split(bench, 1)
    assert bench.run(settings=bench.without_spark()).counts == (13, 0)
    assert bench.records("by_wave")[0].cell.interval == INTERVAL
