"""The sources of one attempt: what there is to read, and which split reads which part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path

from stagehold.errors import PositionTaken, SourceError, SourceLost, SourceMissing, SourceUnusable
from stagehold.ledger.ledger import Ledger
from stagehold.model.context import StageContext
from stagehold.model.keys.interval_text import IntervalTimes, IntervalUnfit, names_interval, of_any_interval
from stagehold.model.records import Cell
from stagehold.model.source_position import Position, SourceFile, SourcePosition, VersionsRead
from stagehold.plan.sources.incremental_positions import taken_twice
from stagehold.sources.file_intervals import FileIntervals
from stagehold.sources.freshness import Freshness, SourceAge, age_of
from stagehold.sources.source_columns import columns_of_files, columns_of_folders
from stagehold.sources.source_contents import SourceContents, contents_of
from stagehold.sources.source_files import SourceRoots
from stagehold.sources.source_reading import SourceReading, database_reading, split_files
from stagehold.sources.taken_positions import (
    PublishedPosition,
    published_of,
    told_positions,
    unfinished,
    unknown_positions,
)
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.source import Source


class Listing(Enum):
    """Whose listing of a source an attempt follows."""

    OF_RUN = "of the run"  # that of its first attempt, which all others of it follow
    OF_INTERVAL = "of the interval"  # the last one, since the partitions that are there were made from it


# What the interval of a snapshot had taken of a source, and what others had, by interval, if it comes from another
# lake: the rows of theirs that it builds on are not to be read again.
RestoredPosition = tuple[Position, Mapping[str, PublishedPosition]]


class Sources:
    """The sources of a pipeline for one interval, each listed once: what was planned is what is read.

    What an attempt deals into splits is kept in the ledger. So partitions of one source that are computed by several
    attempts, because they are shared out or healed later, are cut from the same files, and no file is in two of them or
    in none. ``stored_with`` are the stages whose commits say once more what intervals took of an incremental source.
    ``made_from`` are all that are made from such a source.
    ``restored`` are positions, by stage name, that the run begins with: incremental sources go back to them.
    ``production`` is the lake of which a sandbox reads the sources; what intervals took there counts as taken here.
    ``project`` is the folder that relative paths are seen from, ``times_of`` says when an interval begins and ends.
    ``context`` is what sources in Python are given.

    All plain sources of a run are seen at one moment, by its first attempt (`look`). All its attempts read what was
    there then; a run that is asked for anew looks anew, and so does one that goes on after it has finished.

    No data is opened. A file that is replaced between the listing and its reading is read as it is then; the next plan
    finds it changed: its split is computed again, or, if the source is incremental, refused.
    """

    def __init__(
        self,
        pipeline: str,
        interval: str,
        run_id: str,
        lake_uri: str,
        ledger: Ledger,
        *,
        stored_with: Mapping[str, tuple[Stage, ...]] | None = None,
        made_from: Mapping[str, tuple[Stage, ...]] | None = None,
        restored: Mapping[str, RestoredPosition] | None = None,
        production: str | None = None,
        project: str = "",
        times_of: Callable[[str], IntervalTimes] = IntervalTimes,
        context: Callable[[Stage], StageContext] | None = None,
    ) -> None:
        self.pipeline, self.interval, self.run_id = pipeline, interval, run_id
        self.lake_uri, self.ledger, self.production, self.project = lake_uri, ledger, production, project
        self.stored_with, self.made_from, self.restored = stored_with or {}, made_from or {}, restored or {}
        self.times_of, self.context = times_of, context
        self._settled: dict[str, tuple[SourceContents, Position]] = {}
        self._readings: dict[tuple[str, int], SourceReading] = {}

    def look(self, stages: Iterable[Stage]) -> Mapping[str, Position]:
        """Have the run see all plain sources of ``stages`` at one moment, unless it has seen some of them: what is
        recorded of them, by stage, if it is.

        A source that is not there yet, or cannot be read, is left to the attempt that needs it.
        """
        plain = [stage for stage in stages if stage.source and stage.source.dealt and not stage.source.incremental]
        if any(self.seen(stage) for stage in plain):
            return {}
        found: dict[str, tuple[SourceContents, Position]] = {}
        for stage in plain:
            with suppress(SourceError):
                contents = self._contents(stage, self._declared(stage))
                self._check(stage, contents, {})
                found[stage.name] = (contents, contents.choose({}))
        with self.ledger.together():
            for stage in plain:
                if stage.name in found:
                    contents, position = found[stage.name]
                    position = self.ledger.positions.take_for_run(self._cell(stage), self.run_id, position)
                    self._settled[stage.name] = (contents, position)
        return {name: position for name, (_, position) in self._settled.items() if name in found}

    def settle(self, stage: Stage, listing: Listing) -> Position | None:
        """Decide what the interval reads for ``stage`` before any of it is planned; None when it was decided before.

        Of an incremental source an interval takes something once, and for good, whatever ``listing`` says.

        :raises SourceMissing: there is nothing
        :raises SourceChanged: an incremental source is not what it was
        :raises SourceLost: rows that another interval took and left are gone
        """
        source = self._declared(stage)
        if not source.dealt:
            return None
        self._move_back(stage)
        if not source.incremental and stage.name in self._settled:
            return None
        taken = self._taken(stage, source) if listing is Listing.OF_INTERVAL else self._counting(stage, source)
        kept = self.interval in taken
        contents = self._contents(stage, source)
        if not kept:
            self._check(stage, contents, taken)
        position = self._kept(stage, contents, taken[self.interval]) if kept else self._take(stage, contents, listing)
        self._settled[stage.name] = (contents, position)
        return None if position == taken.get(self.interval) else position

    def take_back(self, stage: Stage) -> tuple[str, ...]:
        """Have the ledger know what intervals took of the stage, as the lake says; returns those it did not know.

        :raises LedgerBehind: the logs do not go back far enough to tell
        """
        unrecorded = self._unrecorded(stage, self.ledger.positions.taken(self.pipeline, stage.id))
        if unrecorded:
            with self.ledger.together():
                for interval, (run_id, position) in unrecorded.items():
                    cell = Cell(self.pipeline, stage.id, interval)
                    self.ledger.positions.take_back(cell, run_id, position)
        return tuple(unrecorded)

    def taken_of(self, stage: Stage) -> SourcePosition:
        """What the interval took of an incremental source; it must be settled already."""
        position = self.ledger.positions.taken_by(self._cell(stage))
        assert position is not None, f"{stage.name} was not settled"
        return SourcePosition(stage.id, position)

    def of(self, stage: Stage) -> SourceReading:
        """What there is to read for ``stage``, which has a source: what was settled, or would be.

        :raises SourceMissing: there is nothing
        :raises SourceUnusable: it cannot be read as it is declared
        """
        key = (stage.name, stage.partitions)
        if key not in self._readings:
            self._readings[key] = self._read(stage, self._declared(stage))
        return self._readings[key]

    def _move_back(self, stage: Stage) -> None:
        """Have the interval take what the run begins with, if that is something else than it has, and others what they
        had taken where that comes from, if nothing is known of them here.

        :raises PositionTaken: another interval has taken some of it.
        """
        restored = self.restored.get(stage.name)
        if restored is None:
            return
        cell, positions = self._cell(stage), self.ledger.positions
        with self.ledger.together():
            positions.take_again(cell, self.run_id, partial(_free, stage, restored[0]))
            for interval, (run_id, position) in self._others(restored):
                other = Cell(self.pipeline, stage.id, interval)
                positions.take(other, run_id, partial(_free, stage, position))

    def _others(self, restored: RestoredPosition) -> Iterator[tuple[str, PublishedPosition]]:
        return ((interval, told) for interval, told in restored[1].items() if interval != self.interval)

    def _take(self, stage: Stage, contents: SourceContents, listing: Listing) -> Position:
        cell, positions = self._cell(stage), self.ledger.positions
        if self._declared(stage).incremental or listing is Listing.OF_INTERVAL:
            return positions.take(cell, self.run_id, contents.choose)
        return positions.take_for_run(cell, self.run_id, contents.choose({}))

    def _counting(self, stage: Stage, source: Source) -> Mapping[str, Position]:
        """What intervals took before, as far as it counts for the run: of a plain source what the run has seen."""
        if source.incremental:
            return self.ledger.positions.taken(self.pipeline, stage.id)
        seen = self.seen(stage)
        return {self.interval: seen} if seen else {}

    def seen(self, stage: Stage) -> Position | None:
        """What the run has seen of a plain source, if it has looked."""
        return self.ledger.positions.seen_by(self._cell(stage), self.run_id)

    def since(self, stage: Stage) -> str | None:
        """What has become of a plain source since the run has seen it, in words; None if that makes no difference."""
        contents, position = self._settled.get(stage.name) or self._found(stage, self._declared(stage))
        return contents.since(position)

    def age(self, stage: Stage) -> SourceAge | None:
        """How old a source is whose freshness its author declares."""
        declared = stage.source
        return age_of(declared, self._roots) if declared is not None and declared.freshness else None

    def aged(self, stage: Stage) -> str | None:
        """What an interval that has nothing yet is told of the age of a source; None if that is as it should be.

        :raises SourceUnusable: it is older than its author lets it be
        """
        age = None if self.ledger.partitions.newest(self._cell(stage)) else self.age(stage)
        if age is not None and age.freshness is Freshness.TOO_OLD:
            raise SourceUnusable(stage.name, str(age), "Have newer data written there, or raise `error_after`")
        return str(age) if age is not None and age.freshness is Freshness.OLD else None

    def told(self, stage: Stage) -> str:
        """What there is to read for the stage, in words."""
        source, splits = self._declared(stage), self.of(stage).splits
        if source.gives_rows:
            return source.place
        settled = self._settled.get(stage.name)
        found = settled[0].told(settled[1]) if settled else f"{sum(len(split.files) for split in splits)} files"
        age = self.age(stage)
        return f"{found}; {age}" if age and age.freshness in (Freshness.OLD, Freshness.TOO_OLD) else found

    def _taken(self, stage: Stage, source: Source) -> Mapping[str, Position]:
        """What intervals took before; of a source that is not incremental nobody minds the others'."""
        if source.incremental:
            return self.ledger.positions.taken(self.pipeline, stage.id)
        position = self.ledger.positions.taken_by(self._cell(stage))
        return {self.interval: position} if position else {}

    def _read(self, stage: Stage, source: Source) -> SourceReading:
        if source.gives_rows:
            return database_reading(source, stage.partitions, self.run_id)
        if source.listed:
            groups = _listed(stage, source, self._roots)
            paths = sorted(file.path for files in groups for file in files)
            columns = columns_of_folders(stage.name, paths, self._roots.lake)
            mixed = columns_of_files(stage.name, source, [file for files in groups for file in files])
            splits = split_files(source, groups, columns=columns, mixed=mixed)
            return SourceReading(source, splits, sample=paths[0], columns=columns, mixed=mixed)
        contents, position = self._settled.get(stage.name) or self._found(stage, source)
        self._settled[stage.name] = (contents, position)
        return contents.reading(position, stage.partitions)

    def _found(self, stage: Stage, source: Source) -> tuple[SourceContents, Position]:
        """What settling would give, without keeping it."""
        contents = self._contents(stage, source)
        taken = self._counting(stage, source)
        taken = {
            **{interval: position for interval, (_, position) in self._unrecorded(stage, taken).items()},
            **taken,
        }
        if restored := self.restored.get(stage.name):
            return contents, self._found_restored(stage, restored, taken)
        if position := taken.get(self.interval):
            return contents, self._found_again(stage, contents, position)
        self._check(stage, contents, taken)
        return contents, contents.choose(taken)

    def _check(self, stage: Stage, contents: SourceContents, taken: Mapping[str, Position]) -> None:
        """:raises SourceLost: another interval took rows that it has not made anything from, and they are gone: whoever
        takes what comes after them would pass over them.
        """
        contents.check(taken)
        losses = [contents.lost(interval, taken[interval]) for interval in self._unfinished(stage, taken)]
        if found := [loss for loss in losses if loss]:
            raise SourceLost(stage.name, found, waiting=self.interval)

    def left_to_others(self, stage: Stage) -> tuple[str, ...]:
        """What other intervals have taken of an incremental table and not made all of their partitions from, in words:
        no later interval reads that.
        """
        taken = self._taken(stage, self._declared(stage))
        return tuple(
            f"{stage.name}: {interval} took {taken[interval]}, and has not made all of that yet; its own run reads it"
            for interval in self._unfinished(stage, taken)
        )

    def _unfinished(self, stage: Stage, taken: Mapping[str, Position]) -> tuple[str, ...]:
        others = {
            interval
            for interval, position in taken.items()
            if isinstance(position, VersionsRead) and not position.is_empty and interval != self.interval
        }
        return unfinished(self.pipeline, self.stored_with.get(stage.name, ()), others, self.ledger) if others else ()

    def _kept(self, stage: Stage, contents: SourceContents, before: Position) -> Position:
        position = self._found_again(stage, contents, before)
        if position == before:
            return before
        cell = self._cell(stage)
        return self.ledger.positions.exchange(cell, self.run_id, before, position)

    def _found_again(self, stage: Stage, contents: SourceContents, position: Position) -> Position:
        """The position in files that are dealt anew, as long as nothing that was made from the others is published."""
        found = contents.again(position)
        made = self.made_from.get(stage.name, ())
        if found == position or published_of(self.pipeline, made, self.interval, self.ledger):
            return position
        return found

    def _found_restored(self, stage: Stage, restored: RestoredPosition, taken: Mapping[str, Position]) -> Position:
        known = {interval: position for interval, position in taken.items() if interval != self.interval}
        found = _free(stage, restored[0], known)
        for interval, (_, position) in self._others(restored):
            if interval not in known:
                _free(stage, position, {self.interval: found, **known})
        return found

    def _unrecorded(self, stage: Stage, taken: Mapping[str, Position]) -> Mapping[str, PublishedPosition]:
        found: dict[str, PublishedPosition] = {}
        if self.production:
            told = told_positions(self.production, self.pipeline, stage.id)
            found |= {interval: published for interval, published in told.items() if interval not in taken}
        for lake in filter(None, (self.lake_uri, self.production)):
            for stored in self.stored_with.get(stage.name, ()):
                found |= unknown_positions(lake, self.pipeline, stored, stage, taken.keys() | found.keys())
        return found

    def _contents(self, stage: Stage, source: Source) -> SourceContents:
        if source.reader is not None:
            from stagehold.sources.python_source import PythonReader, SplitContents  # most projects have none

            assert self.context is not None, "whoever lists a source in Python has a context for it"
            return SplitContents(PythonReader(stage.name, source, Path(self.project), partial(self.context, stage)))
        declared = stage.source.path if stage.source else None
        of_any = of_any_interval(declared) if declared and names_interval(declared) else None
        intervals = None
        if source.taken is not None and declared is not None:
            intervals = FileIntervals(source.taken, declared, of_any or declared, self._roots, self.times_of)
        return contents_of(self._cell(stage), stage.name, source, self._roots, of_any=of_any, intervals=intervals)

    def _cell(self, stage: Stage) -> Cell:
        return Cell(self.pipeline, stage.id, self.interval)

    def _declared(self, stage: Stage) -> Source:
        """:raises SourceUnusable: its path names the interval, and this one cannot stand there."""
        assert stage.source is not None, f"{stage.name} has no source"
        if not stage.source.names_interval:
            return stage.source
        try:
            return stage.source.of_interval(self.times_of(self.interval))
        except IntervalUnfit as unfit:
            raise SourceUnusable(stage.name, str(unfit), "Run it with `--interval` of a day, as 2026-11-26") from unfit

    @property
    def _roots(self) -> SourceRoots:
        return SourceRoots(self.production or self.lake_uri, self.project)


def is_incremental(stage: Stage) -> bool:
    return stage.source is not None and bool(stage.source.incremental)


def _free(stage: Stage, position: Position, others: Mapping[str, Position]) -> Position:
    """:raises PositionTaken: another interval has taken some of it."""
    if interval := taken_twice(position, others):
        raise PositionTaken(stage.name, interval)
    return position


def _matching_files(stage: Stage, pattern: str, roots: SourceRoots) -> tuple[SourceFile, ...]:
    files = roots.files(pattern)
    if not files:
        raise SourceMissing(stage.name, pattern)
    return files


def _listed(stage: Stage, source: Source, roots: SourceRoots) -> tuple[tuple[SourceFile, ...], ...]:
    """The files that each split names; no file may be named by two splits."""
    groups = tuple(
        tuple(file for pattern in split for file in _matching_files(stage, pattern, roots)) for split in source.listed
    )
    owner: dict[str, int] = {}
    for number, files in enumerate(groups):
        for file in files:
            if owner.setdefault(file.path, number) != number or files.count(file) > 1:
                reason = f"{file.path} is named twice, by split {owner[file.path]} and by split {number}"
                raise SourceUnusable(stage.name, reason, "Name each file once")
    return groups
