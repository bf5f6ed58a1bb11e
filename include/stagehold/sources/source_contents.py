"""Sources that are dealt into splits: what a source holds, what an interval takes of it, and how that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Protocol

from stagehold.code.sql_slice import Slice, value_of
from stagehold.errors import SourceChanged, SourceLost, SourceMissing, SourceUnusable
from stagehold.model.keys.interval_text import IntervalUnfit
from stagehold.model.records import Cell
from stagehold.model.source_position import (
    FilesFound,
    FilesRead,
    FolderColumn,
    Position,
    SourceFile,
    VersionsRead,
)
from stagehold.plan.sources.folders import folder_values
from stagehold.plan.sources.incremental_positions import (
    changes_since,
    due_files,
    last_version,
    new_files,
    new_versions,
)
from stagehold.plan.sources.splits import deal
from stagehold.sources.delta import (
    TableFiles,
    below_table,
    deleted_at,
    files_added,
    files_of_version,
    gone_files,
    in_table,
    newest_version,
    schema_now,
    slice_of,
)
from stagehold.sources.file_intervals import FileIntervals, FileUnplaced
from stagehold.sources.row_lineage import RowsLost, Whereabouts
from stagehold.sources.source_columns import columns_of_files, columns_of_folders, types_of_files
from stagehold.sources.source_files import SourceRoots
from stagehold.sources.source_reading import SourceReading, Split, split_files
from stagehold.spec.settings.source import Source, SourceKind

Taken = Mapping[str, Position]  # by interval
OF_WHICH = ", of which no file can have rows where "
LOOK_ANEW = "; all that a run reads it has seen at its beginning, and a new run sees what is there now"


class SourceContents(Protocol):
    """A source as it is now. Only an incremental one considers what other intervals have ``taken``."""

    def check(self, taken: Taken) -> None:
        """Refuse to take anything of what cannot be read as it is declared.

        :raises SourceMissing: there is nothing: an empty input is almost always a path gone wrong
        :raises SourceChanged: what was taken is not what it was, so that rows would be lost or read twice
        """

    def choose(self, taken: Taken) -> Position:
        """What an interval takes that has taken nothing yet."""

    def again(self, position: Position) -> Position:
        """The position of the same rows in the files that hold them now, if those they were taken with are gone, and
        all are found.
        """

    def lost(self, interval: str, position: Position) -> str | None:
        """What of an interval's rows can be read nowhere any more, why, and the way out; None if all can."""

    def since(self, position: Position) -> str | None:
        """What has become of a plain source since a run has seen it, in words; None if nothing has."""

    def told(self, position: Position) -> str:
        """What an interval took, in words."""

    def reading(self, position: Position, count: int) -> SourceReading:
        """What an interval took, in ``count`` splits."""


def contents_of(
    reader: Cell,
    stage: str,
    source: Source,
    roots: SourceRoots,
    *,
    of_any: str | None = None,
    intervals: FileIntervals | None = None,
) -> SourceContents:
    """What there is of a source now.

    :param reader: the interval that reads it.
    :param of_any: a pattern of the files of all intervals, which show the columns where this one has no file
    :param intervals: which interval a file belongs to, where something says so
    """
    place = intervals.files if intervals else source.path or ""
    if source.kind is SourceKind.DELTA:
        uri = roots.address(place)
        return TableContents(reader, stage, source, uri=uri, newest=newest_version(stage, uri))
    listed = roots.files(place)
    examples = listed or (roots.files(of_any) if of_any and not source.fails_if_missing else ())
    return FileContents(
        reader, stage, source, listed=listed, examples=examples, lake_uri=roots.lake, intervals=intervals
    )


