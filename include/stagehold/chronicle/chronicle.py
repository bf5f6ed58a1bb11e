"""The chronicle: what the ledger says of the past and decides by, kept in the lake: a lost ledger is rebuilt from it.

Each transaction of the ledger that has such facts leaves one file before it is committed, `ledger/DAY/TIME-….jsonl`: a
line for each fact, behind a line with their number and checksum. Files are made once and never changed; those of old
days are replaced by one that says what still counts (`chronicle/compaction.py`). DuckDB reads them:
`FROM read_json('LAKE/ledger/*/*.jsonl', union_by_name = true)`.

The chronicle knows at least what the ledger knows. It may know more: of a transaction that failed at its very end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from typing import TypeGuard, TypeVar
from uuid import uuid4

from stagehold.extensions.installed import tell_listeners
from stagehold.lake.store.files import Files, files_at
from stagehold.ledger.database.engine import Redact
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import (
    Acceptance,
    Attempt,
    Fact,
    PartitionRecord,
    Run,
    TakenPosition,
    Waiver,
)
from stagehold.settings import Settings

log = logging.getLogger(__name__)

FOLDER = "ledger"
ENDING = ".jsonl"
AT_ONCE = 16


@dataclass(frozen=True)
class TornFile:
    """A file of the chronicle that is not what was written."""

    path: str
    problem: str


Chronicled = tuple[tuple[Fact, ...], tuple[TornFile, ...]]  # facts in the order in which they were told; unread files


@dataclass(frozen=True)
class LakeChronicle:
    """Keeps facts in a lake.

    A lake that takes nothing stops who wants to record what others will build on. It stops nobody from saying that an
    attempt or a run has begun or ended: of a disk that is full the ledger has to know. `stagehold reconcile` makes up
    for that.
    """

    lake_uri: str

    def __call__(self, facts: Sequence[Fact]) -> None:
        try:
            self._keep(facts)
        except Exception as error:
            if not all(isinstance(fact, Run | Attempt) for fact in facts):
                raise
            log.warning("the lake %s does not know yet what begins and ends: %s", self.lake_uri, error)

    def _keep(self, facts: Sequence[Fact]) -> None:
        now = datetime.now(UTC)
        path = f"{FOLDER}/{now:%Y-%m-%d}/{now:%H%M%S.%f}-{uuid4().hex[:12]}{ENDING}"
        if not files_at(self.lake_uri).create(path, to_lines(facts)):
            raise FileExistsError(f"{self.lake_uri}/{path} was there before it was made")


def open_ledger(settings: Settings, redact: Redact = str) -> Ledger:
    """The ledger of these settings, whose facts are kept in their lake as well."""
    return Ledger.open(settings.ledger_url, redact, LakeChronicle(settings.lake_uri), tell_listeners)


def is_chronicled(lake_uri: str) -> bool:
    """Whether anything ever happened here."""
    return bool(files_at(lake_uri).folders(FOLDER))


def read_chronicle(lake_uri: str) -> Chronicled:
    """Everything that the lake's chronicle says."""
    return read_from(files_at(lake_uri))


def read_from(files: Files) -> Chronicled:
    """Everything that the chronicle in these files of a lake says.

    Where it is compacted meanwhile, it is read anew: what a file said that is gone is in a newer one. A folder of this
    machine that is listed in the very moment in which all of a day's files are replaced may show neither.
    """
    while True:
        with suppress(FileNotFoundError):
            told = read_files(files, chronicle_sizes(files))
            break
    said = told.values()
    facts = tuple(fact for content in said if not isinstance(content, TornFile) for fact in content)
    return facts, tuple(content for content in said if isinstance(content, TornFile))


def chronicle_sizes(files: Files) -> Mapping[str, int]:
    """Bytes of each file of the chronicle, by path."""
    return {path: size for path, size in files.sizes(FOLDER).items() if path.endswith(ENDING)}


def read_files(files: Files, paths: Iterable[str]) -> Mapping[str, tuple[Fact, ...] | TornFile]:
    """What these files of the chronicle say, by path, in the order in which it was told.

    :raises FileNotFoundError: one of them has been deleted.
    """
    ordered = sorted(paths)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(ordered, pool.map(lambda path: _read(files, path), ordered), strict=True))


def _read(files: Files, path: str) -> tuple[Fact, ...] | TornFile:
    try:
        return from_lines(files.read(path))
    except (ValueError, KeyError) as error:
        return TornFile(path, str(error))


Kept = TakenPosition | Acceptance | Waiver | PartitionRecord  # what anybody asks for
Told = TypeVar("Told", TakenPosition, Acceptance, Waiver, PartitionRecord)


def facts_told(lake_uri: str, kind: type[Told]) -> Sequence[Told]:
    """All facts of this kind, in the order in which they were told; of partitions those that keep state. Files that are
    torn are passed over.

    Each file is read once in a process, since none ever changes.
    """
    return [fact for fact in _told(lake_uri, _kept_of) if isinstance(fact, kind)]


def records_told(lake_uri: str) -> Sequence[PartitionRecord]:
    """The records of all partitions, in the order in which they were told. There may be very many, so nothing is
    remembered: all files are read each time.
    """
    return [fact for fact in _told(lake_uri, _records_of) if isinstance(fact, PartitionRecord)]


def _told(lake_uri: str, told_by: Callable[[str, str], Sequence[Fact]]) -> Iterator[Fact]:
    while True:
        paths = sorted(chronicle_sizes(files_at(lake_uri)))
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                told = list(pool.map(partial(told_by, lake_uri), paths))
        except FileNotFoundError:
            continue  # it is compacted now
        return chain.from_iterable(told)


@cache
def _kept_of(lake_uri: str, path: str) -> tuple[Kept, ...]:
    return tuple(fact for fact in _facts_of(lake_uri, path) if _is_kept(fact))


def _records_of(lake_uri: str, path: str) -> Sequence[PartitionRecord]:
    return [fact for fact in _facts_of(lake_uri, path) if isinstance(fact, PartitionRecord)]


def _facts_of(lake_uri: str, path: str) -> Sequence[Fact]:
    said = read_files(files_at(lake_uri), [path])[path]
    return () if isinstance(said, TornFile) else said


def _is_kept(fact: Fact) -> TypeGuard[Kept]:
    if isinstance(fact, PartitionRecord):
        return bool(fact.states)
    return isinstance(fact, TakenPosition | Acceptance | Waiver)
