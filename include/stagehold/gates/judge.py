"""Measures a staged wave and has its gate judge it, in few queries however many partitions there are; and takes
unexpected rows out of staged partitions.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from stagehold.errors import GateErrored, SuiteModuleUnusable
from stagehold.extras import Extra, brought_by
from stagehold.gates.earlier_figures import as_identifiers, identified
from stagehold.gates.suite import FIGURES, Expectation, Suite
from stagehold.gates.verdicts import ROWS, GateVerdict, comparisons_of, verdicts_of
from stagehold.lake.measure import HASH, Content, PartitionMetrics
from stagehold.lake.store.columns import EXPECTATION, FILE, PARTITION, ROW
from stagehold.model.records import WHOLE

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as TheirExpectation
    from pyspark.sql import DataFrame, SparkSession

    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import Judged, Variant

IMPORTED = "great_expectations.expectations.core"
# What a call of Spark's client may import, and Great Expectations does.
SHARED = ("pyspark.sql", "pyspark.sql.connect.session", "pandas", "pyarrow.parquet", "sqlalchemy.orm")
TO_EXIST = "expect_column_to_exist"
LONGEST = 300  # characters of a problem
BETWEEN_EXPECTATIONS = "; "  # between the names of those that one row does not meet
CAUSE = re.compile(r"Caused by: |\[[A-Z_.]+\] ")  # how a line begins that says the cause


@dataclass(frozen=True)
class Measured:
    """The metrics of a wave's partitions, and the verdicts of their gate."""

    metrics: tuple[PartitionMetrics, ...]
    verdicts: tuple[GateVerdict, ...] = ()


