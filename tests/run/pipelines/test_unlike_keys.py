"""Keyed joins over keys that are equal to Spark and of different types: rows meet, or the join is refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import KeyTypesUnlike, StageContractBroken
from stagehold.ledger import Ledger
from stagehold.model.records import PartitionRecord

pytestmark = pytest.mark.spark

PAIRS = {  # key of the left row with a number, key of the right one
    "decimals": ("cast(number as decimal(10,1)) / 10", "cast(number as decimal(20,8)) / 10"),
    "double_and_int": ("cast(number as double)", "cast(number as int)"),
    "bigint_and_decimal": ("number", "cast(number as decimal(12,2))"),
    "large": ("9007199254740992 + number", "cast(9007199254740992 as double) + number"),
    "floats": ("cast(number as float) / 4", "cast(number as double) / 4"),
    "zeros": ("if(number < 50, 0.0d, -0.0d)", "if(number % 2 = 0, 0.0d, cast(number as double))"),
    "structs": ("named_struct('n', number, 's', 'x')", "named_struct('n', cast(number as double), 's', 'x')"),
}
REFUSED = {
    "text": (
        "cast(number as string)",
        "number",
        ['F.col("text").cast("bigint")', "left.text is string", "right.text is bigint"],
    ),
    "days": (
        "date_add(date'2026-01-01', cast(number as int))",
        "timestamp_micros(number)",
        ['F.col("days").cast("timestamp")'],
    ),
    "rounded": (
        "cast(number as decimal(38,0))",
        "cast(number as decimal(38,10))",
        ['F.col("rounded").cast("decimal(38,0)")'],
    ),
    "folded": ("'a' collate UTF8_LCASE", "'A' collate UTF8_LCASE", ['F.collate("folded", "UTF8_BINARY")']),
}
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def left(ctx, source):
    return source.select("number", *(F.expr(key).alias(name) for name, key in ctx.params["left"].items()))

@stage
def right(ctx, source):
    return source.select("number", *(F.expr(key).alias(name) for name, key in ctx.params["right"].items()))

def joined(name, left, right):
    both = left.alias("l").join(right.alias("r"), F.col(f"l.{name}") == F.col(f"r.{name}"))
    return both.select(F.col(f"l.{name}").alias(name), F.col("l.number").alias("a"), F.col("r.number").alias("b"))
"""


def project_of(folder: Path, spark_remote: str, names: Iterable[str]) -> SmallProject:
    readers = (
        f'@stage\ndef by_{name}(ctx, left, right):\n    return joined("{name}", left, right)\n' for name in names
    )
    return SmallProject.make(folder, spark_remote, JOBS + "".join(readers))


def stages_of(names: Iterable[str], **right: object) -> dict[str, dict[str, object]]:
    """``right`` says what becomes of the right rows."""
    inputs = {name: {one: {"exchange": "keyed", "key": name} for one in ("left", "right")} for name in names}
    readers = {f"by_{name}": {"inputs": edges, "partitions": 8} for name, edges in inputs.items()}
    return {"left": {"source": NUMBERS}, "right": {"source": NUMBERS, **right}, **readers}


@pytest.mark.parametrize(
    ("right", "names", "waves"),
    [
        ({}, PAIRS, {1, 2, 3, 4}),  # with group columns
        ({"output": {"type": "blocking_persistent", "table": "marts.right"}}, ["decimals", "structs"], {1, 2, 3, 4}),
        ({"output": {"type": "pipelined"}}, ["decimals", "structs"], {1}),
    ],
    ids=["stored", "published", "fused"],
)
def test_equal_keys_of_different_types_meet_whatever_the_waves(tmp_path, spark_remote, right, names, waves):
    project = project_of(tmp_path, spark_remote, names)
    keys = {side: {name: PAIRS[name][place] for name in names} for place, side in enumerate(("left", "right"))}
    recorded = project.run(project.pipeline("unlike", stages_of(names, **right), params=keys), "run")
    found, expected = (
        {name: rows_of(recorded[f"by_{name}"]) for name in names},
        {name: by_duckdb(project, name) for name in names},
    )
    assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in expected.items()}
    assert found == expected
    assert {record.wave for record in recorded["by_decimals"]} >= waves


def rows_of(records: tuple[PartitionRecord, ...]) -> list[tuple[int, int]]:
    files = [Path(record.table, file.path) for record in records for file in record.files]
    return sorted(
        (row["a"], row["b"]) for path in files for row in pq.ParquetFile(path).read(columns=["a", "b"]).to_pylist()
    )


def by_duckdb(project: SmallProject, name: str) -> list[tuple[int, int]]:
    left, right = (
        key.replace("named_struct('n', ", "row(").replace(", 's', ", ", ").replace("0d", "0::double")
        for key in PAIRS[name]
    )
    # DuckDB would find a type that tells them apart; Spark compares a bigint with a double as doubles
    if name == "large":
        left = f"cast({left} as double)"
    source = f"from '{project.settings.lake_uri}/raw/*.parquet'"
    pairs = f"(select number a, {left} k {source}) join (select number b, {right} k {source}) using (k)"
    return sorted(duckdb.sql(f"select a, b from {pairs}").fetchall())


@pytest.mark.parametrize("name", REFUSED)
def test_keys_that_could_be_equal_and_apart_are_refused_before_anything_is_computed(tmp_path, spark_remote, name):
    project = project_of(tmp_path, spark_remote, [name])
    keys = {side: {name: REFUSED[name][place]} for place, side in enumerate(("left", "right"))}
    pipeline = project.pipeline(f"refused_{name}", stages_of([name]), params=keys)
    with pytest.raises(KeyTypesUnlike) as refused:
        project.run(pipeline, "run")
    assert all(part in str(refused.value) for part in REFUSED[name][2])
    with Ledger.open(project.settings.ledger_url) as ledger:
        assert f"by_{name}" not in ledger.partitions.newest_of(pipeline.name, "i")


def test_an_output_key_of_another_type_than_the_exchanges_is_refused(tmp_path, spark_remote):
    jobs = (
        JOBS + "@stage\ndef counted(ctx, left):\n    return "
        "left.groupBy(F.col('n').cast('string').alias('n')).count()\n"
    )
    project = SmallProject.make(tmp_path, spark_remote, jobs)
    stages = {
        "left": {"source": NUMBERS},
        "counted": {"inputs": {"left": {"exchange": "keyed", "key": "n"}}, "partitions": 8},
    }
    with pytest.raises(KeyTypesUnlike, match=r"counted\.n is string"):
        project.run(project.pipeline("output", stages, params={"left": {"n": "number"}}), "run")


def test_a_published_table_without_the_key_column_is_named(tmp_path, spark_remote):
    project = project_of(tmp_path, spark_remote, ["n"])
    stages = stages_of(["n"], output={"type": "blocking_persistent", "table": "marts.right"})
    pipeline = project.pipeline("absent", stages, params={"left": {"n": "number"}, "right": {}})
    with pytest.raises(StageContractBroken, match="right cannot be committed: its output has no key column n"):
        project.run(pipeline, "run")
