"""What Great Expectations says of each partition by itself: seven hundred queries of its own, so it was asked once.

`python -m tests.gates.engine.their_answers` asks again, as other rows, other cases and another version need.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.gates.engine.random_rows import EMPTY, FULL, PARTITION, SCHEMA, every_expectation, random_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDED = Path(__file__).with_name("their_answers.json")
SEED = 1
PARTITIONS = (FULL, EMPTY)
ERROR = "cannot be judged"
UNORDERED = ("partial_unexpected_list", "partial_unexpected_counts", "unexpected_rows", "details")
Answers = Mapping[tuple[int, int], tuple[Any, Any]]


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


def asked() -> str:
    """What the answers depend on."""
    of = (version("great_expectations"), version("pyspark"), SCHEMA, PARTITIONS, CASES, random_rows(SEED))
    return sha256(repr(of).encode()).hexdigest()


def answers(frame: DataFrame) -> Answers:
    """As recorded; asked now where that was of something else."""
    recorded = json.loads(RECORDED.read_text())
    if recorded["asked"] != asked():
        return _ask(frame)
    return {(at, partition): (verdict, said) for at, partition, verdict, said in recorded["answers"]}


def rows_in(spark: SparkSession, folder: str) -> DataFrame:
    made = spark.createDataFrame(random_rows(SEED), f"{SCHEMA}, `{PARTITION}` int")
    made.coalesce(1).write.parquet(folder)
    return spark.read.schema(made.schema).parquet(folder)


def plain(result: Mapping[str, Any]) -> Any:
    """What is said of counts and observed values, as JSON has it."""
    return {name: _as_json(value) for name, value in result.items() if name not in UNORDERED}


def _ask(frame: DataFrame) -> Answers:
    return {found: said for partition in PARTITIONS for found, said in _alone(frame, partition).items()}


def _alone(frame: DataFrame, partition: int) -> Answers:
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
        (one.expectation_config.meta["at"], partition): (ERROR, None)
        if _is_error(one.exception_info)
        else (bool(one.success), plain(one.result))
        for one in found.results
    }


def _is_error(info: Any) -> bool:
    inner = info.values() if isinstance(info, Mapping) else ()
    return isinstance(info, Mapping) and (bool(info.get("raised_exception")) or any(map(_is_error, inner)))


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        found = [_as_json(one) for one in value]
        return sorted(found, key=str) if isinstance(value, set) else found
    if isinstance(value, Decimal | float):
        return "nan" if math.isnan(value) else float(value)
    value = value.item() if hasattr(value, "item") else value
    return str(value) if hasattr(value, "isoformat") else value


def main() -> None:
    from tests.conftest import free_port

    from stagehold.settings import Settings
    from stagehold.spark.server.server import spark_server
    from stagehold.spark.session.sessions import open_session

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=f"{folder}/home", spark_port=free_port())
        with spark_server(settings):
            found = _ask(rows_in(open_session(settings, "9b1cbd5c-23d9-4b37-9b3c-6f2b0b8a4c11"), f"{folder}/rows"))
    lines = ",\n".join(json.dumps([*key, *said]) for key, said in sorted(found.items(), key=lambda one: one[0]))
    RECORDED.write_text(f'{{"asked": "{asked()}", "answers": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
