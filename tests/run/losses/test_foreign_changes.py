"""A published table that lost its newest log file, or that somebody else changed:
what a plan says, and what a run does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, Ended, Workbench, ended

from stagehold.lake.commit.delta_log import commit_versions

TUESDAY, WEDNESDAY = "2026-11-21", "2026-11-22"

PIPELINE = """
pipeline: toy
wave: 100ms
stages:
  numbers:
    job: toy_jobs:numbers
    source: {{kind: parquet, path: "${{lake}}/raw/numbers/*.parquet", splits: 1}}
    output: {{type: blocking_persistent, table: marts.numbers, {options}}}
"""

pytestmark = pytest.mark.spark


def two_intervals(folder: Path, spark_remote: str, options: str) -> Workbench:
    """Both are published, as one partition each."""
    bench = Workbench.make(folder, spark_remote)
    declare(bench, options)
    for interval in (INTERVAL, TUESDAY):
        assert run(bench, interval).counts == (0, 1)
    return bench


def declare(bench: Workbench, options: str) -> None:
    (Path(bench.settings.pipelines) / "toy.yaml").write_text(PIPELINE.format(options=options))


def run(bench: Workbench, interval: str) -> Ended:
    return ended(bench.command("run", "toy", "--interval", interval, "--json"))


def planned(bench: Workbench, interval: str) -> str:
    shown = ended(bench.command("plan", "toy", "--interval", interval))
    return next(line for line in shown.out.splitlines() if line.split()[:1] == ["numbers"] and " of " in line)


def uri(bench: Workbench) -> str:
    return f"{bench.settings.lake_uri}/marts/numbers"


def rows(bench: Workbench) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for row in DeltaTable(uri(bench)).to_pyarrow_table().sort_by("number").to_pylist():
        found.setdefault(row["_interval"], []).append((row["number"], row["colour"]))
    return found


@pytest.mark.parametrize("committer", ["staged", "delta_spark"])
def test_an_interval_whose_log_file_was_lost_heals_though_its_number_was_given_again(tmp_path, spark_remote, committer):
    bench = two_intervals(tmp_path, spark_remote, f"committer: {committer}")
    whole, lost = rows(bench), commit_versions(uri(bench))[-1]
    for file in Path(uri(bench), "_delta_log").glob(f"*{lost:020d}.*"):
        file.unlink()
    assert run(bench, WEDNESDAY).code == 0
    assert set(rows(bench)) == {INTERVAL, WEDNESDAY}
    assert "heal" in planned(bench, TUESDAY)
    assert "reuse" in planned(bench, INTERVAL)
    assert run(bench, TUESDAY).counts == (0, 1)
    healed = rows(bench)
    assert {interval: healed[interval] for interval in whole} == whole
    assert "reuse" in planned(bench, TUESDAY)


def test_what_somebody_deleted_holds_its_interval_up_until_it_is_said_what_to_do(tmp_path, spark_remote, spark):
    bench = two_intervals(tmp_path, spark_remote, "on_foreign_change: fail")
    whole = rows(bench)
    spark.sql(f"DELETE FROM delta.`{uri(bench)}` WHERE _interval = '{TUESDAY}' AND colour = 3")
    told = f"removed by commit {DeltaTable(uri(bench)).version()} (DELETE) of Apache-Spark/"
    assert "blocked" in planned(bench, TUESDAY)
    assert told in planned(bench, TUESDAY)
    assert "reuse" in planned(bench, INTERVAL)
    refused = run(bench, TUESDAY)
    assert refused.code == 1
    assert told in refused.err
    assert "set `on_foreign_change: heal`" in refused.err
    assert run(bench, INTERVAL).counts == (1, 0)
    declare(bench, "on_foreign_change: keep")
    assert run(bench, TUESDAY).counts == (1, 0)
    assert rows(bench)[TUESDAY] == [(number, colour) for number, colour in whole[TUESDAY] if colour != 3]
    declare(bench, "on_foreign_change: heal")
    assert run(bench, TUESDAY).counts == (0, 1)
    assert rows(bench) == whole
