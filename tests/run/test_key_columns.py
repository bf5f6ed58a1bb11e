"""The key hash in Spark and in Python must agree: records written by one are found by the other."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from stagehold.model.key_groups import index_of_group, key_group
from stagehold.run.key_columns import key_group as key_group_column
from stagehold.run.key_columns import partition_of_key

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, name string, day date, price decimal(12,2), flag boolean"
ROWS = [
    (0, "", date(1995, 3, 15), Decimal("0.10"), True),
    (-1, "ä\x1fb", date(1, 1, 1), Decimal("-12.00"), False),
    (2**62, "日本", date(9999, 12, 31), Decimal("1234567890.12"), None),
    (None, None, None, None, None),
]
KEYS = [("id",), ("name",), ("day",), ("price",), ("id", "name"), ("name", "id"), ("id", "name", "day", "price"), ("flag",)]


@pytest.mark.parametrize("key", KEYS, ids=["+".join(key) for key in KEYS])
@pytest.mark.parametrize(("partitions", "max_parallelism"), [(16, 128), (5, 7), (300, 32768)])
def test_spark_and_python_put_a_row_into_the_same_group_and_partition(spark, key, partitions, max_parallelism):
    frame = spark.createDataFrame(ROWS, SCHEMA)
    group, partition = key_group_column(list(key), max_parallelism), partition_of_key(list(key), partitions, max_parallelism)
    for row in frame.select("*", group.alias("group"), partition.alias("partition")).collect():
        expected = key_group(tuple(row[column] for column in key), max_parallelism)
        assert row["group"] == expected
        assert row["partition"] == index_of_group(expected, partitions, max_parallelism)
