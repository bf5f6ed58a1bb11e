"""Judges a wave's metrics: one frame with a row per partition, one validation by Great Expectations for all of them."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stagehold.errors import GateErrored
from stagehold.gates.suite import TO_EXIST, Expectation, Severity, Suite
from stagehold.lake.measure import PartitionMetrics, Scalar

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

PARTITION = "partition"
COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list")
POSITION = "position"  # results come back in another order once one of them has failed to compute
RESULT_FORMAT = {"result_format": "COMPLETE", "unexpected_index_column_names": [PARTITION]}


@dataclass(frozen=True)
class GateVerdict:
    """What one expectation says about one partition; ``observed`` is the value it looked at."""

    partition: int
    expectation: str
    passed: bool
    observed: str
    severity: Severity


def preload() -> threading.Thread:
    """Import Great Expectations in the background, which takes seconds, while Spark works."""
    thread = threading.Thread(target=_great_expectations, name="import-great-expectations", daemon=True)
    thread.start()
    return thread


def judged_columns(suite: Suite, known: Collection[str]) -> frozenset[str]:
    """Those of the ``known`` columns whose metrics `judge` needs: the ones that the suite names.

    All of them where it names one that is not known: the error lists what there is.
    """
    named = (metric for expectation in suite.expectations for metric in _columns(expectation))
    columns = frozenset(metric.partition(".")[2] for metric in named) - {""}
    return columns if columns.issubset(known) else frozenset(known)


def judge(metrics: Sequence[PartitionMetrics], suite: Suite) -> tuple[GateVerdict, ...]:
    """A verdict for every partition and expectation.

    The frame has the columns partition, rows, and per column nulls.<c>, minimum.<c>, maximum.<c> and total.<c>. Where
    a partition has no such value, because it has no rows or only nulls, most expectations pass over it: state rows or
    nulls as well.
    A suite has no expectation of the whole frame, such as a sum: which partitions are in it depends on the waves.

    :raises GateErrored: when an expectation cannot be judged: an unknown metric or argument, or values it cannot
    compare.
    """
    if not metrics:
        return ()
    rows = [_row(one) for one in metrics]
    for expectation in suite.expectations:
        _refuse_unknown_metric(suite, expectation, list(rows[0]))
        _refuse_unmeasured(suite, expectation, metrics, rows)
    results = _validate(rows, suite)
    return tuple(
        verdict
        for position, expectation in enumerate(suite.expectations)
        for verdict in _verdicts(suite, expectation, results[position], rows)
    )


def _row(metrics: PartitionMetrics) -> dict[str, Scalar | None]:
    row: dict[str, Scalar | None] = {PARTITION: metrics.partition, "rows": metrics.rows}
    for column in metrics.columns:
        row[f"nulls.{column.name}"] = column.nulls
        row[f"minimum.{column.name}"] = column.minimum
        row[f"maximum.{column.name}"] = column.maximum
        row[f"total.{column.name}"] = column.total
    return row


def _refuse_unknown_metric(suite: Suite, expectation: Expectation, known: Sequence[str]) -> None:
    unknown = [column for column in _columns(expectation) if column not in known]
    if unknown and expectation.type != TO_EXIST:
        raise GateErrored(suite.name, str(expectation), f"there is no metric {', '.join(unknown)}", known)


def _refuse_unmeasured(
    suite: Suite, expectation: Expectation, metrics: Sequence[PartitionMetrics], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Great Expectations passes over a missing value. That is right only where the partition has nothing to measure."""
    empty = {(one.partition, column.name) for one in metrics for column in one.columns if column.nulls == one.rows}
    for name in _columns(expectation):
        column = name.partition(".")[2]
        for row in rows:
            if name in row and row[name] is None and (row[PARTITION], column) not in empty:
                why = "its type has none, its texts are too long, or its sum is too large"
                raise GateErrored(
                    suite.name, str(expectation), f"{name} of partition {row[PARTITION]} was not measured: {why}"
                )


