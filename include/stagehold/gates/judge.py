"""Measures a staged wave and has it judged by its gate, in few queries however many partitions it has."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from stagehold.errors import GateErrored
from stagehold.gates.suite import FIGURES, Expectation, Severity, Suite
from stagehold.lake.columns import PARTITION
from stagehold.lake.measure import HASH, Content, PartitionMetrics

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as TheirExpectation
    from pyspark.sql import SparkSession

    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import Judged

TO_EXIST = "expect_column_to_exist"
SAID = 5  # unexpected values that a text has
LONGEST = 300  # letters of a problem


@dataclass(frozen=True)
class GateVerdict:
    """What one expectation says about one partition; ``observed`` is what it saw."""

    partition: int
    expectation: str
    passed: bool
    observed: str
    severity: Severity


@dataclass(frozen=True)
class Measured:
    """A wave's partitions, and what their gate says of them."""

    metrics: tuple[PartitionMetrics, ...]
    verdicts: tuple[GateVerdict, ...] = ()


def preload() -> threading.Thread:
    """Import Great Expectations in the background, which takes seconds, while Spark works."""
    thread = threading.Thread(target=_great_expectations, name="import-great-expectations", daemon=True)
    thread.start()
    return thread


def measure_and_judge(
    spark: SparkSession, content: Content, partitions: Sequence[int], suite: Suite, seconds: Mapping[int, float]
) -> Measured:
    """Metrics of each of ``partitions``, in that order, and a verdict of each expectation for each of them.

    :param seconds: that it took to compute each of them.
    :raises GateErrored: an expectation cannot be judged, such as one of a column that is not there.
    """
    _great_expectations()
    for module in suite.modules:
        importlib.import_module(module)
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    looked_at = AskedPartitions(PARTITION, tuple(partitions), partitions[0], frozenset({HASH}))
    frame = GroupedFrame(looked_at, content.frame(spark))
    hashed = frame.agg(*content.aggregates())
    looked_at.want(hashed)  # asked along with what the gate asks for first
    numbered = dict(enumerate(suite.expectations))
    verdicts = _judged(frame, {at: one for at, one in numbered.items() if not one.is_of_figures}, suite)
    looked_at.ask_wanted()
    metrics = tuple(content.metrics(number, looked_at.rows(hashed, number)[0]) for number in partitions)
    figures = _figures(spark, [(one.partition, one.rows, content.bytes(one.partition)) for one in metrics], seconds)
    of_figures = _judged(figures, {at: one for at, one in numbered.items() if one.is_of_figures}, suite)
    every = {**verdicts, **of_figures}
    return Measured(metrics, tuple(one for at in numbered for one in every[at]))


def _judged(
    frame: GroupedFrame, expectations: Mapping[int, Expectation], suite: Suite
) -> Mapping[int, Sequence[GateVerdict]]:
    from stagehold.gates.engine.judging import judge_frame

    if not expectations:
        return {}
    problems = [_located(one, suite, problem) for one in expectations.values() for problem in _unknown(one, frame)]
    if problems:
        raise GateErrored(suite.name, problems)
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # of forms that suites have
        theirs = {at: _theirs(one, suite) for at, one in expectations.items()}
        judged, unjudged = judge_frame(frame, theirs, samples=suite.samples)
    if unjudged:
        raise GateErrored(suite.name, [_located(expectations[at], suite, _said(why)) for at, why in unjudged.items()])
    return {at: [_verdict(expectations[at], one, suite) for one in some] for at, some in judged.items()}


def _verdict(own: Expectation, said: Judged, suite: Suite) -> GateVerdict:
    seen = observed(said.result, samples=suite.samples)
    return GateVerdict(said.partition, str(own), said.success, seen, own.severity)


def _figures(spark: SparkSession, known: Sequence[tuple[int, int, int]], seconds: Mapping[int, float]) -> GroupedFrame:
    """What is known of each partition without looking at its rows, as a frame of one row for each."""
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    rows = [(*one, seconds[one[0]]) for one in known]
    named = ", ".join(f"`{name}` {kind}" for name, kind in zip(FIGURES, ("bigint", "bigint", "double"), strict=True))
    frame = spark.createDataFrame(rows, f"`{PARTITION}` int, {named}")
    numbers = tuple(partition for partition, *_ in known)
    return GroupedFrame(AskedPartitions(PARTITION, numbers, numbers[0]), frame)


def _unknown(expectation: Expectation, frame: GroupedFrame) -> Iterator[str]:
    """Columns that it names and that are not there."""
    there = frame.columns
    for name in expectation.columns:
        if expectation.type != TO_EXIST and name not in there and name.partition(".")[0] not in there:
            offered = ", ".join([*(get_close_matches(name, there, n=1) or there)])
            yield f"there is no column {name!r}; there is {offered}"


def _theirs(expectation: Expectation, suite: Suite) -> TheirExpectation:
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.core.suite_parameters import build_suite_parameters
    from great_expectations.exceptions.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    try:
        kwargs, _ = build_suite_parameters(dict(expectation.kwargs), dict(suite.parameters))
        return ExpectationConfiguration(type=expectation.type, kwargs=kwargs).to_domain_obj()
    except ValidationError as error:
        wrong = (
            f"{'.'.join(map(str, one['loc'])).replace('__root__', 'arguments')}: {one['msg']}" for one in error.errors()
        )
        raise GateErrored(suite.name, [_located(expectation, suite, "; ".join(wrong))]) from error
    except GreatExpectationsError as error:
        raise GateErrored(suite.name, [_located(expectation, suite, _said(error))]) from error


def _located(expectation: Expectation, suite: Suite, problem: str) -> str:
    return f"{suite.place(expectation)}: {expectation}: {problem}"


def _said(error: Exception) -> str:
    """What is new in it, short enough for an error that may have many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by: ", "["))]
    return (causes or lines or [type(error).__name__])[0][:LONGEST]


def observed(result: Mapping[str, Any], *, samples: bool = True) -> str:
    """What an expectation saw, in a few words; without ``samples`` no value that was not expected is among them."""
    if result.get("unexpected_count") is not None and result.get("observed_value") is None:
        unexpected = result.get("partial_unexpected_list") if samples else None
        some = list(dict.fromkeys(map(str, unexpected or ())))[:SAID]
        such = f", such as {', '.join(some)}" if some else ""
        of_all = f" of {result['element_count']}" if "element_count" in result else ""
        return f"{result['unexpected_count']}{of_all} unexpected{such}"
    return str(result["observed_value"]) if "observed_value" in result else "no rows" if result else ""


def _great_expectations() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    # it tells the task's log what it registers at import, and what it registers again
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    import great_expectations.expectations.core

    return great_expectations
