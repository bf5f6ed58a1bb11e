"""What the chronicle of a lake says to who does not open its ledger: to a sandbox, of production."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeGuard, TypeVar

from stagehold.lake.chronicle import AT_ONCE, TornFile, chronicle_sizes, read_files
from stagehold.lake.files import files_at
from stagehold.model.records import Acceptance, Fact, PartitionRecord, TakenPosition, Waiver

Kept = TakenPosition | Acceptance | Waiver | PartitionRecord  # what anybody asks for
Told = TypeVar("Told", TakenPosition, Acceptance, Waiver, PartitionRecord)


def facts_told(lake_uri: str, kind: type[Told]) -> Sequence[Told]:
    """All facts of this kind, in the order in which they were told; of partitions those that keep state. Files that are
    torn are passed over.

    Each file is read once in a process, since none ever changes.
    """
    while True:
        paths = sorted(chronicle_sizes(files_at(lake_uri)))
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                told = list(pool.map(partial(_kept_of, lake_uri), paths))
        except FileNotFoundError:
            continue  # it is compacted now
        return [fact for some in told for fact in some if isinstance(fact, kind)]


@cache
def _kept_of(lake_uri: str, path: str) -> tuple[Kept, ...]:
    said = read_files(files_at(lake_uri), [path])[path]
    return () if isinstance(said, TornFile) else tuple(fact for fact in said if _is_kept(fact))


def _is_kept(fact: Fact) -> TypeGuard[Kept]:
    if isinstance(fact, PartitionRecord):
        return bool(fact.states)
    return isinstance(fact, TakenPosition | Acceptance | Waiver)
