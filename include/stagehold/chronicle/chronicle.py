"""The chronicle: the ledger's facts about the past that decisions rest on, kept in the lake. A lost ledger is rebuilt
from it.

Each transaction of the ledger with such facts leaves one file before it is committed, `ledger/DAY/TIME-….jsonl`: a line
for each fact, after a line with their number and checksum. Files are made once and never changed; those of old days are
replaced by one with the facts that still count (`chronicle/compaction.py`). DuckDB reads them: `FROM
read_json('LAKE/ledger/*/*.jsonl', union_by_name = true)`.

The chronicle has at least the ledger's facts. It may have more: those of a transaction that failed at its very end.
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
from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.records import Attempt, Fact, PartitionRecord, Run, TakenPosition
from stagehold.secrets import masked
from stagehold.settings import Settings

log = logging.getLogger(__name__)

FOLDER = "ledger"
ENDING = ".jsonl"
AT_ONCE = 16


@dataclass(frozen=True)
class TornFile:
    """A file of the chronicle that differs from what was written."""

    path: str
    problem: str


Chronicled = tuple[tuple[Fact, ...], tuple[TornFile, ...]]  # facts in the order in which they were told; unread files


class LakeChronicle:
    """Keeps facts in a lake.

    If the lake takes nothing, facts that others will build on cannot be recorded. Beginnings and ends of attempts and
    runs can: the ledger has to know of a disk that is full. `stagehold reconcile` repairs the difference.
    """

    def __init__(self, lake_uri: str) -> None:
        self.lake_uri = lake_uri

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


def open_ledger(settings: Settings, redact: Redact = masked) -> Ledger:
    """The ledger of these settings, whose facts are kept in their lake as well."""
    return Ledger.open(settings.ledger_url, redact, LakeChronicle(settings.lake_uri), tell_listeners)


def is_chronicled(lake_uri: str) -> bool:
    """Whether anything ever happened in this lake."""
    return bool(files_at(lake_uri).folders(FOLDER))


def read_chronicle(lake_uri: str) -> Chronicled:
    """All facts of the lake's chronicle."""
    return read_from(files_at(lake_uri))


def read_from(files: Files) -> Chronicled:
    """All facts of the chronicle in these files of a lake.

    If it is compacted meanwhile, it is read anew: the facts of a deleted file are in a newer one. If a folder of this
    machine is listed in the very moment in which all of a day's files are replaced, neither may be listed.
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
    """The facts of these files of the chronicle, by path, in the order in which they were told.

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
    """All facts of this kind, in the order in which they were told; of partitions only those that keep state. Torn
    files are passed over.

    Each file is read once in a process, since files never change.
    """
    return [fact for fact in _told(lake_uri, _kept_of) if isinstance(fact, kind)]


def records_told(lake_uri: str) -> Sequence[PartitionRecord]:
    """The records of all partitions, in the order in which they were told. There may be very many, so nothing is kept:
    all files are read each time.
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
