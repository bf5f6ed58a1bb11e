"""Takes rows out of staged partitions that expectations do not expect."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from stagehold.errors import GateErrored
from stagehold.gates.judge import as_theirs
from stagehold.gates.suite import Expectation, Suite
from stagehold.lake.store.columns import EXPECTATION, FILE, PARTITION, ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BETWEEN = "; "  # expectations that one row does not meet


@dataclass(frozen=True)
class SplitRows:
    """Rows that stay, and those that do not, which say why in the column `_expectation`."""

    rest: DataFrame
    aside: DataFrame


@dataclass(frozen=True)
class Unmet:
    """An expectation, and the partitions that do not meet it."""

    expectation: Expectation
    partitions: tuple[int, ...]


def split_rows(frame: DataFrame, unmet: Sequence[Unmet], suite: Suite) -> SplitRows:
    """
    :param frame: the partitions that do not meet something, with columns that tell each row.
    :raises GateErrored: an expectation does not say which rows it does not expect.
    """
    from pyspark.sql import functions as F

    blamed = reduce(lambda one, other: one.unionAll(other), [_blamed(frame, one, suite) for one in unmet])
    why = F.array_join(F.array_sort(F.collect_set(EXPECTATION)), BETWEEN).alias(EXPECTATION)
    told = frame.join(blamed.groupBy(FILE, ROW).agg(why), [FILE, ROW], "left").drop(FILE, ROW)
    is_aside = F.col(EXPECTATION).isNotNull()
    return SplitRows(told.filter(~is_aside).drop(EXPECTATION), told.filter(is_aside))


def _blamed(frame: DataFrame, unmet: Unmet, suite: Suite) -> DataFrame:
    """What tells the rows that are not expected, and why."""
    from pyspark.sql import functions as F

    from stagehold.gates.engine.asked_partitions import AskedPartitions
    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.rows import NotOfRows, unexpected_rows

    expectation, numbers = unmet.expectation, unmet.partitions
    some = frame.filter(F.col(PARTITION).isin(*numbers))
    grouped = GroupedFrame(AskedPartitions(PARTITION, numbers, numbers[0], frozenset({FILE, ROW})), some)
    try:
        with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # of forms that suites have
            rows = unexpected_rows(grouped, as_theirs(expectation, suite))
    except NotOfRows:
        problem = "on_fail is quarantine, and it does not say of each row whether it is expected; allowed: block, warn"
        raise GateErrored(suite.name, [f"{suite.place(expectation)}: {expectation}: {problem}"]) from None
    return rows.select(FILE, ROW, F.lit(str(expectation)).alias(EXPECTATION))
