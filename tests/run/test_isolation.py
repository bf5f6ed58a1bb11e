"""What a partition holds depends neither on the wave that computed it nor on heals, on a real Spark server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.errors import KeyMayBeNull, StrayKey
from stagehold.ledger import Ledger
from stagehold.model.key_groups import default_max_parallelism
from stagehold.model.records import PartitionRecord
from stagehold.run.key_columns import partition_of_key

pytestmark = pytest.mark.spark

PARTITIONS = 5
JOBS = """
from pyspark.sql import Window
from pyspark.sql import functions as F
from stagehold import stage

@stage
def left(ctx, source):
    return source.select((F.col("number") % 29).alias("id"), "number")

@stage
def right(ctx, source):
    return source.where(F.col("number") % 3 == 0).select((F.col("number") % 37).alias("id"), (F.col("number") * 10).alias("value"))

@stage
def coalesced(ctx, left, right):
    both = left.join(right, left.id == right.id, "full")
    return both.select(F.coalesce(left.id, right.id).alias("id"), "number", "value")

@stage
def of_left(ctx, left, right):
    return left.join(right, left.id == right.id, "full").select(left.id, "number", "value")

@stage
def sums(ctx, left, right):
    totals = right.groupBy("id").agg(F.sum("value").alias("total"))
    newest = left.withColumn("place", F.row_number().over(Window.partitionBy("id").orderBy("number"))).where("place = 1")
    return newest.join(totals, "id", "left").select("id", "number", "total")

@stage
def ranked(ctx, left):
    return left.withColumn("rank", F.row_number().over(Window.orderBy("number")))

@stage
def lowest(ctx, left):
    return left.orderBy("number").limit(3)

@stage
def asked(ctx, left):
    return left.groupBy("id").agg(F.count("*").alias("rows")).withColumn("wave", F.lit(len(ctx.partitions)))

@stage
def counted(ctx, left):
    return left.withColumn("all", F.lit(left.count()))

@stage
def in_python(ctx, left):
    def largest(rows):
        return rows.nlargest(1, "number")
    return left.groupBy("id").applyInPandas(largest, left.schema)

@stage
def shifted(ctx, left):
    def shift(rows):
        return rows.assign(id=rows["id"] + 1)
    return left.groupBy("id").applyInPandas(shift, left.schema)

@stage
def same(ctx, shifted):
    return shifted.select("number")
"""
TOGETHER = {
    "coalesced": "SELECT coalesce(l.p, r.p), coalesce(l.id, r.id), number, value FROM l FULL JOIN r ON l.id = r.id",
    "sums": """SELECT l.p, l.id, min(number), any_value(total) FROM l LEFT JOIN (SELECT id, sum(value) AS total FROM r GROUP BY id) r
        ON l.id = r.id GROUP BY ALL""",
}
APART = {
    "ranked": "SELECT p, id, number, row_number() OVER (PARTITION BY p ORDER BY number) FROM l",
    "lowest": "SELECT p, id, number FROM l QUALIFY row_number() OVER (PARTITION BY p ORDER BY number) <= 3",
    "asked": "SELECT p, id, count(*), 1 FROM l GROUP BY ALL",
    "counted": "SELECT p, id, number, count(*) OVER (PARTITION BY p) FROM l",
    "in_python": "SELECT p, id, max(number) FROM l GROUP BY ALL",
}


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def keyed(name: str) -> dict[str, object]:
    """Stages that end with the keyed one of that name."""
    both = name in ("coalesced", "of_left", "sums")
    inputs = {stage: {"exchange": "keyed", "key": "id"} for stage in (("left", "right") if both else ("left",))}
    return {stage: {"source": NUMBERS} for stage in inputs} | {name: {"inputs": inputs, "partitions": PARTITIONS}}


def rows(records: Sequence[PartitionRecord]) -> list[tuple[object, ...]]:
    """What the recorded files hold, behind each row's partition."""
    found = []
    for record in records:
        for file in record.files:
            table = pq.ParquetFile(Path(record.table, file.path)).read().to_pylist()
            found += [(record.partition, *(value for name, value in row.items() if not name.startswith("_"))) for row in table]
    return sorted(found, key=repr)


