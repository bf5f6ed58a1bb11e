"""Every expectation of Great Expectations' core: our judgement of all partitions at once is its own of each alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.gates.engine.random_rows import FULL, PARTITION
from tests.gates.engine.their_answers import (
    CASES,
    ERROR,
    PARTITIONS,
    RECORDED,
    answers,
    asked,
    expectations,
    plain,
    rows_in,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:WARN WindowExpression"),  # Great Expectations'
]


@pytest.fixture(scope="module")
def frame(spark: Any, tmp_path_factory: Any) -> DataFrame:
    return rows_in(spark, str(tmp_path_factory.mktemp("rows") / "data"))


@pytest.fixture(scope="module")
def ours(frame: DataFrame) -> Mapping[tuple[int, int], Any]:
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import judge_frame

    grouped = GroupedFrame(AskedPartitions(PARTITION, PARTITIONS), frame)
    judged, unjudged = judge_frame(grouped, dict(enumerate(expectations())))
    failed = {(at, partition): (ERROR, str(error)) for at, error in unjudged.items() for partition in PARTITIONS}
    found = {(at, one.partition): (bool(one.success), plain(one.result)) for at, some in judged.items() for one in some}
    return {**found, **failed}


@pytest.fixture(scope="module")
def theirs(frame: DataFrame) -> Mapping[tuple[int, int], Any]:
    return answers(frame)


@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda at: f"{at}-{CASES[at][0]}")
def test_each_partition_is_judged_as_it_is_alone(at, ours, theirs):
    found = {partition: theirs[at, partition] for partition in PARTITIONS}
    if any(verdict == ERROR for verdict, _ in found.values()):
        assert all(ours[at, partition][0] == ERROR for partition in PARTITIONS), (CASES[at], ours[at, FULL])
        return
    for partition, (success, result) in found.items():
        own_success, own_result = ours[at, partition]
        seen = own_result if partition == FULL else {}  # to ask of all takes twice as long
        assert (own_success, seen) == (success, nearly(result)), (CASES[at], partition)


def nearly(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: nearly(one) for name, one in value.items()}
    if isinstance(value, list):
        return [nearly(one) for one in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def test_every_expectation_of_the_core_is_here():
    from stagehold.gates.suite_files import expectation_types

    assert {kind for kind, _ in CASES} == {*expectation_types()} - {"expect_multicolumn_values_to_be_unique"}


def test_the_recorded_answers_are_of_these_cases_and_versions():
    assert asked() in RECORDED.read_text(), "python -m tests.gates.engine.their_answers asks anew"
