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
from stagehold.model.keys.key_groups import default_max_parallelism
from stagehold.model.records import PartitionRecord
from stagehold.run.functions.key_columns import partition_of_key

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
    thirds = source.where(F.col("number") % 3 == 0)
    return thirds.select((F.col("number") % 37).alias("id"), (F.col("number") * 10).alias("value"))

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
    of_id = Window.partitionBy("id").orderBy("number")
    newest = left.withColumn("place", F.row_number().over(of_id)).where("place = 1")
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
def pivoted(ctx, left):
    kinds = left.withColumn("kind", F.when(F.col("id") == 3, "rare").otherwise("usual"))
    wide = kinds.groupBy("id").pivot("kind").count()
    return wide.select("id", F.lit(len(wide.columns)).alias("columns"))

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

@stage
def asks(ctx, shifted):
    return shifted.limit(shifted.count())

@stage
def known(ctx, source):
    return source.select(F.col("number").alias("known"))

@stage
def of_known(ctx, left, known):
    return left.limit(left.count()).join(known, left.id == known.known, "left_semi").select("id", "number")
"""
TOGETHER = {
    "coalesced": "SELECT coalesce(l.p, r.p), coalesce(l.id, r.id), number, value FROM l FULL JOIN r ON l.id = r.id",
    "sums": """SELECT l.p, l.id, min(number), any_value(total)
        FROM l LEFT JOIN (SELECT id, sum(value) AS total FROM r GROUP BY id) r ON l.id = r.id GROUP BY ALL""",
}
APART = {
    "ranked": "SELECT p, id, number, row_number() OVER (PARTITION BY p ORDER BY number) FROM l",
    "lowest": "SELECT p, id, number FROM l QUALIFY row_number() OVER (PARTITION BY p ORDER BY number) <= 3",
    "asked": "SELECT p, id, count(*), 1 FROM l GROUP BY ALL",
    "counted": "SELECT p, id, number, count(*) OVER (PARTITION BY p) FROM l",
    "pivoted": "SELECT DISTINCT p, id, 1 + (SELECT count(DISTINCT k.id = 3) FROM l k WHERE k.p = l.p) FROM l",
    "in_python": "SELECT p, id, max(number) FROM l GROUP BY ALL",
}


ALL = (*TOGETHER, *APART)
SOME = (4, 2, 0)  # are lost and healed


@pytest.fixture(scope="module")
def project(tmp_path_factory, spark_remote):
    return SmallProject.make(tmp_path_factory.mktemp("isolated"), spark_remote, JOBS)


@pytest.fixture(scope="module")
def whole(project):
    """What a run in one wave makes of all of them."""
    at_once = replace(project, settings=replace(project.settings, spark_cores=8))
    return at_once.run(at_once.pipeline("whole", keyed(*ALL)), "whole")


@pytest.fixture(scope="module")
def by_twos(project):
    """What waves of two partitions make of them, with its rows, and what a run makes then of those that were lost."""
    pipeline = project.pipeline("by_twos", keyed(*ALL))
    made = project.run(pipeline, "by twos")
    held = {name: rows(made[name]) for name in ALL}
    lose(made)
    return made, held, project.run(pipeline, "healed")


def keyed(*names: str) -> dict[str, object]:
    """The keyed stages of these names, and what they read."""
    return {stage: {"source": NUMBERS} for stage in ("left", "right")} | {name: _keyed(name) for name in names}


def _keyed(name: str) -> dict[str, object]:
    read = ("left", "right") if name in ("coalesced", "of_left", "sums") else ("left",)
    return {"inputs": {stage: {"exchange": "keyed", "key": "id"} for stage in read}, "partitions": PARTITIONS}


def rows(records: Sequence[PartitionRecord]) -> list[tuple[object, ...]]:
    """What the recorded files hold, behind each row's partition."""
    found = []
    for record in records:
        for file in record.files:
            table = pq.ParquetFile(Path(record.table, file.path)).read().to_pylist()
            found += [
                (record.partition, *(value for name, value in row.items() if not name.startswith("_"))) for row in table
            ]
    return sorted(found, key=repr)


