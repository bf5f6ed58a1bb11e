"""A frame of many partitions that answers as a frame of each partition alone would.

Code that was written for one frame, as Great Expectations' metrics are, filters, selects, aggregates and collects. A
`GroupedFrame` does all of that for every partition at once, and answers for the partition that is looked at. The
answers for the others are kept: a query runs once, however many partitions there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.connect.column import Column
from pyspark.sql.types import Row, StructType
from pyspark.sql.window import Window

from stagehold.gates.engine.asked_partitions import Answers, AskedPartitions, Steps, Totals
from stagehold.gates.engine.internals import apart, has_window, is_aggregate, only_where, said, within
from stagehold.gates.engine.quantiles import at_ranks
from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE = "__place"  # a column of our own, while a frame is limited
# Rows, the steps that led to them, and the condition that a frame's rows meet.
Filtered = tuple["DataFrame", Steps, Any]


@dataclass(frozen=True)
class GroupedFrame:
    """``frame`` has the column of the partition beside its own columns. ``steps`` are the operations on the first
    frame: frames with the same steps are the same. A frame with ``totals`` has one row for each partition, also for a
    partition without rows.
    """

    partitions: AskedPartitions
    frame: DataFrame
    steps: Steps = ()
    order: tuple[Any, ...] = ()
    totals: Totals | None = None
    filtered: Filtered | None = None

    @property
    def columns(self) -> list[str]:
        return [name for name in self.frame.columns if self._is_own(name)]

    @property
    def schema(self) -> StructType:
        return StructType([field for field in self.frame.schema.fields if self._is_own(field.name)])

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, kind in self.frame.dtypes if self._is_own(name)]

    @property
    def sparkSession(self) -> Any:
        return self.frame.sparkSession

    def __getitem__(self, named: Any) -> Any:
        return F.col(quoted(named)) if isinstance(named, str) else self.select(*map(quoted, named))

    def filter(self, condition: Any) -> GroupedFrame:
        wanted = F.expr(condition) if isinstance(condition, str) else condition
        return replace(
            self._step("filter", (wanted,), lambda given: self.frame.filter(*given)), filtered=self._only(wanted)
        )

    where = filter

    def select(self, *columns: Any) -> GroupedFrame:
        flat = tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
        if any(map(is_aggregate, flat)):
            return self.agg(*flat)
        own = [column for name in flat for column in (map(quoted, self.columns) if _is_all(name) else [name])]
        return self._step("select", own, lambda given: self.frame.select(self._partition, *given))

    def withColumn(self, name: str, column: Any) -> GroupedFrame:
        return self._step("withColumn", (column,), lambda given: self.frame.withColumn(name, *given), name)

    def withColumnRenamed(self, name: str, new: str) -> GroupedFrame:
        return self._step("rename", (), lambda _: self.frame.withColumnRenamed(name, new), name, new)

    def drop(self, *columns: Any) -> GroupedFrame:
        return self._step("drop", columns, lambda given: self.frame.drop(*given))

    def distinct(self) -> GroupedFrame:
        return replace(self._step("distinct", (), lambda _: self.frame.distinct()), order=())

    def orderBy(self, *columns: Any) -> GroupedFrame:
        ordered = self._step("orderBy", columns, lambda given: self.frame.orderBy(self._partition, *given))
        return replace(ordered, order=tuple(map(_column, columns)))

    sort = orderBy

    def limit(self, most: int) -> GroupedFrame:
        """The first rows of each partition."""
        order = self.order or (F.lit("constant"),)
        place = F.row_number().over(Window.partitionBy(self._partition).orderBy(*order))

        def limited(_: Sequence[Any]) -> DataFrame:
            return self.frame.withColumn(PLACE, place).filter(F.col(PLACE) <= most).drop(PLACE)

        return self._step("limit", (), limited, most)

    def spread(self, tasks: int, *columns: str) -> GroupedFrame:
        """The rows in so many tasks, with the same values of ``columns`` in the same task."""
        if tasks == 1:
            return self
        return self._step(
            "spread", columns, lambda given: self.frame.repartition(tasks, self._partition, *given), tasks
        )

    def groupBy(self, *columns: Any) -> GroupedGroups:
        return GroupedGroups(self, columns)

    groupby = groupBy

    def agg(self, *columns: Any) -> GroupedFrame:
        grouped = self._step("agg", columns, lambda given: self.frame.groupBy(self._partition).agg(*given))
        return replace(grouped, order=(), totals=self._totals(self._within(columns)))

    def count(self) -> int:
        (row,) = self.agg(F.count(F.lit(1))).collect()
        return int(row[0])

    def collect(self) -> list[Row]:
        """Rows of the partition that is looked at.

        :raises Awaited: the rows are asked for together with others.
        """
        return self.partitions.rows(self, self.partitions.looked_at)

    def each(self) -> Answers:
        """The rows of every partition.

        :raises Awaited: the rows are asked for together with others.
        """
        return self.partitions.each(self)

    def first(self) -> Row | None:
        return next(iter(self.limit(1).collect()), None)

    def head(self, most: int | None = None) -> Any:
        return self.first() if most is None else self.limit(most).collect()

    def take(self, most: int) -> list[Row]:
        return self.limit(most).collect()

    def isEmpty(self) -> bool:
        return not self.limit(1).collect()

    def approxQuantile(self, column: str, probabilities: Sequence[float], _error: float) -> list[float]:
        """Exact quantiles, whatever error is allowed."""

        def ranks(count: int) -> list[int]:
            return [max(1, math.ceil(probability * count)) for probability in probabilities]

        steps = (*self.steps, ("quantiles", column, *probabilities))
        return list(self.partitions.once(steps, lambda: at_ranks(self, column, ranks)))

    def toPandas(self) -> Any:
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame.from_records([list(row) for row in self.collect()], columns=self.columns)

    def persist(self, *_: Any) -> GroupedFrame:
        return self

    cache = unpersist = persist

    def __getattr__(self, name: str) -> Any:
        """Any other method of a frame, for the partition that is looked at alone."""
        return getattr(self.alone, name)

    @property
    def alone(self) -> DataFrame:
        self.partitions.seen.append(None)
        return self.frame.filter(self._partition == self.partitions.looked_at).drop(self.partitions.column)

    @property
    def _partition(self) -> Any:
        return F.col(quoted(self.partitions.column))

    def _is_own(self, name: str) -> bool:
        return name != self.partitions.column and name not in self.partitions.hidden

    def _within(self, given: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(within(part, self._partition) if isinstance(part, Column) else part for part in given)

    def _only(self, condition: Any) -> Filtered | None:
        """The frame's filter with one more condition; None if the condition itself is an aggregate."""
        if has_window(condition):
            return None
        rows, steps, before = self.filtered or (self.frame, self.steps, None)
        return rows, steps, condition if before is None else before & condition

    def _totals(self, columns: tuple[Any, ...]) -> Totals:
        """The rows that aggregates are made of. Aggregates of filtered rows are made of all rows if possible, so that
        they share a query with others.
        """
        if self.filtered:
            rows, steps, condition = self.filtered
            found = (only_where(condition, column) for column in columns)
            among_all = tuple(column for column in found if column is not None)
            if len(among_all) == len(columns):
                return Totals(rows, steps, among_all, apart(columns))
        return Totals(self.frame, self.steps, columns, apart(columns))

    def _step(
        self, name: str, given: Sequence[Any], do: Callable[[Sequence[Any]], DataFrame], *more: Any
    ) -> GroupedFrame:
        """The frame after one more step. Frames are lazy, so a step costs no query if its answer is known."""
        inside, session = self._within(given), self.frame.sparkSession
        told = (said(part, session) if isinstance(part, Column) else part for part in inside)
        return GroupedFrame(self.partitions, do(inside), (*self.steps, (name, *more, *told)), self.order)


class GroupedGroups:
    """Rows of each partition, grouped by ``columns``."""

    def __init__(self, of: GroupedFrame, columns: tuple[Any, ...]) -> None:
        self.of, self.columns = of, columns

    def agg(self, *aggregates: Any) -> GroupedFrame:
        by, of = len(self.columns), self.of
        if not by:
            return of.agg(*aggregates)

        def grouped(given: Sequence[Any]) -> DataFrame:
            return of.frame.groupBy(of._partition, *given[:by]).agg(*given[by:])

        return replace(of._step("groupBy", (*self.columns, *aggregates), grouped, by), order=())

    def count(self) -> GroupedFrame:
        return self.agg(F.count(F.lit(1)).alias("count"))


def _column(named: Any) -> Any:
    return F.col(named) if isinstance(named, str) else named


def _is_all(named: Any) -> bool:
    return isinstance(named, str) and named == "*"
