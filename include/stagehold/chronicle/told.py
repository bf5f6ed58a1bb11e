"""What the chronicle of a lake says to who does not open its ledger: to a sandbox, of production."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import chain
from typing import TypeGuard, TypeVar

from stagehold.chronicle.chronicle import AT_ONCE, TornFile, chronicle_sizes, read_files
from stagehold.lake.store.files import files_at
from stagehold.model.records import Acceptance, Fact, PartitionRecord, TakenPosition, Waiver

Kept = TakenPosition | Acceptance | Waiver | PartitionRecord  # what anybody asks for
Told = TypeVar("Told", TakenPosition, Acceptance, Waiver, PartitionRecord)


def facts_told(lake_uri: str, kind: type[Told]) -> Sequence[Told]:
    """All facts of this kind, in the order in which they were told; of partitions those that keep state. Files that are
    torn are passed over.

    Each file is read once in a process, since none ever changes.
    """
    return [fact for fact in _told(lake_uri, _kept_of) if isinstance(fact, kind)]


def records_told(lake_uri: str) -> Sequence[PartitionRecord]:
    """Those of all partitions, in the order in which they were told. There may be very many, so nothing is remembered:
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
