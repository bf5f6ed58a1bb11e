"""Asks Spark what is wanted of frames of many partitions, once for all of them and in few queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.connect.column import Column
from pyspark.sql.types import Row

from stagehold.gates.engine.blame import require_of_suite
from stagehold.gates.engine.internals import alias_of
from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from stagehold.gates.engine.grouped_frame import GroupedFrame

AT_ONCE = 200  # aggregates in a query; Spark compiles none of thousands
Steps = tuple[Any, ...]  # what was done to a frame, and with what
Answers = Mapping[int, list[Row]]


@dataclass(frozen=True)
class Totals:
    """What a frame of one row for each partition is made of. ``of`` are the steps of ``rows``; ``apart`` says which
    aggregates it can share a query with, those with the same.
    """

    rows: DataFrame
    of: Steps
    columns: tuple[Column, ...]
    apart: Any = None


@dataclass(frozen=True)
class Look:
    """Something that a function looked at; ``told`` is what it is of each partition."""

    at: Any
    told: Callable[[int], Any] = field(compare=False)


class Awaited(Exception):
    """What was asked for is asked along with what others ask for: ask again after that."""


@dataclass
class AskedPartitions:
    """Which partitions there are, and the one that is looked at. ``hidden`` are columns of the frame that are not its
    user's. ``answers`` are what was asked for, by the steps of the frame; ``wanted`` is asked for together. ``seen`` is
    what was looked at, None for what is known of no other partition; ``found`` is what follows from answers.
    """

    column: str
    numbers: Sequence[int]
    looked_at: int
    hidden: frozenset[str] = frozenset()
    answers: dict[Steps, Answers | Exception] = field(default_factory=dict)
    wanted: dict[Steps, GroupedFrame] = field(default_factory=dict)
    seen: list[Look | None] = field(default_factory=list)
    found: dict[Steps, Mapping[int, Any]] = field(default_factory=dict)
    queries: int = 0

    def want(self, frame: GroupedFrame) -> None:
        """Have these aggregates asked with the next `ask_wanted`."""
        if frame.steps not in self.answers:
            self.wanted[frame.steps] = frame

    def rows(self, frame: GroupedFrame, partition: int) -> list[Row]:
        """
        :raises Awaited: it is asked with the next `ask_wanted`.
        """
        answer = self.each(frame)
        self.seen.append(Look(frame.steps, lambda number: answer.get(number, [])))
        return answer.get(partition, [])

    def each(self, frame: GroupedFrame) -> Answers:
        """The rows of every partition that has some.

        :raises Awaited: they are asked for with the next `ask_wanted`.
        """
        if frame.steps not in self.answers:
            if frame.totals:
                self.want(frame)
                raise Awaited
            self.answers[frame.steps] = self._by_partition(frame.frame)
        answer = self.answers[frame.steps]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def once(self, steps: Steps, find: Callable[[], Mapping[int, Any]]) -> Any:
        """Of the partition that is looked at, what ``find`` finds for all of them when it is first asked."""
        if steps not in self.found:
            self.found[steps] = find()
        self.seen.append(Look(steps, self.found[steps].__getitem__))
        return self.found[steps][self.looked_at]

    def among(self, numbers: Sequence[int]) -> AskedPartitions:
        """Some of them, which know what is known of all so far; what they find is theirs."""
        known, found = dict(self.answers), dict(self.found)
        return AskedPartitions(self.column, numbers, numbers[0], self.hidden, answers=known, found=found)

    @contextmanager
    def noting(self) -> Iterator[list[Look | None]]:
        """What is looked at within."""
        before, self.seen, looking_at = self.seen, [], self.looked_at
        try:
            yield self.seen
        finally:
            self.seen, self.looked_at = before, looking_at

    def ask_wanted(self) -> None:
        """One query for all aggregates of the same rows, or a few if there are very many."""
        together: dict[Any, list[GroupedFrame]] = {}
        for one in self.wanted.values():
            if one.totals:
                together.setdefault((one.totals.of, one.totals.apart), []).append(one)
        self.wanted.clear()
        for every in together.values():
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


def _without(row: Row, place: int) -> Row:
    names = row.__fields__
    return _row([*names[:place], *names[place + 1 :]], [*row[:place], *row[place + 1 :]])


def _row(names: Sequence[str], values: Sequence[Any]) -> Row:
    """Names may be there twice."""
    row = Row(*values)
    row.__fields__ = list(names)
    return row


def _numbered(number: int, column: Column) -> Any:
    return column.alias(str(number))