class FileContents:
    """Files as they are ``listed`` now; ``examples`` show the columns, even when nothing is listed."""

    def __init__(
        self,
        reader: Cell,
        stage: str,
        source: Source,
        *,
        listed: tuple[SourceFile, ...],
        examples: tuple[SourceFile, ...],
        lake_uri: str,
        intervals: FileIntervals | None = None,
    ) -> None:
        self.reader, self.stage, self.source, self.intervals = reader, stage, source, intervals
        self.listed, self.examples, self.lake_uri = listed, examples, lake_uri

    def check(self, taken: Taken) -> None:
        if not self._wanted and self.source.fails_if_missing and not (taken and self.source.incremental):
            which = f"{OF_WHICH}{self.source.where}" if self.listed else ""
            raise SourceMissing(self.stage, f"{self.source.path}{which}")
        if self.source.incremental:
            _check_kind(self.stage, taken, FilesRead)
            changes = [
                change
                for interval, position in taken.items()
                for change in self._changes(self.listed, interval, position)
            ]
            if changes:
                raise SourceChanged(self.stage, changes)
        self._columns(taken)
        new = self._new(taken).files if self.source.incremental else self._wanted
        columns_of_files(self.stage, self.source, new)  # so that `choose` has nothing to read

    def choose(self, taken: Taken) -> Position:
        chosen = self._new(taken) if self.source.incremental else FilesRead(self._wanted)
        return replace(
            chosen,
            columns=self._columns(taken),
            mixed=columns_of_files(self.stage, self.source, chosen.files),
        )

    def _new(self, taken: Taken) -> FilesRead:
        """What nobody has taken, as far as it is for this interval.

        :raises SourceUnusable: it is not known which interval a file belongs to
        """
        new = new_files(self.listed, taken.values())
        if self.intervals is None:
            return new
        interval = self.reader.interval
        try:
            earlier = self.intervals.earlier(interval, taken)
            return due_files(new, interval, earlier, self.intervals.belonging())
        except IntervalUnfit as unfit:
            raise SourceUnusable(self.stage, str(unfit), "Run it with `--interval` of a day, as 2026-11-26") from unfit
        except FileUnplaced as unplaced:
            raise SourceUnusable(self.stage, str(unplaced), "Move it away, or declare another column") from unplaced

    @cached_property
    def _wanted(self) -> tuple[SourceFile, ...]:
        """The files that may have rows of the slice, by the names of their folders."""
        if self._slice is None:
            return self.listed
        return tuple(file for file in self.listed if self._slice.may_have(partial(self._span, file)))

    @cached_property
    def _slice(self) -> Slice | None:
        if self.source.where is None or not self.examples:
            return None
        return slice_of(self.stage, self.source.where, self._types)

    @cached_property
    def _types(self) -> dict[str, str]:
        """The types of columns. Types of folders count where a file has such a column, too."""
        of_folders = {column.name: column.type for column in self._columns({})}
        fields = types_of_files(self.examples)
        taken = {name.lower() for name in of_folders}
        return {**{name: kind for name, kind in fields.items() if name.lower() not in taken}, **of_folders}

    def _span(self, file: SourceFile, column: str) -> tuple[object, object] | None:
        text = folder_values(file.path, self.lake_uri).get(column)
        value = None if text is None else value_of(self._types[column], text)
        return None if value is None else (value, value)

    def again(self, position: Position) -> Position:
        return position

    def lost(self, interval: str, position: Position) -> str | None:  # noqa: ARG002
        return None

    def since(self, position: Position) -> str | None:
        seen = {file.path: file for file in position.files} if isinstance(position, FilesRead) else {}
        now = {file.path: file for file in self._wanted}
        came = now.keys() - seen.keys()
        changed = [path for path, file in seen.items() if path in now and now[path] != file]
        gone = seen.keys() - now.keys()
        told = (
            f"{len(came)} came, which it does not read" if came else "",
            f"{len(changed)} changed, which it reads as they are now" if changed else "",
            f"{len(gone)} went" if gone else "",
        )
        return f"of its files {', '.join(filter(None, told))}" if any(told) else None

    def told(self, position: Position) -> str:
        if self.intervals is None or not isinstance(position, FilesRead):
            return str(position)
        belongs, interval = self.intervals.belonging(), self.reader.interval
        late = sum(not belongs(file, interval) for file in position.files)
        return f"{position}, {late} of them late" if late else str(position)

    def _changes(self, listed: Sequence[SourceFile], interval: str, position: Position) -> list[str]:
        """What an interval took and is no longer as it was, with the way out; nothing where changes do not matter."""
        found = () if self.source.skips_changes else changes_since(listed, [position])
        return [f"{change}{self._how_to_retake(interval)}" for change in found]

    def _how_to_retake(self, interval: str) -> str:
        if not self.source.incremental:
            return ""
        command = _retake(self.stage, self.reader.pipeline, interval)
        return f"; interval {interval} took it. If nothing of that is published, `{command}` takes it as it is now"

    def _columns(self, taken: Taken) -> tuple[FolderColumn, ...]:
        """What the folders say of all files, also of those that other intervals took and that are gone since."""
        before = (file for position in taken.values() if isinstance(position, FilesRead) for file in position.files)
        files = dict.fromkeys(file.path for file in (*self.examples, *(before if self.source.incremental else ())))
        return columns_of_folders(self.stage, files, self.lake_uri)

    def reading(self, position: Position, count: int) -> SourceReading:
        """What was taken is dealt as it was then.

        A file that changed since is read as it is now, which changes its split; if the source is incremental, it spoils
        its split.
        """
        if not isinstance(position, FilesRead):
            raise _of_another_kind(self.stage)
        now = {file.path: file for file in self.listed}
        kept = self.source.incremental
        files = position.files if kept else tuple(now.get(file.path, file) for file in position.files)
        there = [*(file for file in position.files if file.path in now), *self.examples]
        sample = there[0].path if there else None
        interval = self.reader.interval
        spoiled = {
            file.path: f"{file.path} was taken to be read, and is gone{self._how_to_retake(interval) or LOOK_ANEW}"
            for file in files
            if file.path not in now
        }
        if kept:
            changed = [now[file.path] for file in files if file.path in now and now[file.path] != file]
            spoiled |= dict(
                zip((file.path for file in changed), self._changes(changed, interval, position), strict=False)
            )
        condition = self._slice.condition if self._slice else None
        columns, mixed = position.columns, position.mixed
        splits = split_files(self.source, deal(files, count), columns=columns, mixed=mixed, condition=condition)
        return SourceReading(
            self.source, splits, sample, columns=columns, mixed=mixed, spoiled=spoiled, condition=condition
        )


