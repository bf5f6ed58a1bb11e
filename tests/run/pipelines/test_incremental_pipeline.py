"""Two intervals of an incremental pipeline, a crash, and files that arrive all the time: each row is published once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import TOY, Ended, Workbench, ended, killed

from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    shutil.copy(TOY / "events.yaml", bench.settings.pipelines)
    return bench


def arrive(bench: Workbench, *numbers: int) -> None:
    folder = Path(bench.settings.lake_uri) / "raw" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / f"{99 - number}.csv").write_text(f"{number}\n")


def run(bench: Workbench, interval: str) -> Ended:
    return ended(bench.command("run", "events", "--interval", interval, "--json"))


def published(bench: Workbench) -> dict[str, list[int]]:
    table = DeltaTable(f"{bench.settings.lake_uri}/marts/events").to_pyarrow_table()
    found: dict[str, list[int]] = {}
    for row in table.sort_by("id").to_pylist():
        found.setdefault(row["_interval"], []).append(row["id"])
    return found


def test_no_row_is_lost_or_published_twice(bench):
    arrive(bench, 1, 2, 3, 4)
    bench.inject(Point.BEFORE_PUBLISH, "events", 2, FaultAction.KILL)
    assert killed(run(bench, "monday"))
    arrive(bench, 5, 6)
    assert "events: tuesday reads 2 files" in run(bench, "tuesday").err
    assert published(bench) == {"monday": [3, 4], "tuesday": [5, 6]}
    arrive(bench, 7)
    resumed = run(bench, "monday")
    assert resumed.counts == (2, 2), resumed.err
    assert run(bench, "wednesday").counts == (0, 1)
    assert run(bench, "thursday").counts == (0, 1)  # nothing new: an empty partition
    assert published(bench) == {"monday": [1, 2, 3, 4], "tuesday": [5, 6], "wednesday": [7]}
    arrive(bench, 1)
    refused = run(bench, "friday")
    assert refused.code == 1
    assert "98.csv was read before" in refused.err
