"""For the tests of a project's functions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stagehold.settings import load_settings
from stagehold.spark.server.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_spark() -> SparkSession:
    """A Spark session of this process, in whose lake nothing is: frames are the test's own.

    It uses the Java that runs of Stagehold use, so a test needs no other.
    """
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home(load_settings()))
    builder = SparkSession.builder.master("local[1]").appName("stagehold tests")
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