class TableContents:
    """A Delta table whose present version is ``newest``."""

    def __init__(self, reader: Cell, stage: str, source: Source, *, uri: str, newest: int) -> None:
        self.reader, self.stage, self.source, self.uri, self.newest = reader, stage, source, uri, newest

    def check(self, taken: Taken) -> None:
        if self.source.incremental:
            _check_kind(self.stage, taken, VersionsRead)
            last = last_version(taken.values())
            if last is not None and self.newest < last and not self.source.skips_changes:
                raise SourceChanged(
                    self.stage,
                    [f"{self.uri} was read up to version {last}, and now has {self.newest}: it was made anew"],
                )
        if not self._files(self._choose(taken)).files and self.source.where and self.source.fails_if_missing:
            raise SourceMissing(self.stage, f"{self.source.path}{OF_WHICH}{self.source.where}")

    def choose(self, taken: Taken) -> Position:
        return self._choose(taken)

    def again(self, position: Position) -> Position:
        if not self.source.incremental or not isinstance(position, VersionsRead):
            return position
        with suppress(SourceUnusable, RowsLost):
            taken = self._files(position).files
            if gone_files(self.uri, taken):
                files = tuple(below_table(self.uri, file) for file in self._whereabouts(position, taken).of(taken))
                return replace(position, found=FilesFound(self.newest, files, schema_now(self.stage, self.uri)))
        return position

    def since(self, position: Position) -> str | None:
        if not isinstance(position, VersionsRead) or position == self._choose({}):
            return None
        return f"the table came to version {self.newest}, which it does not read"

    def told(self, position: Position) -> str:
        return str(position)

    def lost(self, interval: str, position: Position) -> str | None:
        if not isinstance(position, VersionsRead) or position.is_empty or self.again(position) != position:
            return None
        try:
            taken = self._files(position).files
            if gone_files(self.uri, taken):
                self._whereabouts(position, taken).of(taken)
        except (RowsLost, SourceUnusable) as lost:
            reason = lost.reason if isinstance(lost, SourceUnusable) else str(lost)
            return self._loss(interval, position, reason)
        return None

    def reading(self, position: Position, count: int) -> SourceReading:
        if not isinstance(position, VersionsRead):
            raise _of_another_kind(self.stage)
        table = self._taken_files(position) if self.source.incremental else self._files(position)
        splits = split_files(self.source, deal(table.files, count), table.schema, condition=table.condition)
        of_now = not self.source.incremental and position == self._choose({})
        read = partial(
            SourceReading, self.source, schema=table.schema, condition=table.condition, deleted=table.deleted
        )
        gone = frozenset[SourceFile]() if of_now else frozenset(gone_files(self.uri, table.files))
        if not gone or not self.source.incremental:
            spoiled = {file.path: f"{file.path} of {position} is gone{LOOK_ANEW}" for file in gone}
            return read(splits, spoiled=spoiled)
        where, spoiled = self._whereabouts(position, table.files), {}
        found = tuple(
            self._found(split, where, spoiled) if gone.intersection(split.files) else split for split in splits
        )
        return read(found, spoiled=spoiled)

    def _found(self, split: Split, where: Whereabouts, spoiled: dict[str, str]) -> Split:
        """The split with the files that have its rows now; what is lost is noted in ``spoiled``."""
        try:
            return replace(split, found=where.of(split.files))
        except RowsLost as lost:
            loss = self._loss(self.reader.interval, where.position, str(lost))
            spoiled |= dict.fromkeys((file.path for file in split.files), loss)
            return split

    def _whereabouts(self, position: VersionsRead, taken: tuple[SourceFile, ...]) -> Whereabouts:
        return Whereabouts(self.uri, position, self.newest, taken)

    def _loss(self, interval: str, position: VersionsRead, why: str) -> str:
        command = _retake(self.stage, self.reader.pipeline, interval)
        return (
            f"interval {interval} took {position.versions} of {self.uri}, and files of that are gone: {why}. "
            f"`{command} --from-version {position.first}` takes what is there now, without what other intervals "
            f"published; if some of it is published, `stagehold intervals delete {self.reader.pipeline} '{interval}'` "
            "comes first"
        )

    def _choose(self, taken: Taken) -> VersionsRead:
        if (source := self.source).incremental:
            return new_versions(self.newest, taken.values())
        if source.from_version is None:
            return VersionsRead(None, self.newest if source.version is None else source.version)
        return VersionsRead(source.from_version - 1, self.newest if source.to_version is None else source.to_version)

    def _taken_files(self, position: VersionsRead) -> TableFiles:
        """:raises SourceLost: the log has forgotten which files they were"""
        try:
            return self._files(position)
        except SourceUnusable as error:
            raise SourceLost(self.stage, [self._loss(self.reader.interval, position, error.reason)]) from error

    def _files(self, position: VersionsRead) -> TableFiles:
        if found := position.found:
            files = tuple(in_table(self.uri, file) for file in found.files)
            deleted = deleted_at(self.stage, self.uri, found.at) if any(file.version for file in files) else {}
            return TableFiles(found.at, found.schema, files, deleted=deleted)
        if position.after is None:
            return files_of_version(self.stage, self.uri, position.version, self.source.where)
        skip = self.source.skips_changes
        return files_added(self.stage, self.uri, position.after + 1, position.version, skip_changes=skip)


def _retake(stage: str, pipeline: str, interval: str) -> str:
    return f"stagehold source retake {stage} --pipeline {pipeline} --interval '{interval}'"


def _check_kind(stage: str, taken: Taken, kind: type[Position]) -> None:
    if not all(isinstance(position, kind) for position in taken.values()):
        raise _of_another_kind(stage)


def _of_another_kind(stage: str) -> SourceUnusable:
    reason = "its earlier intervals read files where there is a table now, or the other way round"
    return SourceUnusable(stage, reason, "Give the stage a name and a uid that it did not have before")
