"""Where the rows of a Delta table's files are after other commits have rewritten them.

A commit that only rewrites says so of each file (``dataChange`` is false), but not which of its new files have the rows
of which old ones. So files are known in blocks: the files of a block together hold exactly the rows of its origins. A
change feed would not tell more: what commits added it reads from the same files.

Blocks let an interval find the rows that it took after the files that held them are gone. They also let one that takes
a table as it is now learn which files have rows that no other interval has published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.lake.commit.delta_log import AddedFile, LogEntry, RemovedFile, commit_versions, open_table, read_commits
from stagehold.model.source_position import SourceFile, VersionsRead
from stagehold.sources.delta import added_file, below_table, gone_files, schema_of

Part = tuple[tuple[str, str | None], ...]  # values of the partition columns; () also where a writer did not say


@dataclass(frozen=True)
class Block:
    """``files`` together hold the rows of all ``origins``. In a block that ``changed``, rows were removed or replaced
    since.
    """

    files: frozenset[str]
    origins: frozenset[str]
    changed: bool = False


class Lineage:
    """Blocks of a table as commits follow each other. ``versions`` are those that brought each origin, where that was
    seen; ``added`` are the facts of files that rewrites made.
    """

    def __init__(self, entries: Iterable[LogEntry], known: Iterable[str] = ()) -> None:
        """:param known: files that the table had before."""
        self.versions: dict[str, int] = {}
        self.added: dict[str, AddedFile] = {}
        self._block_of: dict[str, Block] = {}
        self._spent: list[Block] = []  # those of which no file is left
        for path in known:
            self._hold(_own_block(path))
        for entry in entries:
            self._follow(entry)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*dict.fromkeys(self._block_of.values()), *self._spent)

    def holding(self, wanted: Collection[str]) -> tuple[Block, ...]:
        """The blocks that hold rows of the wanted files."""
        return tuple(block for block in self.blocks if not block.origins.isdisjoint(wanted))

    def _follow(self, entry: LogEntry) -> None:
        self.added |= {file.file.path: file for file in entry.added}
        for removed, added in _parts(entry):
            changed = any(file.data_change for file in removed)
            rewritten = [file for file in added if changed or not file.data_change]
            brought = [file.file.path for file in added if file.data_change]
            self.versions |= dict.fromkeys(brought, entry.version)
            if removed or rewritten:
                own = frozenset(brought) if changed else frozenset[str]()
                self._rewrite(removed, rewritten, own, changed=changed or not removed)
            if not changed:
                for path in brought:
                    self._hold(_own_block(path))

    def _rewrite(
        self, removed: Iterable[RemovedFile], rewritten: Iterable[AddedFile], own: frozenset[str], *, changed: bool
    ) -> None:
        paths = [file.path for file in removed]
        before = [self._block_of.get(path) or _own_block(path) for path in paths]
        blocks = dict.fromkeys(before)
        files = frozenset[str]().union(*(block.files for block in blocks)) - frozenset(paths)
        origins = own.union(*(block.origins for block in blocks))
        for path in paths:
            self._block_of.pop(path, None)
        new = frozenset(file.file.path for file in rewritten)
        lost = changed or any(block.changed for block in blocks) or not (files | new)
        self._hold(Block(files | new, origins or new, lost))

    def _hold(self, block: Block) -> None:
        self._block_of |= dict.fromkeys(block.files, block)
        if not block.files:
            self._spent.append(block)


def _own_block(path: str) -> Block:
    """The block of a file that nobody has rewritten."""
    return Block(frozenset((path,)), frozenset((path,)))


def _parts(entry: LogEntry) -> Iterator[tuple[list[RemovedFile], list[AddedFile]]]:
    """What a commit removed and added, apart for each table partition, unless rows may have moved between them."""
    told = all(file.partition for file in entry.removed) or not any(file.partition for file in entry.added)
    if not told or any(file.data_change for file in entry.removed):
        yield list(entry.removed), list(entry.added)
        return
    parts = [*(_part(file.partition) for file in entry.removed), *(_part(file.partition) for file in entry.added)]
    for part in dict.fromkeys(parts):
        yield (
            [file for file in entry.removed if _part(file.partition) == part],
            [file for file in entry.added if _part(file.partition) == part],
        )


def _part(values: Mapping[str, str | None]) -> Part:
    return tuple(sorted(values.items()))


class RowsLost(Exception):
    """Rows are gone, or can no longer be told from others; the text says why."""


class Whereabouts:
    """The whereabouts of the rows in the files that an interval had ``taken`` of the table at ``uri``, which has a
    ``newest`` version.

    Only what a rewrite left by themselves is found: where it put them into one file with rows of others, nothing tells
    them apart, and taking that file would repeat the others.
    """

    def __init__(self, uri: str, position: VersionsRead, newest: int, taken: tuple[SourceFile, ...]) -> None:
        self.uri, self.position, self.newest, self.taken = uri, position, newest, taken

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
        if added.deletes:
            raise RowsLost(f"some rows of {path} are deleted by now")
        return added_file(self.uri, added, self._schema)

    @cached_property
    def _schema(self) -> str:
        return schema_of(open_table(self.uri, self.newest))

    @cached_property
    def _lineage(self) -> Lineage:
        position, known = self.position, tuple(below_table(self.uri, file).path for file in self.taken)
        if position.found is not None:
            return lineage_since(self.uri, position.found.at + 1, self.newest, known)
        if position.after is None:
            return lineage_since(self.uri, position.version + 1, self.newest, known)
        return lineage_since(self.uri, position.first, self.newest)


def lineage_since(uri: str, first: int, newest: int, known: Iterable[str] = ()) -> Lineage:
    """The lineage by all commits from ``first`` on.

    :raises RowsLost: one is no longer in the log
    """
    versions = range(first, newest + 1)
    forgotten = sorted({*versions} - {*commit_versions(uri)})
    if forgotten:
        raise RowsLost(f"version {forgotten[0]} is no longer in the table's log, which would tell where they went")
    return Lineage(read_commits(uri, versions), known)


@dataclass(frozen=True)
class TakenByOther:
    """What another interval has taken. If nothing was made from it yet, that interval may have to give it up."""

    interval: str
    position: VersionsRead
    published: bool

    def may_have(self, origin: str, version: int | None, start: int) -> bool:
        """Whether the rows of a file may be among its own; of one from before ``start`` the version is not known."""
        found = self.position.found.files if self.position.found else ()
        if self.position.is_empty or any(file.path == origin for file in found):
            return not self.position.is_empty
        first, last = self.position.first, self.position.version
        return first < start if version is None else first <= version <= last


class RowsMixed(Exception):
    """Rows to take are in one file with rows that must not be taken; the text says whose those are."""


class RowsToTake:
    """What an interval takes of a table as its commits from ``start`` on made it, but for what other intervals have
    published: ``lineage`` of what they did, and ``others``, the files that they left alone. Rows are taken from version
    ``wanted`` on, which is ``start`` or, as nothing is known of versions before it, 0.
    """

    def __init__(
        self, lineage: Lineage, others: Collection[str], *, start: int, wanted: int, claims: Sequence[TakenByOther]
    ) -> None:
        self.lineage, self.others = lineage, others
        self.start, self.wanted, self.claims = start, wanted, claims
        self.given_up: frozenset[str] = frozenset()  # intervals whose claims do not hold any more

    def take(self) -> tuple[frozenset[str], frozenset[str]]:
        """The files to take, and the intervals that give up all that they had taken, since some of it is in one file
        with rows to take.

        :raises RowsMixed: rows are not to be told apart
        """
        while True:
            mine = [block for block in self._blocks() if any(map(self._is_mine, block.origins))]
            for block in mine:
                self._refuse_mixed(block)
            more = {claim.interval for block in mine for origin in block.origins for claim in self._owners(origin)}
            if not more:
                return frozenset[str]().union(*(block.files for block in mine)), self.given_up
            self.given_up |= more

    def _blocks(self) -> Iterator[Block]:
        yield from (block for block in self.lineage.blocks if block.files)
        yield from map(_own_block, self.others)

    def _claims_on(self, origin: str) -> Iterator[TakenByOther]:
        version = self.lineage.versions.get(origin)
        return (claim for claim in self.claims if claim.may_have(origin, version, self.start))

    def _owners(self, origin: str) -> Iterator[TakenByOther]:
        return (claim for claim in self._claims_on(origin) if claim.interval not in self.given_up)

    def _is_mine(self, origin: str) -> bool:
        return self._is_wanted(origin) and not any(self._owners(origin))

    def _is_wanted(self, origin: str) -> bool:
        version = self.lineage.versions.get(origin)
        from_then_on = self.wanted < self.start if version is None else self.wanted <= version
        return from_then_on or any(claim.interval in self.given_up for claim in self._claims_on(origin))

    def _refuse_mixed(self, block: Block) -> None:
        place, owners = min(block.files), {claim for origin in block.origins for claim in self._owners(origin)}
        if published := sorted(claim.interval for claim in owners if claim.published):
            raise RowsMixed(f"{place} also holds rows that {', '.join(published)} has published")
        if not all(self._is_wanted(origin) or any(self._owners(origin)) for origin in block.origins):
            raise RowsMixed(f"{place} also holds rows from before version {self.wanted}")