def expected(project: SmallProject, spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    """What DuckDB answers over the same sources, where ``p`` is the partition of a row's key."""
    ids = spark.range(37)
    groups = default_max_parallelism(PARTITIONS)
    dealt = ids.select("id", partition_of_key(["id"], ids.schema, partitions=PARTITIONS, max_parallelism=groups).alias("p")).toArrow()
    raw = f"read_parquet('{project.settings.lake_uri}/raw/*.parquet')"
    with duckdb.connect() as oracle:
        oracle.register("dealt", dealt)
        oracle.execute(f"CREATE TABLE l AS SELECT * FROM (SELECT number % 29 AS id, number FROM {raw}) JOIN dealt USING (id)")
        kept = f"(SELECT number % 37 AS id, number * 10 AS value FROM {raw} WHERE number % 3 = 0)"
        oracle.execute(f"CREATE TABLE r AS SELECT * FROM {kept} JOIN dealt USING (id)")
        return sorted(oracle.execute(query).fetchall(), key=repr)


def warnings(project: SmallProject, run_id: str) -> list[str]:
    with Ledger.open(project.settings.ledger_url) as ledger:
        return [event.text for event in ledger.events.of_run(run_id) if event.kind == "called apart"]


def heal(project: SmallProject, pipeline, stage: str, partitions: Sequence[int], run_id: str) -> dict[str, tuple[PartitionRecord, ...]]:
    """Delete their data, and have a run make it again."""
    with Ledger.open(project.settings.ledger_url) as ledger:
        records = ledger.partitions.newest_of(pipeline.name, INTERVAL)[stage]
    for record in records:
        for file in record.files if record.partition in partitions else ():
            Path(record.table, file.path).unlink()
    return project.run(pipeline, run_id)


@pytest.mark.parametrize("name", [*TOGETHER, *APART])
def test_one_wave_and_many_and_any_heal_give_what_duckdb_does(project, spark, name):
    wanted = expected(project, spark, (TOGETHER | APART)[name])
    at_once = replace(project, settings=replace(project.settings, spark_cores=8))
    whole = at_once.pipeline(f"{name}_whole", keyed(name))
    assert rows(at_once.run(whole, "whole")[name]) == wanted
    assert len(warnings(project, "whole")) == (name in APART)
    by_twos = project.pipeline(f"{name}_by_twos", keyed(name))
    made = project.run(by_twos, "by twos")[name]
    assert len({record.wave for record in made}) > 1
    assert rows(made) == wanted
    for number, some in enumerate([(0,), (1, 3), (4, 2, 0)]):
        healed = heal(project, by_twos, name, some, f"heal {number}")[name]
        assert rows(healed) == wanted
        assert [record.fingerprint for record in healed] == [record.fingerprint for record in made]


def test_a_key_from_the_side_of_an_outer_join_that_may_be_null_is_refused_before_anything_is_published(project):
    with pytest.raises(KeyMayBeNull, match=r'F.coalesce\(left.id, right.id\).alias\("id"\)'):
        project.run(project.pipeline("outer", keyed("of_left")), "outer")
    with Ledger.open(project.settings.ledger_url) as ledger:
        assert ledger.partitions.newest_of("outer", INTERVAL).keys() == {"left", "right"}
    assert not list(Path(project.settings.lake_uri).glob("**/of_left/**/*.parquet"))


def test_a_row_with_a_key_of_another_partition_is_an_error_in_any_wave(project):
    for cores in (1, 8):
        bench = replace(project, settings=replace(project.settings, spark_cores=cores))
        with pytest.raises(StrayKey, match=r"Stage shifted gave partition .* a row with id = '.*', which belongs to partition"):
            bench.run(bench.pipeline(f"stray_{cores}", keyed("shifted")), f"stray {cores}")
        with Ledger.open(project.settings.ledger_url) as ledger:
            assert "shifted" not in ledger.partitions.newest_of(f"stray_{cores}", INTERVAL)


@pytest.mark.parametrize("kind", ["pipelined", "pipelined_bounded"])
def test_the_same_holds_of_an_output_that_is_computed_along_with_its_reader(project, kind):
    stages = keyed("shifted") | {"same": {"inputs": {"shifted": "forward"}}}
    stages["shifted"] = stages["shifted"] | {"output": {"type": kind}}
    with pytest.raises(StrayKey, match="Stage shifted gave partition"):
        project.run(project.pipeline("fused", stages), "fused")
