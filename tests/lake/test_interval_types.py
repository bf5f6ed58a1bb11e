"""Delta has no intervals, so a stage that returns some is told so with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from stagehold.errors import StageContractBroken
from stagehold.lake.store.columns import refuse_unusable_columns

INTERVALS = {"months": "INTERVAL '1-2' YEAR TO MONTH", "took": "INTERVAL '1 02:03:04.5' DAY TO SECOND"}
TYPES = {"months": "interval year to month", "took": "interval day to second"}

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", INTERVALS)
def test_delta_itself_holds_none(spark, tmp_path: Path, name: str) -> None:
    frame = spark.sql(f"SELECT {INTERVALS[name]} AS {name}")
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE") as refused:
        frame.write.format("delta").save(str(tmp_path / "table"))
    assert name in str(refused.value)


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("inside", ["{0}", "array({0})", "map(1, {0})", "struct({0} AS it)"])
def test_the_refusal_names_stage_column_type_and_the_way_out(spark, name: str, inside: str) -> None:
    schema = spark.sql(f"SELECT 1 AS id, {inside.format(INTERVALS[name])} AS {name}").schema
    with pytest.raises(StageContractBroken) as refused:
        refuse_unusable_columns("trips", schema)
    text = str(refused.value)
    assert text.startswith(f"Stage trips cannot be committed: its output has column '{name}' of type {TYPES[name]}, ")
    assert f"CAST({name} AS STRING)" in text
    assert f"CAST({name} AS {TYPES[name].upper()})" in text
    assert "stagehold resume" in text


@pytest.mark.parametrize("name", INTERVALS)
def test_the_way_out_gives_the_same_interval_back(spark, name: str) -> None:
    back = f"CAST(CAST({INTERVALS[name]} AS STRING) AS {TYPES[name].upper()})"
    assert spark.sql(f"SELECT {back} = {INTERVALS[name]} AS same").collect()[0].same
