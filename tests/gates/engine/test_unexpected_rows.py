"""The rows that an expectation does not expect are as many as Great Expectations counts, of each expectation it has."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from tests.gates.engine.random_rows import FULL, NULLS, ONE, PARTITION, SCHEMA, random_rows
from tests.gates.engine.their_answers import CASES, expectations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:WARN WindowExpression"),
]
OF_ALL = (  # a query that nobody can look into, and sets of values
    "unexpected_rows_expectation",
    "expect_column_distinct_values_to_be_in_set",
    "expect_column_distinct_values_to_equal_set",
)
PARTITIONS = (FULL, 1, 2, NULLS, ONE)


@pytest.fixture(scope="module")
def grouped(spark: Any, tmp_path_factory: Any) -> Any:
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    made = spark.createDataFrame(random_rows(7), f"{SCHEMA}, `{PARTITION}` int")
    folder = str(tmp_path_factory.mktemp("rows") / "data")
    made.coalesce(1).write.parquet(folder)
    frame = spark.read.schema(made.schema).parquet(folder)
    return lambda: GroupedFrame(AskedPartitions(PARTITION, PARTITIONS), frame)


def counted(grouped: Any) -> dict[int, Counter[int]]:
    """What Great Expectations counts in each partition, of those that count rows."""
    from stagehold.gates.engine.judging import judge_frame

    judged, _ = judge_frame(grouped(), dict(enumerate(expectations())))
    return {
        at: Counter({one.partition: int(one.result["unexpected_count"]) for one in some})
        for at, some in judged.items()
        if all(one.result.get("unexpected_count") is not None for one in some) and CASES[at][0] not in OF_ALL
    }


def found(grouped: Any, cases: list[int]) -> dict[int, Counter[int]]:
    """By one query for all."""
    from pyspark.sql import functions as F

    from stagehold.gates.engine.judging import unexpected_rows

    every = expectations()
    frames: list[DataFrame] = [
        unexpected_rows(grouped(), every[at]).select(F.lit(at).alias("at"), F.col(f"`{PARTITION}`").alias("partition"))
        for at in cases
    ]
    rows = reduce(lambda one, other: one.union(other), frames).groupBy("at", "partition").count().collect()
    counts: dict[int, Counter[int]] = {at: Counter() for at in cases}
    for row in rows:
        counts[row["at"]][row["partition"]] = row["count"]
    return counts


def test_there_are_as_many_unexpected_rows_as_great_expectations_counts(grouped):
    expected = counted(grouped)
    assert len(expected) > 40
    ours = found(grouped, list(expected))
    assert {at: (CASES[at], +ours[at]) for at in expected} == {at: (CASES[at], +some) for at, some in expected.items()}


def test_an_expectation_about_a_whole_partition_has_no_unexpected_rows(grouped):
    from stagehold.gates.engine.judging import NotOfRows, unexpected_rows

    about = [at for at, (kind, _) in enumerate(CASES) if kind == "expect_column_mean_to_be_between"]
    with pytest.raises(NotOfRows):
        unexpected_rows(grouped(), expectations()[about[0]])
