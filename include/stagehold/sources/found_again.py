"""Finds the rows that an interval took of a Delta table again, after the files that held them are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.lake.commit.delta_log import commit_versions, read_commits
from stagehold.model.source_position import SourceFile, VersionsRead
from stagehold.sources.delta import below_table, gone_files, in_table
from stagehold.sources.lineage import Block, Lineage


class RowsLost(Exception):
    """Rows that cannot be told from others any more, or are not there; the text says why."""


@dataclass(frozen=True)
class Whereabouts:
    """Of the rows in the files that an interval had ``taken`` of the table at ``uri``, which has a ``newest`` version.

    Only what a rewrite left by themselves is found: where it put them into one file with rows of others, nothing tells
    them apart, and taking that file would repeat the others.
    """

    uri: str
    position: VersionsRead
    newest: int
    taken: tuple[SourceFile, ...]

    def of(self, files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
        """The files that hold the rows of these, which are taken ones, and no others.

        :raises RowsLost: there are none
        """
        wanted = {below_table(self.uri, file).path for file in files}
        blocks = self._lineage.holding(wanted)
        for block in blocks:
            self._refuse(block, wanted)
        found = [self._file(path) for block in blocks for path in block.files]
        if gone := gone_files(self.uri, found):
            raise RowsLost(f"{gone[0].path}, which has some of their rows, is gone as well")
        return tuple(sorted(found))

    def _refuse(self, block: Block, wanted: set[str]) -> None:
        if block.changed:
            raise RowsLost("a later version removed or replaced some of their rows")
        if not block.origins <= wanted:
            place = min(block.files, default="a file that is gone")
            raise RowsLost(f"a later version wrote them into one file with rows that are not its own ({place})")

    def _file(self, path: str) -> SourceFile:
        added = self._lineage.added.get(path)
        if added is None:
            return next(file for file in self.taken if below_table(self.uri, file).path == path)
        return in_table(self.uri, SourceFile(path, added.file.bytes, "", tuple(added.partition.items())))

    @cached_property
    def _lineage(self) -> Lineage:
        position, known = self.position, tuple(below_table(self.uri, file).path for file in self.taken)
        if position.found is not None:
            return lineage_since(self.uri, position.found.at + 1, self.newest, known)
        if position.after is None:
            return lineage_since(self.uri, position.version + 1, self.newest, known)
        return lineage_since(self.uri, position.first, self.newest)


def lineage_since(uri: str, first: int, newest: int, known: Iterable[str] = ()) -> Lineage:
    """By all commits from ``first`` on.

    :raises RowsLost: one is no longer in the log
    """
    versions = range(first, newest + 1)
    forgotten = sorted({*versions} - {*commit_versions(uri)})
    if forgotten:
        raise RowsLost(f"version {forgotten[0]} is no longer in the table's log, which would tell where they went")
    return Lineage.of(read_commits(uri, versions), known)
