"""Sources as one attempt reads them: what there is to read, and which split each part of it is in.

A split's fingerprint changes when what it would read does, so it is what decides whether a partition is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.errors import SourceMissing, SourceUnusable
from stagehold.model.compute_key import digest
from stagehold.model.source_file import SourceFile
from stagehold.model.spec import Stage
from stagehold.model.spec_source import Reread, Source, SourceKind
from stagehold.plan.source_ranges import range_conditions
from stagehold.plan.source_splits import deal
from stagehold.run.source_delta import TableFiles, files_added, files_of_version, newest_version
from stagehold.run.source_files import find_files, in_lake


@dataclass(frozen=True)
class Split:
    """What one partition of a source stage reads: files, perhaps none, or the rows of a database that meet ``condition``.

    ``reading`` stands for everything else that decides about its rows.
    """

    files: tuple[SourceFile, ...]
    reading: str
    condition: str | None = None

    @property
    def fingerprint(self) -> str:
        files = (f"{file.path}|{file.bytes}|{file.version}|{file.partition}" for file in self.files)
        return digest((self.reading, self.condition or "", *files))


@dataclass(frozen=True)
class SourceReading:
    """All splits of a source. ``sample`` is a file that has the columns of all; ``schema`` gives a table's columns as JSON."""

    source: Source
    splits: tuple[Split, ...]
    sample: str | None = None
    schema: str | None = None


class Sources:
    """The sources of one attempt: each is listed once, when first asked for, so that what was planned is what is read.

    No data is opened. A file that is replaced between the listing and its reading is read as it is then; the next plan finds
    it changed and computes its split again.
    """

    def __init__(self, lake_uri: str, run_id: str) -> None:
        self._lake_uri, self._run_id = lake_uri, run_id
        self._readings: dict[str, SourceReading] = {}

    def of(self, stage: Stage) -> SourceReading:
        """What there is to read for ``stage``, which has a source.

        :raises SourceMissing: there is nothing: an empty input is almost always a path gone wrong
        :raises SourceUnusable: it cannot be read as it is declared
        """
        if stage.name not in self._readings:
            self._readings[stage.name] = self._read(stage, declared_source(stage))
        return self._readings[stage.name]

    def _read(self, stage: Stage, source: Source) -> SourceReading:
        if source.kind is SourceKind.JDBC:
            return _database(source, self._run_id)
        if source.kind is SourceKind.DELTA:
            return _table(stage, source, self._lake_uri)
        groups = (
            _listed(stage, source, self._lake_uri) if source.listed else deal(_matching(stage, source.path, self._lake_uri), source.count)
        )
        return _reading(source, groups, sample=min(file.path for files in groups for file in files))


def declared_source(stage: Stage) -> Source:
    assert stage.source is not None, f"{stage.name} has no source"
    return stage.source


def _matching(stage: Stage, pattern: str | None, lake_uri: str) -> tuple[SourceFile, ...]:
    assert pattern is not None, "the loader wants a path"
    files = find_files(pattern, lake_uri)
    if not files:
        raise SourceMissing(stage.name, pattern)
    return files


def _listed(stage: Stage, source: Source, lake_uri: str) -> tuple[tuple[SourceFile, ...], ...]:
    """The files that each split names; none may be named by two."""
    groups = tuple(tuple(file for pattern in split for file in _matching(stage, pattern, lake_uri)) for split in source.listed)
    owner: dict[str, int] = {}
    for number, files in enumerate(groups):
        for file in files:
            if owner.setdefault(file.path, number) != number or files.count(file) > 1:
                reason = f"{file.path} is named twice, by split {owner[file.path]} and by split {number}"
                raise SourceUnusable(stage.name, reason, "Name each file once")
    return groups


def _table(stage: Stage, source: Source, lake_uri: str) -> SourceReading:
    uri = in_lake(source.path or "", lake_uri)
    table = _table_files(stage, source, uri)
    return _reading(source, deal(table.files, source.count), schema=table.schema)


def _table_files(stage: Stage, source: Source, uri: str) -> TableFiles:
    if source.from_version is None:
        return files_of_version(stage.name, uri, source.version)
    last = newest_version(stage.name, uri) if source.to_version is None else source.to_version
    return files_added(stage.name, uri, source.from_version, last, skip_changes=source.skips_changes)


def _database(source: Source, run_id: str) -> SourceReading:
    """A database has no file whose change could be seen, so what was read counts for the interval, or for the run."""
    reading = digest((_declared(source), source.place, run_id if source.reread is Reread.RUN else ""))
    return SourceReading(source, tuple(Split((), reading, condition) for condition in _conditions(source)))


def _conditions(source: Source) -> Iterable[str]:
    if source.listed:
        return (" and ".join(f"({text})" for text in split) for split in source.listed)
    if source.column is None or source.lower is None or source.upper is None:
        return ("1 = 1",)
    return range_conditions(source.column, source.lower, source.upper, source.count)


def _reading(
    source: Source, groups: Iterable[tuple[SourceFile, ...]], *, sample: str | None = None, schema: str | None = None
) -> SourceReading:
    reading = digest((_declared(source), schema or ""))
    return SourceReading(source, tuple(Split(files, reading) for files in groups), sample, schema)


def _declared(source: Source) -> str:
    """What is declared about how rows are read, whichever they are."""
    return repr((source.kind, source.ddl, source.header, source.delimiter, sorted(source.options.items())))
