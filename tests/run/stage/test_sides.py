"""Which side of a wave is slow, as a real Spark server reports it."""

from __future__ import annotations

import time
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagehold.lake.commit.staging import WaveFiles
from stagehold.lake.store.location import TableLocation
from stagehold.model.pulse import Meter, Side
from stagehold.run.stage.spark_engine import SparkStageSession, session_of
from stagehold.spark.session.watchdog import CallClock

pytestmark = pytest.mark.spark

ROWS, SECONDS = 100, 0.05  # of sleep for each row: longer than a server waits with its next report


@pytest.mark.parametrize(("shuffled_first", "slow"), [(False, Side.READING), (True, Side.FUNCTION)])
def test_the_slow_side_is_told(tmp_path, spark_settings, shuffled_first, slow):
    from pyspark.sql import functions as F

    pq.write_table(pa.table({"n": pa.array(range(ROWS), pa.int64())}), tmp_path / "rows.parquet")
    clock, meter = CallClock(), Meter()
    meter.begin_stage("slow", 2)
    files = WaveFiles(TableLocation("slow", str(tmp_path / "table"), "cell", None), "attempt", 1, (0, 1))

    def dawdle(number: int) -> int:
        time.sleep(SECONDS)
        return number

    with session_of("sides", (), spark_settings, print, timedelta(minutes=5), clock) as spark:
        session = SparkStageSession(spark, spark_settings, clock)
        session.report_stages(meter.observe)
        rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
        arrived = rows.repartition(1, "n") if shuffled_first else rows
        dawdled = arrived.select(F.udf(dawdle, "long")("n").alias("n"))
        with meter.in_query(dealt=not files.arranged):
            staged = session.write(dawdled.withColumn("_partition", (F.col("n") % 2).cast("int")), files)
    assert sum(file.rows for files in staged.files.values() for file in files) == ROWS
    pulse = meter.pulse()
    assert pulse.slowest is slow, pulse.seconds
    assert pulse.seconds[slow] > ROWS * SECONDS / 2
    assert pulse.seconds.get(Side.WRITING, 0) > 0
    assert pulse.read > 0
