"""A frame of many partitions that answers as each of them would alone.

Code that was written for one frame, as Great Expectations' metrics are, filters, selects, aggregates and collects. A
`GroupedFrame` does all of that for every partition at once, and gives the answer of the one that is looked at. What was
asked for one partition is there for the others: a query runs once, however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.connect.column import Column
from pyspark.sql.types import Row, StructType
from pyspark.sql.window import Window

from stagehold.gates.engine.blame import require_of_suite
from stagehold.gates.engine.internals import alias_of, is_aggregate, said, within
from stagehold.lake.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE = 200  # aggregates in a query; Spark compiles none of thousands
EXACTLY = 2**31 - 1  # the accuracy of a quantile
PLACE = "__place"  # a column of our own, while a frame is limited
Steps = tuple[Any, ...]  # what was done to a frame, and with what
Answers = Mapping[int, list[Row]]


@dataclass(frozen=True)
class Totals:
    """What a frame of one row for each partition is made of."""

    rows: DataFrame
    columns: tuple[Column, ...]


class Awaited(Exception):
    """What was asked for is asked along with what others ask for: ask again after that."""


@dataclass
class AskedPartitions:
    """Which partitions there are, and the one that is looked at. ``hidden`` are columns of the frame that are not its
    user's. ``answers`` are what was asked for, by the steps of the frame; ``wanted`` is asked for together.
    """

    column: str
    numbers: Sequence[int]
    looked_at: int
    hidden: frozenset[str] = frozenset()
    answers: dict[Steps, Answers | Exception] = field(default_factory=dict)
    wanted: dict[Steps, GroupedFrame] = field(default_factory=dict)
    queries: int = 0

    def want(self, frame: GroupedFrame) -> None:
        """Have these aggregates asked with the next `ask_wanted`."""
        if frame.steps not in self.answers:
            self.wanted[frame.steps] = frame

    def rows(self, frame: GroupedFrame, partition: int) -> list[Row]:
        """
        :raises Awaited: it is asked with the next `ask_wanted`.
        """
        if frame.steps not in self.answers:
            if frame.totals:
                self.want(frame)
                raise Awaited
            self.answers[frame.steps] = self._by_partition(frame.frame)
        found = self.answers[frame.steps]
        if isinstance(found, Exception):
            raise found
        return found.get(partition, [])

    def ask_wanted(self) -> None:
        """One query for all aggregates of the same rows, or a few if there are very many."""
        same_rows: dict[Steps, list[GroupedFrame]] = {}
        for one in self.wanted.values():
            same_rows.setdefault(one.steps[:-1], []).append(one)
        self.wanted.clear()
        for every in same_rows.values():
            for start in range(0, len(every), AT_ONCE):
                self._ask_together(every[start : start + AT_ONCE])

    def _ask_together(self, wanted: Sequence[GroupedFrame]) -> None:
        try:
            self._ask(wanted)
        except Exception as error:  # noqa: BLE001 - they are asked again
            require_of_suite(error)
            self._ask_apart(wanted)

    def _ask_apart(self, wanted: Sequence[GroupedFrame]) -> None:
        """Which of them cannot be asked."""
        for one in wanted:
            try:
                self._ask([one])
            except Exception as error:  # noqa: BLE001 - raised for who asks for it
                require_of_suite(error)
                self.answers[one.steps] = error

    def _ask(self, wanted: Sequence[GroupedFrame]) -> None:
        totals = [one.totals for one in wanted if one.totals]
        columns = [column for one in totals for column in one.columns]
        found = self._totals(totals[0].rows, [_numbered(*one) for one in enumerate(columns)])
        start = 0
        for frame, one in zip(wanted, totals, strict=True):
            own = slice(start, start := start + len(one.columns))
            names = [alias_of(column) or str(number) for number, column in enumerate(one.columns)]
            self.answers[frame.steps] = {number: [_row(names, row[own])] for number, row in found.items()}

    def _totals(self, rows: DataFrame, columns: Sequence[Any]) -> Mapping[int, Row]:
        found = self._by_partition(rows.groupBy(F.col(quoted(self.column))).agg(*columns))
        if any(number not in found for number in self.numbers):
            self.queries += 1
            of_nothing = rows.filter(F.lit(False)).agg(*columns).collect()
            found = {number: found.get(number, of_nothing) for number in self.numbers}
        return {number: row for number, (row,) in found.items()}

    def _by_partition(self, frame: DataFrame) -> dict[int, list[Row]]:
        self.queries += 1
        answers: dict[int, list[Row]] = {}
        for row in frame.collect():
            place = row.__fields__.index(self.column)
            answers.setdefault(row[place], []).append(_without(row, place))
        return answers


@dataclass(frozen=True)
class GroupedFrame:
    """``frame`` has the partitions' column beside its own. ``steps`` say what was done to the first one: two frames
    with the same steps are the same. With ``totals`` it has a row for each partition, also for one without rows.
    """

    partitions: AskedPartitions
    frame: DataFrame
    steps: Steps = ()
    order: tuple[Any, ...] = ()
    totals: Totals | None = None

    @property
    def columns(self) -> list[str]:
        return [name for name in self.frame.columns if self._is_own(name)]

    @property
    def schema(self) -> StructType:
        return StructType([one for one in self.frame.schema.fields if self._is_own(one.name)])

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, kind in self.frame.dtypes if self._is_own(name)]

    @property
    def sparkSession(self) -> Any:
        return self.frame.sparkSession

    def __getitem__(self, named: Any) -> Any:
        return F.col(quoted(named)) if isinstance(named, str) else self.select(*map(quoted, named))

    def filter(self, condition: Any) -> GroupedFrame:
        return self._step("filter", (condition,), lambda given: self.frame.filter(*given))

    where = filter

    def select(self, *columns: Any) -> GroupedFrame:
        flat = tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
        if any(map(is_aggregate, flat)):
            return self.agg(*flat)
        own = [one for name in flat for one in (map(quoted, self.columns) if _is_all(name) else [name])]
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
        """The first ones of each partition."""
        order = self.order or (F.lit("constant"),)
        place = F.row_number().over(Window.partitionBy(self._partition).orderBy(*order))

        def limited(_: Sequence[Any]) -> DataFrame:
            return self.frame.withColumn(PLACE, place).filter(F.col(PLACE) <= most).drop(PLACE)

        return self._step("limit", (), limited, most)

    def groupBy(self, *columns: Any) -> GroupedGroups:
        return GroupedGroups(self, columns)

    groupby = groupBy

    def agg(self, *columns: Any) -> GroupedFrame:
        grouped = self._step("agg", columns, lambda given: self.frame.groupBy(self._partition).agg(*given))
        return replace(grouped, order=(), totals=Totals(self.frame, self._within(columns)))

    def count(self) -> int:
        (row,) = self.agg(F.count(F.lit(1))).collect()
        return int(row[0])

    def collect(self) -> list[Row]:
        """Rows of the partition that is looked at.

        :raises Awaited: they are asked for together with others'.
        """
        return self.partitions.rows(self, self.partitions.looked_at)

    def first(self) -> Row | None:
        return next(iter(self.limit(1).collect()), None)

    def head(self, most: int | None = None) -> Any:
        return self.first() if most is None else self.limit(most).collect()

    def take(self, most: int) -> list[Row]:
        return self.limit(most).collect()

    def isEmpty(self) -> bool:
        return not self.limit(1).collect()

    def approxQuantile(self, column: str, probabilities: Sequence[float], _error: float) -> list[float]:
        """Exact ones, whatever error is allowed."""
        value = F.col(quoted(column)).cast("double")
        number = F.when(~F.isnan(value), value)
        (row,) = self.agg(F.percentile_approx(number, list(probabilities), EXACTLY)).collect()
        return list(row[0] or [])

    def toPandas(self) -> Any:
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame.from_records([list(row) for row in self.collect()], columns=self.columns)

    def persist(self, *_: Any) -> GroupedFrame:
        return self

    cache = unpersist = persist

    def __getattr__(self, name: str) -> Any:
        """Whatever else a frame can do, done by the partition that is looked at alone."""
        return getattr(self.alone, name)

    @property
    def alone(self) -> DataFrame:
        return self.frame.filter(self._partition == self.partitions.looked_at).drop(self.partitions.column)

    @property
    def _partition(self) -> Any:
        return F.col(quoted(self.partitions.column))

    def _is_own(self, name: str) -> bool:
        return name != self.partitions.column and name not in self.partitions.hidden

    def _within(self, given: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(within(one, self._partition) if isinstance(one, Column) else one for one in given)

    def _step(
        self, name: str, given: Sequence[Any], do: Callable[[Sequence[Any]], DataFrame], *more: Any
    ) -> GroupedFrame:
        """One more step. Frames are lazy, so what was answered already is not asked again."""
        inside, session = self._within(given), self.frame.sparkSession
        told = (said(one, session) if isinstance(one, Column) else one for one in inside)
        return GroupedFrame(self.partitions, do(inside), (*self.steps, (name, *more, *told)), self.order)


@dataclass(frozen=True)
class GroupedGroups:
    """Rows of each partition, by ``columns``."""

    of: GroupedFrame
    columns: tuple[Any, ...]

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


def _without(row: Row, place: int) -> Row:
    names = [name for number, name in enumerate(row.__fields__) if number != place]
    values = [value for number, value in enumerate(row) if number != place]
    return _row(names, values)


def _row(names: Sequence[str], values: Sequence[Any]) -> Row:
    """Names may be there twice."""
    row = Row(*values)
    row.__fields__ = list(names)
    return row


def _numbered(number: int, column: Column) -> Any:
    return column.alias(str(number))