def _columns(expectation: Expectation) -> list[str]:
    named = (expectation.kwargs.get(argument, ()) for argument in COLUMN_ARGUMENTS)
    return [column for columns in named for column in ((columns,) if isinstance(columns, str) else columns)]


def _validate(rows: Sequence[Mapping[str, Any]], suite: Suite) -> Mapping[int, ExpectationValidationResult]:
    """Results by position of their expectation in the suite."""
    gx = _great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = _no_progress_bars()
    asset = context.data_sources.add_pandas("metrics").add_dataframe_asset("wave")
    batch = asset.add_batch_definition_whole_dataframe("wave").get_batch({"dataframe": _frame(rows)})
    found: ExpectationSuiteValidationResult = batch.validate(_suite(suite), result_format=RESULT_FORMAT)
    return {_position(result.expectation_config): result for result in found.results}


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Values as Python objects: pandas would make floats of whole numbers, and lose digits, wherever one is missing."""
    import pandas as pd

    frame = pd.DataFrame([{name: _comparable(value) for name, value in row.items()} for row in rows], dtype=object)
    return frame.astype({PARTITION: int, "rows": int})


def _comparable(value: Any) -> Any:
    """A value in the form in which YAML gives the limits it is compared with:
    float for decimals, times without zone.
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _suite(suite: Suite) -> ExpectationSuite:
    from great_expectations.core import ExpectationSuite

    built = ExpectationSuite(name=suite.name)
    for position, expectation in enumerate(suite.expectations):
        built.add_expectation_configuration(_configuration(suite, expectation, position))
    return built


def _configuration(suite: Suite, expectation: Expectation, position: int) -> ExpectationConfiguration:
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    kwargs = {name: _comparable(value) for name, value in expectation.kwargs.items()}
    configuration = ExpectationConfiguration(type=expectation.type, kwargs=kwargs, meta={POSITION: position})
    try:
        configuration.to_domain_obj()
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, one['loc'])).replace('__root__', 'arguments')}: {one['msg']}" for one in error.errors()
        )
        raise GateErrored(suite.name, str(expectation), wrong) from error
    return configuration


def _position(configuration: ExpectationConfiguration | None) -> int:
    assert configuration is not None
    assert configuration.meta is not None
    return int(configuration.meta[POSITION])


def _verdicts(
    suite: Suite, expectation: Expectation, result: ExpectationValidationResult, rows: Sequence[Mapping[str, Any]]
) -> Iterator[GateVerdict]:
    raised = next(_exceptions(result.exception_info), None)
    if raised:
        raise GateErrored(suite.name, str(expectation), raised.splitlines()[0])
    failed = _failed_partitions(result, rows)
    for row in rows:
        # Great Expectations passes over NaN as well; it is the greatest of all numbers to Spark, and within no limits.
        passed = row[PARTITION] not in failed and not any(_is_nan(row.get(column)) for column in _columns(expectation))
        observed = ", ".join(str(row.get(column)) for column in _columns(expectation)) or str(
            result.result.get("observed_value")
        )
        yield GateVerdict(row[PARTITION], str(expectation), passed, observed, expectation.severity)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _failed_partitions(result: ExpectationValidationResult, rows: Sequence[Mapping[str, Any]]) -> set[int]:
    if result.success:
        return set()
    if "unexpected_index_list" not in result.result:
        return {row[PARTITION] for row in rows}
    return {int(entry[PARTITION]) for entry in result.result["unexpected_index_list"]}


def _exceptions(info: Any) -> Iterator[str]:
    """Messages of what was raised: Great Expectations gives one entry, or one per metric it could not compute."""
    if isinstance(info, Mapping):
        if info.get("raised_exception"):
            yield str(info.get("exception_message") or "it raised an error without a message")
        for inner in info.values():
            yield from _exceptions(inner)


def _great_expectations() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    # it tells the task's log what it registers at import
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    import great_expectations

    return great_expectations


def _no_progress_bars() -> Any:
    from great_expectations.data_context.types.base import ProgressBarsConfig

    return ProgressBarsConfig(globally=False)
