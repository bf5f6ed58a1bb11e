"""Every expectation of Great Expectations' core: our judgement of all partitions at once is its own of each alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.gates.engine.random_rows import EMPTY, FULL, PARTITION, SCHEMA, every_expectation, random_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:WARN WindowExpression"),  # Great Expectations'
]

PARTITIONS = (FULL, EMPTY)
ERROR = "cannot be judged"
UNORDERED = ("partial_unexpected_list", "partial_unexpected_counts", "unexpected_rows", "details")


def named(kind: str) -> str:
    whole = kind.startswith(("expect_", "unexpected_"))
    return kind if whole else f"expect_column_{kind}"


CASES = [(named(kind), kwargs) for kind, kwargs in every_expectation()]


def expectations() -> list[Any]:
    import great_expectations.expectations.core
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    assert great_expectations.expectations.core
    return [
        ExpectationConfiguration(type=kind, kwargs=dict(kwargs), meta={"at": at}).to_domain_obj()
        for at, (kind, kwargs) in enumerate(CASES)
    ]


@pytest.fixture(scope="module", params=[1])
def frame(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: Any) -> DataFrame:
    made = spark.createDataFrame(random_rows(request.param), f"{SCHEMA}, `{PARTITION}` int")
    folder = str(tmp_path_factory.mktemp("rows") / "data")
    made.coalesce(1).write.parquet(folder)
    return spark.read.schema(made.schema).parquet(folder)


@pytest.fixture(scope="module")
def ours(frame: DataFrame) -> Mapping[tuple[int, int], Any]:
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import judge_frame

    grouped = GroupedFrame(AskedPartitions(PARTITION, PARTITIONS, FULL), frame)
    judged, unjudged = judge_frame(grouped, dict(enumerate(expectations())))
    failed = {(at, partition): (ERROR, str(error)) for at, error in unjudged.items() for partition in PARTITIONS}
    found = {(at, one.partition): (one.success, dict(one.result)) for at, some in judged.items() for one in some}
    return {**found, **failed}


@pytest.fixture(scope="module")
def theirs(frame: DataFrame) -> Mapping[tuple[int, int], Any]:
    return {found: said for partition in PARTITIONS for found, said in alone(frame, partition).items()}


def alone(frame: DataFrame, partition: int) -> Mapping[tuple[int, int], Any]:
    """As somebody does who has this partition and Great Expectations."""
    import great_expectations as gx
    from great_expectations.core import ExpectationSuite
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from pyspark.sql import functions as F

    own = frame.filter(F.col(f"`{PARTITION}`") == partition).drop(PARTITION)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_spark("spark", persist=False).add_dataframe_asset("partition")
    batch = asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": own})
    suite = ExpectationSuite(name="all")
    suite.expectations = expectations()
    found = batch.validate(suite, result_format="BASIC" if partition == FULL else "BOOLEAN_ONLY")
    return {
        (one.expectation_config.meta["at"], partition): (ERROR, str(one.exception_info))
        if is_error(one.exception_info)
        else (one.success, dict(one.result))
        for one in found.results
    }


def is_error(info: Any) -> bool:
    inner = info.values() if isinstance(info, Mapping) else ()
    return isinstance(info, Mapping) and (bool(info.get("raised_exception")) or any(map(is_error, inner)))


@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda at: f"{at}-{CASES[at][0]}")
def test_each_partition_is_judged_as_it_is_alone(at, ours, theirs):
    found = {partition: theirs[at, partition] for partition in PARTITIONS}
    if any(verdict == ERROR for verdict, _ in found.values()):
        assert all(ours[at, partition][0] == ERROR for partition in PARTITIONS), (CASES[at], ours[at, FULL])
        return
    for partition, (success, result) in found.items():
        own_success, own_result = ours[at, partition]
        seen = plain(own_result) if partition == FULL else {}  # to ask of all takes twice as long
        assert (own_success, seen) == (success, plain(result)), (CASES[at], partition)


def plain(result: Mapping[str, Any]) -> Any:
    """What is said of counts and observed values, as JSON has it."""
    return {name: as_json(value) for name, value in result.items() if name not in UNORDERED}


def as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        found = [as_json(one) for one in value]
        return sorted(found, key=str) if isinstance(value, set) else found
    if isinstance(value, Decimal | float):
        number = float(value)
        return "nan" if math.isnan(number) else pytest.approx(number, rel=1e-9)
    return value.item() if hasattr(value, "item") else str(value) if hasattr(value, "isoformat") else value


def test_every_expectation_of_the_core_is_here():
    from stagehold.gates.suite_files import expectation_types

    assert {kind for kind, _ in CASES} == {*expectation_types()} - {"expect_multicolumn_values_to_be_unique"}