@contextmanager
def imported_meanwhile() -> Iterator[None]:
    """Import Great Expectations, which takes seconds, while the block waits for Spark.

    The block must not import anything: of two threads that import the same packages, each may be given modules that the
    other has only begun. So it begins with what both use, and does not end before the import has.
    """
    if IMPORTED in sys.modules:
        yield
        return
    for module in SHARED:
        importlib.import_module(module)
    thread = threading.Thread(target=import_great_expectations, name="import-great-expectations", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def measure_and_judge(
    rows: DataFrame, content: Content, partitions: Sequence[int], suite: Suite, seconds: Mapping[int, float]
) -> Measured:
    """Metrics of each of ``partitions``, in that order, and the verdict of each expectation on each of them.

    :param rows: the content's rows, as its `frame` gives them.
    :param seconds: that it took to compute each partition.
    :raises GateErrored: an expectation cannot be judged, for example because its column is missing.
    :raises SuiteModuleUnusable: a module that defines expectations cannot be imported.
    """
    import_great_expectations()
    _import_modules(suite)
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    looked_at = AskedPartitions(PARTITION, tuple(partitions), frozenset({HASH}))
    frame = GroupedFrame(looked_at, rows)
    _require_sampled(suite, frame)
    hashed = frame.agg(*content.aggregates())
    looked_at.want(hashed)  # asked along with what the gate asks for first
    numbered = dict(enumerate(suite.expectations))
    verdicts = _judged(
        frame, {at: expectation for at, expectation in numbered.items() if not expectation.is_of_figures}, suite
    )
    looked_at.ask_wanted()
    metrics = tuple(content.metrics(number, looked_at.rows(hashed, number)[0]) for number in partitions)
    figures = _figures(
        rows.sparkSession,
        [(metric.partition, metric.rows, content.bytes(metric.partition)) for metric in metrics],
        seconds,
    )
    of_figures = _judged(
        figures, {at: expectation for at, expectation in numbered.items() if expectation.is_of_figures}, suite
    )
    every = {**verdicts, **of_figures}
    return Measured(metrics, tuple(verdict for at in numbered for verdict in every[at]))


def judge_together(rows: DataFrame, suite: Suite, partition: int = WHOLE) -> tuple[GateVerdict, ...]:
    """The verdict of each expectation on all rows of some content, as if they were one partition, of that number.

    :raises GateErrored: an expectation cannot be judged.
    :raises SuiteModuleUnusable: a module that defines expectations cannot be imported.
    """
    import_great_expectations()
    _import_modules(suite)
    from pyspark.sql import functions as F

    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    whole = rows.withColumn(PARTITION, F.lit(partition))
    frame = GroupedFrame(AskedPartitions(PARTITION, (partition,), frozenset({HASH})), whole)
    _require_sampled(suite, frame)
    numbered = dict(enumerate(suite.expectations))
    judged = _judged(frame, numbered, suite)
    return tuple(verdict for at in numbered for verdict in judged[at])


def _import_modules(suite: Suite) -> None:
    for module in suite.modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # the project's code may raise anything
            said = [line.strip() for line in str(error).splitlines() if line.strip()]
            cause = ": ".join((type(error).__name__, *said[-1:]))
            raise SuiteModuleUnusable(suite.name, suite.place_of_module(module), module, cause) from error


def _judged(
    frame: GroupedFrame, expectations: Mapping[int, Expectation], suite: Suite
) -> Mapping[int, Sequence[GateVerdict]]:
    from stagehold.gates.engine.judging import ANSWERED, ASKED, judge_frame, judge_variants

    if not expectations:
        return {}
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # of forms that suites have
        alike, variants, problems = _in_their_words(frame, expectations, suite)
        along = _asked_along(variants, expectations)
        judged, unjudged = judge_frame(frame, {**alike, **along}, samples=bool(suite.samples.rows))
        wanted = {at: own for at, own in variants.items() if at not in unjudged}
        compared, others = judge_variants(frame, wanted, ANSWERED if along else ASKED)
        sampled = {
            at: _with_rows(frame, expectations[at], asked, judged[at], suite)
            for at, asked in alike.items()
            if at in judged
        }
    problems |= {at: [_why_unjudged(expectations[at], suite, why)] for at, why in {**unjudged, **others}.items()}
    if problems:
        raise GateErrored(suite.name, [problem for at in sorted(problems) for problem in problems[at]])
    verdicts = {at: list(verdicts_of(expectations[at], asked, sampled[at], suite)) for at, asked in alike.items()}
    return verdicts | {
        at: list(comparisons_of(expectations[at], variants[at], results, suite, frame))
        for at, results in compared.items()
    }


def _with_rows(
    frame: GroupedFrame, own: Expectation, asked: TheirExpectation, judged: Sequence[Judged], suite: Suite
) -> Sequence[Judged]:
    """The same results, with some of the unexpected rows by the keys that the suite names. This is one more query for
    each expectation that fails somewhere.
    """
    from stagehold.gates.engine.judging import NotOfRows, sampled_rows

    keys, failed = suite.samples.keys, [one.partition for one in judged if not one.success]
    if not keys or not failed or own.is_of_figures or suite.samples.hides(own):
        return judged
    among = replace(frame, partitions=frame.partitions.among(failed))
    columns = tuple(dict.fromkeys((*keys, *own.columns)))
    try:
        rows = sampled_rows(among, asked, columns, suite.samples.rows)
    except NotOfRows:
        return judged
    return [
        replace(one, result={**one.result, ROWS: rows[one.partition]}) if one.partition in rows else one
        for one in judged
    ]


def _why_unjudged(own: Expectation, suite: Suite, why: Exception) -> str:
    """Why an expectation could not be judged. Spark's message about a row has the row's values in it, so it is hidden
    where columns are masked.
    """
    hidden = suite.samples.hides(own)
    said = f"{type(why).__name__}, whose text is not shown: {', '.join(hidden)} masked" if hidden else _said(why)
    return _located(own, suite, said)


def _require_sampled(suite: Suite, frame: GroupedFrame) -> None:
    """Check that columns of the samples exist: a masked column with a misspelt name would be shown.

    :raises GateErrored: the suite's samples name columns that the data does not have.
    """
    there = frame.columns
    problems = [
        f"{suite.place_of_samples}: samples.{field}: there is no column {name!r}; allowed: {', '.join(there)}"
        for field, names in (("keys", suite.samples.keys), ("mask", suite.samples.mask))
        for name in names
        if name not in there and name.partition(".")[0] not in there
    ]
    if problems:
        raise GateErrored(suite.name, problems)


def _in_their_words(
    frame: GroupedFrame, expectations: Mapping[int, Expectation], suite: Suite
) -> tuple[dict[int, TheirExpectation], dict[int, Sequence[Variant]], dict[int, Sequence[str]]]:
    """Expectations that are the same for all partitions; variants of those that compare with earlier intervals; and the
    problems of those that cannot be judged.
    """
    alike: dict[int, TheirExpectation] = {}
    variants: dict[int, Sequence[Variant]] = {}
    problems: dict[int, Sequence[str]] = {}
    for at, expectation in expectations.items():
        try:
            _require_columns(expectation, suite, frame)
            if expectation.earlier_figures:
                variants[at] = _variants(expectation, suite, frame)
            else:
                asked = as_theirs(expectation, suite)
                _require_a_query(expectation, asked, suite, frame)
                alike[at] = asked
        except GateErrored as error:
            problems[at] = error.problems
    return alike, variants, problems


def _asked_along(
    variants: Mapping[int, Sequence[Variant]], expectations: Mapping[int, Expectation]
) -> Mapping[int, TheirExpectation]:
    """A variant of each expectation, so that all aggregates are one query. Figures of partitions are left out, since
    they cost nothing to ask again.
    """
    return {at: own[0][0] for at, own in variants.items() if own and not expectations[at].is_of_figures}


def _variants(own: Expectation, suite: Suite, frame: GroupedFrame) -> Sequence[Variant]:
    """A variant for each distinct set of figures of earlier intervals, with its partitions. Partitions whose figures
    are not known are in none.
    """
    alike: dict[tuple[float, ...], list[int]] = {}
    for number in frame.partitions.numbers:
        figures = suite.earlier.of(number, own.earlier_figures)
        if figures is not None:
            alike.setdefault(tuple(figures.values()), []).append(number)
    return [
        (as_theirs(own, suite, dict(zip(own.earlier_figures, values, strict=True))), tuple(partitions))
        for values, partitions in alike.items()
    ]


def _figures(spark: SparkSession, known: Sequence[tuple[int, int, int]], seconds: Mapping[int, float]) -> GroupedFrame:
    """What is known of each partition without looking at its rows, as a frame with one row for each."""
    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame

    rows = [(*figures, seconds[figures[0]]) for figures in known]
    named = ", ".join(f"`{name}` {kind}" for name, kind in zip(FIGURES, ("bigint", "bigint", "double"), strict=True))
    frame = spark.createDataFrame(rows, f"`{PARTITION}` int, {named}")
    numbers = tuple(partition for partition, *_ in known)
    return GroupedFrame(AskedPartitions(PARTITION, numbers), frame)


def _require_columns(expectation: Expectation, suite: Suite, frame: GroupedFrame) -> None:
    unknown = [*_unknown(expectation, frame)]
    if unknown:
        raise GateErrored(suite.name, [_located(expectation, suite, problem) for problem in unknown])


def _require_a_query(own: Expectation, asked: TheirExpectation, suite: Suite, frame: GroupedFrame) -> None:
    """Refuse SQL that is more than a query: Great Expectations has Spark carry out whatever is written there."""
    from stagehold.gates.engine.judging import sql_problem

    problem = sql_problem(asked, frame.sparkSession)
    if problem:
        raise GateErrored(suite.name, [_located(own, suite, problem)])


def _unknown(expectation: Expectation, frame: GroupedFrame) -> Iterator[str]:
    """A text for each column that the expectation names and that the frame does not have."""
    there = frame.columns
    for name in expectation.columns:
        if expectation.type != TO_EXIST and name not in there and name.partition(".")[0] not in there:
            offered = ", ".join([*(get_close_matches(name, there, n=1) or there)])
            yield f"there is no column {name!r}; there is {offered}"


def as_theirs(expectation: Expectation, suite: Suite, figures: Mapping[str, float] | None = None) -> TheirExpectation:
    """The expectation as an object of Great Expectations.

    :param figures: the figures of earlier intervals that the expectation names.
    :raises GateErrored: Great Expectations refuses its arguments.
    """
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.core.suite_parameters import build_suite_parameters
    from great_expectations.exceptions.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    try:
        parameters = {**suite.parameters, **identified(figures or {})}
        kwargs, _ = build_suite_parameters(as_identifiers(expectation.kwargs), parameters)
        return ExpectationConfiguration(type=expectation.type, kwargs=kwargs).to_domain_obj()
    except ValidationError as error:
        wrong = (
            f"{'.'.join(map(str, problem['loc'])).replace('__root__', 'arguments')}: {problem['msg']}"
            for problem in error.errors()
        )
        raise GateErrored(suite.name, [_located(expectation, suite, "; ".join(wrong))]) from error
    except GreatExpectationsError as error:
        raise GateErrored(suite.name, [_located(expectation, suite, _said(error))]) from error


def _located(expectation: Expectation, suite: Suite, problem: str) -> str:
    return f"{suite.place(expectation)}: {expectation}: {problem}"


def _said(error: Exception) -> str:
    """The line of an error's text that says the cause, cut to a length of which an error may have many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if CAUSE.match(line)]
    return (causes or lines or [type(error).__name__])[0][:LONGEST]


@cache
def import_great_expectations() -> Any:
    """Import Great Expectations. Its objects stay until the process ends, so they are kept out of garbage collection,
    which would take a second at the end alone.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    # it writes to the task's log what it registers at import, and what it registers again
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    with brought_by(Extra.GATES):
        import great_expectations.expectations.core

    gc.freeze()
    return great_expectations


Unmet = tuple[Expectation, tuple[int, ...]]  # an expectation, and the partitions that do not meet it


def split_rows(frame: DataFrame, unmet: Sequence[Unmet], suite: Suite) -> tuple[DataFrame, DataFrame]:
    """Rows that all of these expectations expect, and the others, which say why in the column `_expectation`.

    :param frame: the partitions that do not meet something, with columns that tell each row.
    :raises GateErrored: an expectation does not say which rows it does not expect.
    """
    from pyspark.sql import functions as F

    blamed = reduce(lambda left, right: left.unionAll(right), [_blamed(frame, failure, suite) for failure in unmet])
    why = F.array_join(F.array_sort(F.collect_set(EXPECTATION)), BETWEEN_EXPECTATIONS).alias(EXPECTATION)
    told = frame.join(blamed.groupBy(FILE, ROW).agg(why), [FILE, ROW], "left").drop(FILE, ROW)
    is_aside = F.col(EXPECTATION).isNotNull()
    return told.filter(~is_aside).drop(EXPECTATION), told.filter(is_aside)


def _blamed(frame: DataFrame, unmet: Unmet, suite: Suite) -> DataFrame:
    """The unexpected rows, as the columns that identify a row and the expectation that it does not meet."""
    from pyspark.sql import functions as F

    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import NotOfRows, unexpected_rows

    expectation, numbers = unmet
    rows_of_these = frame.filter(F.col(PARTITION).isin(*numbers))
    grouped = GroupedFrame(AskedPartitions(PARTITION, numbers, frozenset({FILE, ROW})), rows_of_these)
    try:
        with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # of forms that suites have
            rows = unexpected_rows(grouped, as_theirs(expectation, suite))
    except NotOfRows:
        problem = "on_fail is quarantine, and it does not say of each row whether it is expected; allowed: block, warn"
        raise GateErrored(suite.name, [f"{suite.place(expectation)}: {expectation}: {problem}"]) from None
    return rows.select(FILE, ROW, F.lit(str(expectation)).alias(EXPECTATION))
