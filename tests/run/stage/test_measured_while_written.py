"""What no gate judges is measured by the query that writes it, and comes to what is measured from its files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import GENERATED
from tests.lake.test_extreme_values import EXTREMES
from tests.run.small_project import SmallProject

from stagehold.lake.commit.staging import WaveFiles
from stagehold.lake.measure import FEW, fingerprints, measure
from stagehold.lake.read import read_partitions
from stagehold.lake.store.location import TableLocation
from stagehold.run.stage.spark_engine import SparkStageSession, session_of
from stagehold.settings import Settings
from stagehold.spark.session.sessions import measuring_session
from stagehold.spark.session.watchdog import CallClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Bench:
    """An attempt's session, and what was said in it."""

    def __init__(self, spark: SparkSession, settings: Settings, clock: CallClock, lake: Path) -> None:
        self.spark, self.clock, self.lake = spark, clock, lake
        self.said: list[str] = []
        self.session = SparkStageSession(spark, settings, clock, progress=self.said.append)
        self.waves = 0

    def files(self, partitions: int, **facts: Any) -> WaveFiles:
        self.waves += 1
        location = TableLocation("s", str(self.lake), "cell", None)
        return WaveFiles(location, "attempt", self.waves, tuple(range(partitions)), **facts)

    def both(self, frame: DataFrame, files: WaveFiles) -> tuple[object, object]:
        """What the session measures, and what the files come to."""
        schema = frame.schema
        staged = self.session.write(frame, files, schema)
        measured = self.session.measure(staged, schema, files.partitions, None, 0.0).metrics
        found = measure(measuring_session(self.spark), staged, schema, files.partitions)
        return [(one, one.nulls) for one in measured], [(one, one.nulls) for one in found]


@pytest.fixture(scope="module")
def bench(spark_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    clock = CallClock()
    with session_of("measured", [], spark_settings, print, timedelta(minutes=5), clock) as spark:
        for name, value in GENERATED.items():
            spark.conf.set(name, value)
        yield Bench(spark, spark_settings, clock, tmp_path_factory.mktemp("lake"))


def random_rows(spark: SparkSession, seed: int, partitions: int) -> DataFrame:
    """Some columns of any types, whose values are extreme ones and NULL; of some partitions there may be no row."""
    choice = random.Random(seed)
    kinds = choice.sample([*EXTREMES.items()], choice.randint(1, len(EXTREMES)))
    lines = []
    for _ in range(choice.randint(1, 40)):
        values = [f"CAST({choice.choice([*some, 'NULL'])} AS {kind})" for kind, some in kinds]
        lines.append(f"({', '.join(values)}, {choice.randrange(partitions)})")
    names = ", ".join((*(f"c{number}" for number in range(len(kinds))), "_partition"))
    return spark.sql(f"SELECT * FROM VALUES {', '.join(lines)} AS t({names})")


@pytest.mark.parametrize("seed", range(6))
def test_any_rows_come_to_the_same_however_they_are_cut_into_tasks_and_files(bench: Bench, seed: int) -> None:
    partitions = (1, 2, 3, FEW, FEW, FEW)[seed]
    frame = random_rows(bench.spark, seed, partitions)
    facts = ({}, {"starts": (0, 1)}, {"arranged": True}, {"rows_per_file": 1}, {"sort_by": ("c0",), "starts": (0,)})
    shuffled = frame.repartition(3) if seed % 2 else frame
    sortable = [kind for kind in facts if "sort_by" not in kind or not frame.dtypes[0][1].startswith("map")]
    for kind in sortable:
        measured, found = bench.both(shuffled, bench.files(partitions, **kind))
        assert measured == found, kind
        assert bench.session._measured == {}
    assert bench.said == []


def test_nulls_are_counted_where_there_may_be_none(bench: Bench) -> None:
    from pyspark.sql.types import StructField, StructType

    frame = bench.spark.sql(
        "SELECT IF(id % 5 = 0, NULL, id) AS v, id, CAST(id % 3 AS int) AS _partition FROM range(90)"
    )
    fields = [StructField(field.name, field.dataType, field.name != "v") for field in frame.schema.fields]
    files = bench.files(3)
    staged = bench.session.write(frame, files, StructType(fields))
    measured = bench.session.measure(staged, StructType(fields), files.partitions, None, 0.0).metrics
    assert [dict(one.nulls) for one in measured] == [{"v": 6}, {"v": 6}, {"v": 6}]
    assert measured == measure(measuring_session(bench.spark), staged, StructType(fields), files.partitions)


def test_no_second_query_reads_the_files_of_a_few_partitions(bench: Bench) -> None:
    frame = bench.spark.range(100).selectExpr("id", "CAST(id % 4 AS int) AS _partition")
    files = bench.files(4)
    staged = bench.session.write(frame, files, frame.schema)
    for some in staged.files.values():
        for file in some:
            Path(staged.uri, file.path).write_bytes(b"whoever reads this fails")
    measured = bench.session.measure(staged, frame.schema, files.partitions, None, 0.0).metrics
    assert [one.rows for one in measured] == [25, 25, 25, 25]


def test_many_partitions_are_measured_from_their_files(bench: Bench) -> None:
    frame = bench.spark.range(100).selectExpr("id", f"CAST(id % {FEW + 1} AS int) AS _partition")
    files = bench.files(FEW + 1)
    staged = bench.session.write(frame, files, frame.schema)
    assert bench.session._measured == {}
    measured = bench.session.measure(staged, frame.schema, files.partitions, None, 0.0).metrics
    assert sum(one.rows for one in measured) == 100


@pytest.mark.parametrize("wrong", [19, 21, 0])
def test_where_files_have_other_numbers_of_rows_that_is_said_and_they_are_read(bench: Bench, wrong: int) -> None:
    frame = bench.spark.range(20).selectExpr("id", "CAST(id % 2 AS int) AS _partition")
    files = bench.files(2)
    staged = bench.session.write(frame, files, frame.schema)
    (name, values) = next(iter(bench.session._measured.items()))
    bench.clock.tell_observed(name, [wrong, *values[1:]])
    measured = bench.session.measure(staged, frame.schema, files.partitions, None, 0.0).metrics
    assert measured == measure(measuring_session(bench.spark), staged, frame.schema, files.partitions)
    (said,) = bench.said
    assert f"{wrong} rows were written, and the files have 20" in said
    bench.said.clear()


JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def short(ctx, source):
    return source.select("number", F.timestamp_micros(F.col("number") * 1000 + 7).alias("at"))

@stage
def latest(ctx, short):
    return short.groupBy("number").agg(F.max("at").alias("at"))
"""


@pytest.mark.parametrize(
    ("settings", "micros"),
    [({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}, 0), ({"spark.sql.shuffle.partitions": "3"}, 7)],
)
def test_settings_by_which_files_hold_less_than_spark_has_are_not_trusted(
    tmp_path: Path, spark_remote: str, spark: SparkSession, settings: dict[str, str], micros: int
) -> None:
    """Timestamps of milliseconds are cut when they are written, so only the files tell what is there."""
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    stages = {
        "short": {
            "source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 2},
            "output": {"type": "blocking"},
        },
        "latest": {"inputs": {"short": {"exchange": "keyed", "key": "number"}}, "partitions": 2},
    }
    for records in project.run(project.pipeline("p", stages, spark=settings), "r").values():
        recorded = {record.partition: record.fingerprint for record in records}
        assert fingerprints(spark, records) == recorded
        moments = read_partitions(spark, records).select("at").collect()
        assert {row.at.microsecond % 1000 for row in moments} == {micros}