def expected(project: SmallProject, spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    """What DuckDB answers over the same sources, where ``p`` is the partition of a row's key."""
    ids = spark.range(37)
    groups = default_max_parallelism(PARTITIONS)
    dealt = ids.select(
        "id", partition_of_key(["id"], ids.schema, partitions=PARTITIONS, max_parallelism=groups).alias("p")
    ).toArrow()
    raw = f"read_parquet('{project.settings.lake_uri}/raw/*.parquet')"
    with duckdb.connect() as oracle:
        oracle.register("dealt", dealt)
        oracle.execute(
            f"CREATE TABLE l AS SELECT * FROM (SELECT number % 29 AS id, number FROM {raw}) JOIN dealt USING (id)"
        )
        kept = f"(SELECT number % 37 AS id, number * 10 AS value FROM {raw} WHERE number % 3 = 0)"
        oracle.execute(f"CREATE TABLE r AS SELECT * FROM {kept} JOIN dealt USING (id)")
        return sorted(oracle.execute(query).fetchall(), key=repr)


def warnings(project: SmallProject, run_id: str) -> list[str]:
    with Ledger.open(project.settings.ledger_url) as ledger:
        return [event.text for event in ledger.events.of_run(run_id) if event.kind == "called apart"]


def lose(made: dict[str, tuple[PartitionRecord, ...]]) -> None:
    for record in (record for name in ALL for record in made[name] if record.partition in SOME):
        for file in record.files:
            Path(record.table, file.path).unlink()


@pytest.mark.parametrize("name", ALL)
def test_one_wave_and_many_and_any_heal_give_what_duckdb_does(project, spark, whole, by_twos, name):
    wanted = expected(project, spark, (TOGETHER | APART)[name])
    made, held, healed = (found[name] for found in by_twos)
    assert [rows(whole[name]), held, rows(healed)] == [wanted] * 3
    assert len({record.wave for record in made}) > 1
    assert [record.fingerprint for record in healed] == [record.fingerprint for record in made]
    assert [one.run_id for one in healed] == [
        "healed" if record.partition in SOME and record.files else "by twos" for record in healed
    ]
    assert [text.split()[0] for text in warnings(project, "whole")].count(name) == (name in APART)


def test_a_key_from_the_side_of_an_outer_join_that_may_be_null_is_refused_before_anything_is_published(project):
    with pytest.raises(KeyMayBeNull, match=r'F.coalesce\(left.id, right.id\).alias\("id"\)'):
        project.run(project.pipeline("outer", keyed("of_left")), "outer")
    with Ledger.open(project.settings.ledger_url) as ledger:
        assert ledger.partitions.newest_of("outer", INTERVAL).keys() == {"left", "right"}
    assert not list(Path(project.settings.lake_uri).glob("**/of_left/**/*.parquet"))


def test_a_row_with_a_key_of_another_partition_is_an_error_in_any_wave(project):
    for cores in (1, 8):
        bench = replace(project, settings=replace(project.settings, spark_cores=cores))
        with pytest.raises(
            StrayKey, match=r"Stage shifted gave partition .* a row with id = '.*', which belongs to " r"partition"
        ):
            bench.run(bench.pipeline(f"stray_{cores}", keyed("shifted")), f"stray {cores}")
        with Ledger.open(project.settings.ledger_url) as ledger:
            assert "shifted" not in ledger.partitions.newest_of(f"stray_{cores}", INTERVAL)


def test_keys_of_what_is_only_joined_with_are_nobodys(project):
    """Spark asks of the other side of a join what it knows of the rows of this one."""
    stages = keyed("of_known") | {"known": {"source": NUMBERS}}
    stages["of_known"]["inputs"] |= {"known": {"exchange": "broadcast"}}
    made = project.run(project.pipeline("joined", stages), "joined")
    assert sorted(row[2] for row in rows(made["of_known"])) == sorted(row[2] for row in rows(made["left"]))


@pytest.mark.parametrize("reader", ["same", "asks"])
@pytest.mark.parametrize("kind", ["pipelined", "pipelined_bounded"])
def test_the_same_holds_of_an_output_that_is_computed_along_with_its_reader(project, kind, reader):
    stages = keyed("shifted") | {reader: {"inputs": {"shifted": "forward"}}}
    stages["shifted"] = stages["shifted"] | {"output": {"type": kind}}
    with pytest.raises(StrayKey, match="Stage shifted gave partition"):
        project.run(project.pipeline("fused", stages), "fused")
