"""Process after process is killed around the commit of a wave of which rows are set aside."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, ROWS, Workbench, killed

from stagehold.lake.quarantine import quarantine_uri
from stagehold.run.faults import FaultAction, Point, QuarantinePoint
from stagehold.spec.loading.loader import find_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SUITE = """\
suite: by_colour
expectations:
  - {type: expect_column_values_to_be_between, column: total, min_value: 0, on_fail: quarantine}
"""
POINTS = (QuarantinePoint.AFTER_SPLIT, Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH)  # whose commit is adopted


@pytest.fixture
def bench(tmp_path: Path, spark_remote: str) -> Workbench:
    """One colour's total is negative, which is set aside."""
    bench = Workbench.make(tmp_path, spark_remote)
    Path(bench.settings.suites, "by_colour.yaml").write_text(SUITE)
    path = Path(bench.settings.lake_uri, "raw", "numbers", "part-3.parquet")
    pq.write_table(pa.table({"number": pa.array([-7000] * ROWS, pa.int64())}), path)
    return bench


def set_aside(bench: Workbench) -> list[tuple[int, int, int]]:
    stage = find_pipeline("toy", bench.settings).stage("by_colour")
    table = DeltaTable(quarantine_uri(bench.settings.lake_uri, "toy", stage)).to_pyarrow_table()
    return sorted((row["colour"], row["total"], row["numbers"]) for row in table.to_pylist())


def test_whoever_is_killed_leaves_every_row_published_or_set_aside_and_none_twice(bench):
    for point in POINTS:
        wave = 2 if point is POINTS[0] else 1  # the first attempt gets there behind a wave without such a row
        bench.inject(point, "by_colour", wave, FaultAction.KILL)
        ended = bench.run("--run-id", "r1")
        assert killed(ended), f"not killed at {point}: {ended.err}"
    ended = bench.run("--run-id", "r1")
    assert ended.code == 0, ended.err
    aside = set_aside(bench)
    assert [colour for colour, total, _ in aside if total < 0] == [0]
    assert len(aside) == 1
    assert sorted([*bench.published(), *aside]) == bench.expected()
    kept = [record.set_aside.rows for record in bench.records("by_colour") if record.set_aside]
    assert kept == [1]
    assert bench.run("--run-id", "r2", "--interval", INTERVAL).code == 0
    assert set_aside(bench) == aside
