"""Which interval a file of an incremental source belongs to: by its path, by a column, or by when it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from stagehold.model.keys.interval_text import IntervalTimes, of_interval
from stagehold.model.source_position import SourceFile
from stagehold.plan.sources.folders import folder_values
from stagehold.sources.source_files import SourceRoots, arrivals, greatest_of
from stagehold.spec.settings.source import IncrementalForm, TakenBy


@dataclass(frozen=True)
class FileIntervals:
    """``pattern`` is the source's path as it is declared, ``files`` a pattern of the files of all intervals, and
    ``times`` says when an interval begins and ends.
    """

    taken: IncrementalForm
    pattern: str
    files: str
    roots: SourceRoots
    times: Callable[[str], IntervalTimes]

    def earlier(self, interval: str, others: Mapping[str, object]) -> list[str]:
        """Those of ``others`` that begin before the interval, newest first.

        :raises IntervalUnfit: the interval is no date.
        """
        start, known = self.times(interval).edge("start"), {other: self.times(other).start for other in others}
        before = [(begin, other) for other, begin in known.items() if begin and begin < start]
        return [other for _, other in sorted(before, reverse=True)]

    def belonging(self) -> Callable[[SourceFile, str], bool]:
        """Whether a file belongs to an interval, as files are now.

        :raises IntervalUnfit: when it is asked of an interval without a beginning or an end
        :raises FileUnplaced: when it is asked of a file without a value
        """
        if self.taken.by is TakenBy.PATH:
            return lambda file, interval: self.roots.means(of_interval(self.pattern, self.times(interval)), file.path)
        if self.taken.by is TakenBy.ARRIVAL:
            came = arrivals(self.files, self.roots.lake, self.roots.project)
            return lambda file, interval: file.path in came and _within(came[file.path], self.times(interval))
        return lambda file, interval: _within(self._value(file), self.times(interval))

    def _value(self, file: SourceFile) -> date | datetime | None:
        """:raises FileUnplaced: it has none"""
        column = str(self.taken.column)
        text = folder_values(file.path, self.roots.lake).get(column)
        try:
            return greatest_of(file, column) if text is None else _written(text)
        except LookupError as error:
            raise FileUnplaced(f"{file.path} has no day or moment {column}, in folders or statistics") from error


class FileUnplaced(ValueError):
    """Nobody knows which interval a file belongs to."""


def _written(text: str) -> date | datetime:
    """:raises LookupError: it is neither a day nor a moment"""
    for read in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text)
    raise LookupError(text)


def _within(value: date | datetime | None, times: IntervalTimes) -> bool:
    """A day belongs to the interval that begins on it, or before it and ends later; a file without rows to any."""
    if value is None:
        return True
    start, end = times.edge("start"), times.edge("end")
    if isinstance(value, datetime):
        return start <= (value if value.tzinfo else value.replace(tzinfo=UTC)) < end
    return start.date() <= value < max(end.date(), start.date() + timedelta(days=1))
