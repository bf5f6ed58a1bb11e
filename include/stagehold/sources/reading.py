"""A source as one attempt reads it: which split reads what, and when a split counts as changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagehold.errors import SourceChanged, SourceLost
from stagehold.model.keys.compute_key import digest
from stagehold.model.source_position import FolderColumn, MixedColumns, SourceFile
from stagehold.sources.files import LAKE
from stagehold.spec.settings.source import Source, SourceKind


@dataclass(frozen=True)
class Split:
    """What one partition of a source stage reads: files, or the rows of a database that meet ``condition``.

    ``reading`` stands for everything else that decides about its rows. ``found`` are files that hold the same rows now,
    if its own are gone.
    """

    files: tuple[SourceFile, ...]
    reading: str
    condition: str | None = None
    found: tuple[SourceFile, ...] | None = None

    @property
    def read(self) -> tuple[SourceFile, ...]:
        """The files to read now."""
        return self.files if self.found is None else self.found

    def below(self, lake: str) -> Split:
        """The same split as it is called from the root of its lake, wherever that lies."""
        files = (replace(file, path=_from_root(file.path, f"{lake}/")) for file in self.files)
        return replace(self, files=tuple(files))

    @property
    def fingerprint(self) -> str:
        """Changes when what the split would read does, so it decides whether its partition is computed again."""
        files = (f"{file.path}|{file.bytes}|{file.version}|{file.partition}" for file in self.files)
        return digest((self.reading, self.condition or "", *files))


@dataclass(frozen=True)
class SourceReading:
    """All splits of a source. ``sample`` is a file with the columns of all; ``schema`` a table's columns as JSON.

    ``columns`` are those that the names of folders give to all files. ``spoiled`` says of files, by path, why they must
    not be read: they are no longer what was taken. ``mixed`` are the columns of files that do not all have the same.
    """

    source: Source
    splits: tuple[Split, ...]
    sample: str | None = None
    schema: str | None = None
    columns: tuple[FolderColumn, ...] = ()
    mixed: MixedColumns | None = None
    spoiled: Mapping[str, str] = field(default_factory=dict)

    def refuse_spoiled(self, stage: str, files: Iterable[SourceFile]) -> None:
        """:raises SourceChanged: one of them is not what was taken
        :raises SourceLost: the rows of one, of a table, are found nowhere any more
        """
        reasons = dict.fromkeys(self.spoiled[file.path] for file in files if file.path in self.spoiled)
        if reasons and self.source.kind is SourceKind.DELTA:
            raise SourceLost(stage, tuple(reasons))
        if reasons:
            raise SourceChanged(stage, tuple(reasons))


def split_files(
    source: Source,
    groups: Iterable[tuple[SourceFile, ...]],
    schema: str | None = None,
    columns: Sequence[FolderColumn] = (),
    mixed: MixedColumns | None = None,
) -> tuple[Split, ...]:
    """One split for each group of files. A column that is new or of another type changes them all, so that they stay
    alike.
    """
    fields = (repr(mixed.fields),) if mixed else ()
    reading = digest((how_rows_are_read(source), schema or "", *map(repr, columns), *fields))
    return tuple(Split(files, reading) for files in groups)


def _from_root(path: str, lake: str) -> str:
    return f"{LAKE}/{path.removeprefix(lake)}" if path.startswith(lake) else path


def how_rows_are_read(source: Source) -> str:
    """What is declared about reading rows, whichever they are."""
    return repr((source.kind, source.ddl, source.header, source.delimiter, sorted(source.options.items())))
