"""Compacts the chronicle: each old day keeps one file, with the facts that a rebuilt ledger still needs of it.

The new file is there before those that it replaces are deleted. It has each fact as it was told last and is read after
them, so a process that dies in between leaves a chronicle from which the same ledger is rebuilt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from stagehold.chronicle.chronicle import ENDING, FOLDER, TornFile, chronicle_sizes, read_files
from stagehold.chronicle.missing_facts import missing_rows, still_told
from stagehold.lake.store.files import Files
from stagehold.ledger.fact_lines import to_lines
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Fact

LEFT_ALONE = timedelta(days=1)  # before today: transactions under way, and clocks that differ


class NotCompacted(StrEnum):
    """Why nothing was done."""

    # It lacks what the chronicle knows: it was lost or is an old copy, or a transaction failed at its very end.
    LEDGER_BEHIND = "ledger_behind"
    OVERTAKEN = "overtaken"  # somebody else compacts


@dataclass(frozen=True)
class Compaction:
    """What became of the files of old days, or would become of them.

    :param torn: files that differ from what was written; they stay.
    :param missing: how many facts the ledger lacks.
    """

    files_before: int
    files_after: int
    bytes_freed: int
    torn: tuple[TornFile, ...] = ()
    why_not: NotCompacted | None = None
    missing: int = 0


@dataclass(frozen=True)
class Replacement:
    """Files of a day, and the file that replaces them; without ``content`` none does."""

    path: str
    content: bytes
    paths: tuple[str, ...]
    bytes_before: int

    @property
    def files_freed(self) -> int:
        return len(self.paths) - bool(self.content)

    @property
    def bytes_freed(self) -> int:
        return self.bytes_before - len(self.content)


def compact(files: Files, ledger: Ledger, older_than: datetime, *, dry_run: bool) -> Compaction:
    """Replace what the lake's chronicle keeps of the days before that of ``older_than``, never today or yesterday.

    The ledger decides what is needed, so nothing is done unless it knows all facts of the old days, or newer ones: a
    lost one comes back whole. It is read after the files; what it forgets after that goes with the next compaction.

    Two compactions at once lose nothing, since each deletes only what it has read as a whole and written again; facts
    that both wrote are told twice, and count once. `reconcile` beside it may tell facts again that were forgotten in
    between.

    :param files: the lake's files.
    """
    sizes = {path: size for path, size in chronicle_sizes(files).items() if _day(path) < _first_day_kept(older_than)}
    untouched = Compaction(len(sizes), len(sizes), 0)
    try:
        found = read_files(files, sizes)
    except FileNotFoundError:
        return replace(untouched, why_not=NotCompacted.OVERTAKEN)
    said = {path: content for path, content in found.items() if not isinstance(content, TornFile)}
    untouched = replace(untouched, torn=tuple(content for content in found.values() if isinstance(content, TornFile)))
    known = ledger.facts.all()
    missing = missing_rows(known, [fact for facts in said.values() for fact in facts])
    if missing:
        return replace(untouched, why_not=NotCompacted.LEDGER_BEHIND, missing=len(missing))
    planned = replacements(known, said, sizes)
    if not dry_run:
        _carry_out(planned, files)
    return replace(
        untouched,
        files_after=len(sizes) - sum(replacement.files_freed for replacement in planned),
        bytes_freed=sum(replacement.bytes_freed for replacement in planned),
    )


def replacements(
    known: Iterable[Fact], said: Mapping[str, Sequence[Fact]], sizes: Mapping[str, int]
) -> tuple[Replacement, ...]:
    """What to do with the days of these files, for a ledger that knows ``known`` and lacks none of their facts."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path in said:
        paths[_day(path)].append(path)
    told = {day: tuple(fact for path in paths for fact in said[path]) for day, paths in paths.items()}
    return tuple(
        Replacement(
            path=_new_path(day),
            content=to_lines(needed) if needed else b"",
            paths=tuple(paths[day]),
            bytes_before=sum(sizes[path] for path in paths[day]),
        )
        for day, needed in still_told(known, told).items()
        if len(paths[day]) > 1 or needed != told[day]
    )


def _carry_out(planned: Iterable[Replacement], files: Files) -> None:
    """Replace the files. The newest go first: if the process dies, the beginning of a day is left."""
    for replacement in planned:
        if replacement.content and not files.create(replacement.path, replacement.content):
            raise FileExistsError(f"{replacement.path} was there before it was made")
        files.remove(replacement.paths[::-1])


def _first_day_kept(older_than: datetime) -> str:
    yesterday = datetime.now(UTC) - LEFT_ALONE
    return f"{min(older_than.astimezone(UTC), yesterday):%Y-%m-%d}"


def _day(path: str) -> str:
    return path.split("/")[1]


def _new_path(day: str) -> str:
    """A path after all paths that begin with a time, and after earlier compactions."""
    return f"{FOLDER}/{day}/compacted-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid4().hex[:12]}{ENDING}"
