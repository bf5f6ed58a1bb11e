"""A published table that gained a column: days of before it are healed as they were, and later ones have to have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import Ended, Workbench, ended

from stagehold.ledger import Ledger

MONDAY, TUESDAY, WEDNESDAY = "2026-11-23", "2026-11-24", "2026-11-25"

JOBS = """
from pyspark.sql import DataFrame, functions as F
from stagehold import StageContext, stage


@stage
def numbers(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.withColumn("half", F.col("number") / 2) if ctx.interval == "2026-11-24" else source
"""
PIPELINE = """
pipeline: toy
stages:
  numbers:
    job: growing:numbers
    source: {kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: 2}
    output: {type: blocking_persistent, table: marts.numbers}
"""

pytestmark = pytest.mark.spark


def run(bench: Workbench, interval: str) -> Ended:
    return ended(bench.command("run", "toy", "--interval", interval, "--json"))


def rows(bench: Workbench) -> list[tuple[str, int, float | None]]:
    found = DeltaTable(f"{bench.settings.lake_uri}/marts/numbers").to_pyarrow_table().to_pylist()
    return sorted((row["_interval"], row["number"], row["half"]) for row in found)


def lose(bench: Workbench, partitions: tuple[int, ...]) -> None:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        for record in ledger.partitions.newest_of("toy", MONDAY)["numbers"]:
            for file in record.files if record.partition in partitions else ():
                Path(record.table, file.path).unlink()


def test_a_day_of_before_a_column_is_healed_as_it_was_and_a_new_one_without_it_is_refused(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    (Path(bench.settings.project) / "growing.py").write_text(JOBS)
    (Path(bench.settings.pipelines) / "toy.yaml").write_text(PIPELINE)
    assert run(bench, MONDAY).counts == (0, 2)
    assert ended(bench.command("savepoint", "create", "--name", "before")).code == 0
    assert run(bench, TUESDAY).counts == (0, 2)
    whole = rows(bench)
    assert {(day, half is None) for day, _, half in whole} == {(MONDAY, True), (TUESDAY, False)}

    assert ended(bench.command("intervals", "delete", "toy", MONDAY, "--yes")).code == 0
    assert ended(bench.command("savepoint", "restore", "before", "--publish")).code == 0
    assert rows(bench) == whole

    for lost in ((1,), (0, 1)):
        lose(bench, lost)
        assert run(bench, MONDAY).counts == (2 - len(lost), len(lost))
        assert rows(bench) == whole
    assert ended(bench.command("verify", "toy", "--interval", MONDAY)).code == 0

    refused = run(bench, WEDNESDAY)
    assert refused.code == 1
    assert 'select what a day does not have as NULL: F.lit(None).cast("double").alias("half")' in refused.err
    assert rows(bench) == whole
