"""Where the rows of a Delta table's files are after other commits have rewritten them.

A commit that only rewrites says so of each file (``dataChange`` is false), and not which of its new files has the rows
of which old ones. So files are known in blocks: those of a block hold the rows of its origins together, and no others.
A change feed would not tell more: what commits added it reads from the same files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stagehold.lake.commit.delta_log import AddedFile, LogEntry, RemovedFile

Part = tuple[tuple[str, str | None], ...]  # values of the partition columns; () also where a writer did not say


@dataclass(frozen=True)
class Block:
    """``files`` that hold the rows of all ``origins`` together. Of one that ``changed``, rows were removed or replaced
    since.
    """

    files: frozenset[str]
    origins: frozenset[str]
    changed: bool = False


@dataclass
class Lineage:
    """Blocks of a table as commits follow each other. ``versions`` are those that brought each origin, where that was
    seen; ``added`` are the facts of files that rewrites made.
    """

    versions: dict[str, int] = field(default_factory=dict)
    added: dict[str, AddedFile] = field(default_factory=dict)
    _block_of: dict[str, Block] = field(default_factory=dict)
    _spent: list[Block] = field(default_factory=list)  # those of which no file is left

    @staticmethod
    def of(entries: Iterable[LogEntry], known: Iterable[str] = ()) -> Lineage:
        """:param known: files that the table had before."""
        lineage = Lineage()
        for path in known:
            lineage._hold(Block(frozenset((path,)), frozenset((path,))))
        for entry in entries:
            lineage._follow(entry)
        return lineage

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*dict.fromkeys(self._block_of.values()), *self._spent)

    def holding(self, wanted: Collection[str]) -> tuple[Block, ...]:
        """The blocks that hold rows of the wanted files."""
        return tuple(block for block in self.blocks if not block.origins.isdisjoint(wanted))

    def _follow(self, entry: LogEntry) -> None:
        self.added |= {one.file.path: one for one in entry.added}
        for removed, added in _parts(entry):
            changed = any(one.data_change for one in removed)
            rewritten = [one for one in added if changed or not one.data_change]
            brought = [one.file.path for one in added if one.data_change]
            self.versions |= dict.fromkeys(brought, entry.version)
            if removed or rewritten:
                own = frozenset(brought) if changed else frozenset[str]()
                self._rewrite(removed, rewritten, own, changed=changed or not removed)
            if not changed:
                for path in brought:
                    self._hold(Block(frozenset((path,)), frozenset((path,))))

    def _rewrite(
        self, removed: Iterable[RemovedFile], rewritten: Iterable[AddedFile], own: frozenset[str], *, changed: bool
    ) -> None:
        paths = [one.path for one in removed]
        before = [self._block_of.get(path) or Block(frozenset((path,)), frozenset((path,))) for path in paths]
        blocks = dict.fromkeys(before)
        files = frozenset[str]().union(*(block.files for block in blocks)) - frozenset(paths)
        origins = own.union(*(block.origins for block in blocks))
        for path in paths:
            self._block_of.pop(path, None)
        new = frozenset(one.file.path for one in rewritten)
        lost = changed or any(block.changed for block in blocks) or not (files | new)
        self._hold(Block(files | new, origins or new, lost))

    def _hold(self, block: Block) -> None:
        self._block_of |= dict.fromkeys(block.files, block)
        if not block.files:
            self._spent.append(block)


def _parts(entry: LogEntry) -> Iterator[tuple[list[RemovedFile], list[AddedFile]]]:
    """What a commit removed and added, apart for each table partition, unless rows may have moved between them."""
    told = all(one.partition for one in entry.removed) or not any(one.partition for one in entry.added)
    if not told or any(one.data_change for one in entry.removed):
        yield list(entry.removed), list(entry.added)
        return
    parts = [*(_part(one.partition) for one in entry.removed), *(_part(one.partition) for one in entry.added)]
    for part in dict.fromkeys(parts):
        yield (
            [one for one in entry.removed if _part(one.partition) == part],
            [one for one in entry.added if _part(one.partition) == part],
        )


def _part(values: Mapping[str, str | None]) -> Part:
    return tuple(sorted(values.items()))
