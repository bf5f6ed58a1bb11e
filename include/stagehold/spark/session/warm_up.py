"""Answers the first queries of a new server, which cost seconds: `python -m stagehold.spark.session.warm_up`."""

from __future__ import annotations

from uuid import uuid4

from stagehold.settings import Settings, load_settings
from stagehold.spark.session.sessions import measuring_session, open_session, release_session


def warm_up(settings: Settings) -> None:
    """Load the classes that reading, hashing and grouping need; leaves nothing behind.

    :raises SparkUnavailable: the server does not answer.
    """
    from pyspark.sql import functions as F

    session_id = str(uuid4())
    spark = open_session(settings, session_id, wait_seconds=settings.spark_start_seconds)
    numbers = measuring_session(spark).range(1000).withColumn("partition", F.col("id") % 2)
    numbers.groupBy("partition").agg(F.count("*"), F.bit_xor(F.xxhash64("id"))).collect()
    release_session(settings, session_id)


if __name__ == "__main__":
    warm_up(load_settings())
