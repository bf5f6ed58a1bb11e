"""Process after process is killed in one interval, at each point once, until nothing is left to do.
`make chaos` crosses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.lake_watch import LakeWatch, waves
from tests.run.workbench import INTERVAL, ROWS, Workbench, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.standing import PartitionState
from stagehold.model.states import ATTEMPT
from stagehold.run.faults import FaultAction, Point
from stagehold.spec.loading.loader import find_pipeline

# Some 20 processes, one after the other.
pytestmark = [pytest.mark.spark, pytest.mark.in_each_turn, pytest.mark.timeout(600)]

RUN = "r1"
REGIONS = {"numbers": "numbers", "by_wave": "doubled__by_wave", "by_colour": "by_colour", "summary": "summary"}
OF_A_STAGE = [point for point in Point if point not in (Point.AFTER_LEASE, Point.BEFORE_FINISH)]
FENCES = (Point.BEFORE_FENCE, Point.AFTER_FENCE)


@pytest.fixture
def bench(tmp_path: Path, spark_remote: str) -> Workbench:
    """The first stage has delta-spark make its commits; all others are staged."""
    bench = Workbench.make(tmp_path, spark_remote)
    file = Path(bench.settings.pipelines, "toy.yaml")
    lines = file.read_text().splitlines()
    lines.insert(lines.index("    job: toy_jobs:numbers"), "    output: {committer: delta_spark}")
    file.write_text("\n".join(lines) + "\n")
    return bench


@pytest.fixture
def watch(bench: Workbench) -> LakeWatch:
    return LakeWatch(find_pipeline("toy", bench.settings), INTERVAL, bench.settings)


def points_of(stage: str) -> Iterator[tuple[Point, str, int]]:
    """In the order in which attempts get there, each of which begins anew with wave 1."""
    yield Point.AFTER_LEASE, REGIONS[stage], 0
    for point in OF_A_STAGE:
        yield point, stage, 0 if point in FENCES else 1


def kill_at(bench: Workbench, watch: LakeWatch, point: Point, name: str, wave: int) -> None:
    """What was consumable before still is, and at most one wave is lost."""
    bench.inject(point, name, wave, FaultAction.KILL)
    ended = bench.run("--run-id", RUN)
    assert killed(ended), f"not killed at {point} of {name}: {ended.err}"
    watch.check()
    with Ledger.open(bench.settings.ledger_url) as ledger:
        last = ledger.attempts.of_run(RUN)[-1]
    assert (last.began, ATTEMPT.is_terminal(last.state)) == (True, False)
    assert len(watch.unfinished_waves(last.attempt_id)) <= 1


def spoil_a_source(bench: Workbench) -> None:
    """One colour's total becomes negative, which its gate refuses; the others are as good as before."""
    path = Path(bench.settings.lake_uri, "raw", "numbers", "part-3.parquet")
    pq.write_table(pa.table({"number": pa.array([-7000] * ROWS, pa.int64())}), path)


def test_whatever_point_a_worker_is_killed_at_nothing_is_lost_repeated_mixed_or_shown(bench, watch):
    spoil_a_source(bench)
    for place, (stage, region) in enumerate(REGIONS.items()):
        for point in list(points_of(stage))[place :: len(REGIONS)]:
            kill_at(bench, watch, *point)
        if stage == "by_colour":
            assert bench.run("--run-id", RUN).code == 1
            assert [record.state for record in bench.records(stage)].count(PartitionState.BLOCKED) == 1
            bench.write_source(3)
            watch.forget()
        kill_at(bench, watch, Point.BEFORE_FINISH, region, 0)
    assert bench.run("--run-id", RUN).counts == (13, 0)
    watch.check()
    assert bench.published() == bench.expected()
    for stage in REGIONS:
        live = {entry.moment: entry.version for entry in waves(watch.log(stage).entries)}
        assert all(live[record.epoch, record.wave] == record.version for record in bench.records(stage))
