"""The sources of one attempt: what there is to read, and which split each part of it is in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stagehold.errors import SourceMissing, SourceUnusable
from stagehold.ledger.ledger import Ledger
from stagehold.model.compute_key import digest
from stagehold.model.records import Cell
from stagehold.model.source_file import SourceFile
from stagehold.model.source_position import Position
from stagehold.model.spec import Stage
from stagehold.model.spec_source import Reread, Source, SourceKind
from stagehold.plan.source_ranges import range_conditions
from stagehold.plan.source_splits import deal
from stagehold.run.source_delta import TableFiles, files_added, files_of_version, newest_version
from stagehold.run.source_files import find_files, in_lake
from stagehold.run.source_increments import increment_of
from stagehold.run.source_reading import SourceReading, Split, how_rows_are_read, split_files


@dataclass(frozen=True)
class Sources:
    """The sources of a pipeline for one interval, each listed once, when first asked for: what was planned is what is read.

    No data is opened. A file that is replaced between the listing and its reading is read as it is then; the next plan finds
    it changed: its split is computed again, or, if the source is incremental, refused.
    """

    pipeline: str
    interval: str
    run_id: str
    lake_uri: str
    ledger: Ledger
    _readings: dict[str, SourceReading] = field(default_factory=dict)

    def take(self, stage: Stage) -> Position | None:
        """Let the interval take what is new of an incremental source, for good; None when it has done so before.

        :raises SourceMissing: there is nothing, and never was
        :raises SourceChanged: what was read before is not what it was
        """
        taken = self.ledger.positions.taken(self.pipeline, stage.id)
        if self.interval in taken:
            return None
        increment = increment_of(stage.name, _declared(stage), self.lake_uri)
        increment.check(taken)
        return self.ledger.positions.take(Cell(self.pipeline, stage.id, self.interval), self.run_id, increment.choose)

    def of(self, stage: Stage) -> SourceReading:
        """What there is to read for ``stage``, which has a source; of an incremental one, what the interval took or would take.

        :raises SourceMissing: there is nothing: an empty input is almost always a path gone wrong
        :raises SourceUnusable: it cannot be read as it is declared
        """
        if stage.name not in self._readings:
            self._readings[stage.name] = self._read(stage, _declared(stage))
        return self._readings[stage.name]

    def _read(self, stage: Stage, source: Source) -> SourceReading:
        if source.incremental:
            return self._increment(stage, source)
        if source.kind is SourceKind.JDBC:
            return _database(source, self.run_id)
        if source.kind is SourceKind.DELTA:
            return _table(stage, source, self.lake_uri)
        groups = (
            _listed(stage, source, self.lake_uri) if source.listed else deal(_matching(stage, source.path, self.lake_uri), source.count)
        )
        return SourceReading(source, split_files(source, groups), sample=min(file.path for files in groups for file in files))

    def _increment(self, stage: Stage, source: Source) -> SourceReading:
        increment = increment_of(stage.name, source, self.lake_uri)
        taken = self.ledger.positions.taken(self.pipeline, stage.id)
        if self.interval not in taken:
            increment.check(taken)
        return increment.reading(taken.get(self.interval) or increment.choose(taken))


def _declared(stage: Stage) -> Source:
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
    table = _table_files(stage, source, in_lake(source.path or "", lake_uri))
    return SourceReading(source, split_files(source, deal(table.files, source.count), table.schema), schema=table.schema)


def _table_files(stage: Stage, source: Source, uri: str) -> TableFiles:
    if source.from_version is None:
        return files_of_version(stage.name, uri, source.version)
    last = newest_version(stage.name, uri) if source.to_version is None else source.to_version
    return files_added(stage.name, uri, source.from_version, last, skip_changes=source.skips_changes)


def _database(source: Source, run_id: str) -> SourceReading:
    """A database has no file whose change could be seen, so what was read counts for the interval, or for the run."""
    reading = digest((how_rows_are_read(source), source.place, run_id if source.reread is Reread.RUN else ""))
    return SourceReading(source, tuple(Split((), reading, condition) for condition in _conditions(source)))


def _conditions(source: Source) -> Iterable[str]:
    if source.listed:
        return (" and ".join(f"({text})" for text in split) for split in source.listed)
    if source.column is None or source.lower is None or source.upper is None:
        return ("1 = 1",)
    return range_conditions(source.column, source.lower, source.upper, source.count)
