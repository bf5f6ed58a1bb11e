"""A gate that asks several times of many small files has them read once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from tests.lake.stagehand import Stagehand

from stagehold.gates.suite import Expectation, Suite
from stagehold.lake.store.location import TableLocation
from stagehold.run.stage.spark_engine import SparkStageSession

pytestmark = pytest.mark.spark

MANY = 100
ROWS = {number: [("a", number), ("b", number + 1)] for number in range(MANY)}
# three queries: all aggregates, the median, and whether anything is repeated
SUITE = Suite(
    "toy",
    (
        Expectation("expect_column_median_to_be_between", {"column": "amount", "min_value": 1}),
        Expectation("expect_column_values_to_be_unique", {"column": "name"}),
    ),
)


@pytest.fixture
def hand(spark, tmp_path):
    return Stagehand(spark, TableLocation("s", str(tmp_path), "cell", None), "name string, amount int").prepare()


@contextmanager
def files_gone_after_the_first_query(hand: Stagehand) -> Iterator[None]:
    asked = DataFrame.collect

    def collect(frame: DataFrame) -> object:
        found = asked(frame)
        shutil.rmtree(hand.location.uri, ignore_errors=True)
        return found

    with mock.patch.object(DataFrame, "collect", collect):
        yield


def failed(measured):
    return [verdict.partition for verdict in measured.verdicts if not verdict.passed]


def test_partitions_are_judged_again_though_their_files_are_gone_after_the_first_query(hand, spark_settings):
    records = hand.publish(ROWS)
    judging = SparkStageSession(hand.spark, spark_settings)
    with files_gone_after_the_first_query(hand):
        measured = judging.judge(records, SUITE)
    assert [metric.fingerprint for metric in measured.metrics] == [record.fingerprint for record in records]
    assert failed(measured) == [0]


def test_a_wave_is_judged_though_its_files_are_gone_after_the_first_query(hand, spark_settings):
    staged, judging = hand.stage(ROWS), SparkStageSession(hand.spark, spark_settings)
    with files_gone_after_the_first_query(hand):
        measured = judging.measure(staged, hand.schema, tuple(ROWS), SUITE, 1.0)
    assert failed(measured) == [0]


def test_what_is_too_much_to_be_kept_is_read_for_each_query(hand, spark_settings):
    records = hand.publish(ROWS)
    judging = SparkStageSession(hand.spark, spark_settings, most_kept=0)
    with files_gone_after_the_first_query(hand), pytest.raises(PySparkException, match=r"does not exist|NOT_EXIST"):
        judging.judge(records, SUITE)
