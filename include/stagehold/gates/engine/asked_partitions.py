"""Asks Spark for frames of many partitions, once for all partitions and in few queries; and calls a function once for
all partitions that look the same to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.connect.column import Column
from pyspark.sql.types import Row

from stagehold.errors import StageholdError
from stagehold.gates.engine.internals import alias_of
from stagehold.lake.store.columns import quoted
from stagehold.model.records import FailureClass
from stagehold.plan.restart.rules import ANYTHING, diagnose

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from stagehold.gates.engine.grouped_frame import GroupedFrame

TASK_FAILED = "Job aborted due to stage failure"
AT_ONCE = 200  # aggregates in a query; Spark does not compile a query with thousands
Steps = tuple[Any, ...]  # operations on a frame, with their arguments
Answers = Mapping[int, list[Row]]


@dataclass(frozen=True)
class Totals:
    """What a frame with one row for each partition is made of. ``of`` are the steps of ``rows``; aggregates with the
    same ``apart`` can share a query.
    """

    rows: DataFrame
    of: Steps
    columns: tuple[Column, ...]
    apart: Any = None


@dataclass(frozen=True)
class Look:
    """A value that a function looked at; ``told`` is that value for each partition."""

    at: Any
    told: Callable[[int], Any] = field(compare=False)


class Awaited(Exception):
    """The value is asked together with what others ask for; ask again after that."""


class AskedPartitions:
    """The partitions of a frame, and the one that is looked at: the first until somebody looks at another."""

    def __init__(self, column: str, numbers: Sequence[int], hidden: frozenset[str] = frozenset()) -> None:
        """:param hidden: columns of the frame that its user does not see."""
        self.column, self.numbers, self.hidden = column, numbers, hidden
        self.looked_at = numbers[0]
        self.answers: dict[Steps, Answers | Exception] = {}  # answers of Spark, by the steps of the frame
        self.wanted: dict[Steps, GroupedFrame] = {}  # frames that the next query asks for
        self.seen: list[Look | None] = []  # what was looked at; None if it is known of no other partition
        self.found: dict[Steps, Mapping[int, Any]] = {}  # results that follow from answers
        self.queries = 0

    def want(self, frame: GroupedFrame) -> None:
        """Have these aggregates asked with the next `ask_wanted`."""
        if frame.steps not in self.answers:
            self.wanted[frame.steps] = frame

    def rows(self, frame: GroupedFrame, partition: int) -> list[Row]:
        """The rows of one partition.

        :raises Awaited: the next `ask_wanted` asks for them.
        """
        answer = self.each(frame)
        self.seen.append(Look(frame.steps, lambda number: answer.get(number, [])))
        return answer.get(partition, [])

    def each(self, frame: GroupedFrame) -> Answers:
        """The rows of every partition that has rows.

        :raises Awaited: the next `ask_wanted` asks for them.
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
        """What ``find`` finds for the partition that is looked at. The first call finds it for all of them."""
        if steps not in self.found:
            self.found[steps] = find()
        self.seen.append(Look(steps, self.found[steps].__getitem__))
        return self.found[steps][self.looked_at]

    def among(self, numbers: Sequence[int]) -> AskedPartitions:
        """Some of the partitions, with all that is known of all partitions so far. What they find is theirs alone."""
        some = AskedPartitions(self.column, numbers, self.hidden)
        some.answers, some.found = dict(self.answers), dict(self.found)
        return some

    @contextmanager
    def noting(self) -> Iterator[list[Look | None]]:
        """Note what is looked at in the block."""
        before, self.seen, looking_at = self.seen, [], self.looked_at
        try:
            yield self.seen
        finally:
            self.seen, self.looked_at = before, looking_at

    def ask_wanted(self) -> None:
        """Ask for all that is wanted: all aggregates of the same rows in one query, or a few if there are very many."""
        together: dict[Any, list[GroupedFrame]] = {}
        for frame in self.wanted.values():
            if frame.totals:
                together.setdefault((frame.totals.of, frame.totals.apart), []).append(frame)
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
        """Ask for each aggregate by itself, so that it is known which of them fails."""
        for frame in wanted:
            try:
                self._ask([frame])
            except Exception as error:  # noqa: BLE001 - raised for who asks for it
                require_of_suite(error)
                self.answers[frame.steps] = error

    def _ask(self, wanted: Sequence[GroupedFrame]) -> None:
        totals = [frame.totals for frame in wanted if frame.totals]
        columns = [column for total in totals for column in total.columns]
        found = self._totals(totals[0].rows, [_numbered(*pair) for pair in enumerate(columns)])
        start = 0
        for frame, total in zip(wanted, totals, strict=True):
            own = slice(start, start := start + len(total.columns))
            names = [alias_of(column) or str(number) for number, column in enumerate(total.columns)]
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
    """A row in which two columns may have the same name."""
    row = Row(*values)
    row.__fields__ = list(names)
    return row


def _numbered(number: int, column: Column) -> Any:
    return column.alias(str(number))


def require_of_suite(error: Exception) -> None:
    """Accept an error that says that an expectation cannot be judged: it would come again with every try.

    :raises Exception: the error itself, if the server, an executor, the store or a cancellation is to blame.
    """
    if isinstance(error, PySparkException):
        found = diagnose(error)
        of_a_row = found.rule.name == ANYTHING and TASK_FAILED in str(error)  # as a pattern that cannot be compiled is
        of_suite = found.kind is FailureClass.NON_RECOVERABLE or of_a_row
    else:
        of_suite = not isinstance(error, StageholdError | OSError | MemoryError)
    if not of_suite:
        raise error


class Calls:
    """The calls of one function for partitions. The function is not ours, and slow; its answer for a partition follows
    from what it looks at. It is called once for all partitions that look the same to it.

    Great Expectations takes milliseconds for each metric and verdict, and most of a thousand partitions are alike: none
    of them has an unexpected value.
    """

    def __init__(self, partitions: AskedPartitions, function: Callable[[int], Any]) -> None:
        self._partitions, self._function = partitions, function
        self._answers: dict[tuple[Look, ...], dict[str, Any]] = {}
        self.looked = False

    def answer(self, partition: int) -> Any:
        for looks, answers in self._answers.items():
            told = _seen_as_text(looks, partition)
            if told in answers:
                return answers[told]
        return self._call(partition)

    def _call(self, partition: int) -> Any:
        with self._partitions.noting() as seen:
            self._partitions.looked_at = partition
            answer = self._function(partition)
        self.looked = self.looked or bool(seen)
        looks = tuple(look for look in dict.fromkeys(seen) if look is not None)
        if None not in seen:
            self._answers.setdefault(looks, {})[_seen_as_text(looks, partition)] = answer
        return answer


def _seen_as_text(looks: Sequence[Look], partition: int) -> str:
    """What these looks show of a partition, as a text in which equal numbers of different types differ."""
    return repr([look.told(partition) for look in looks])
