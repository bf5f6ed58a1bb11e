"""Chronicles whose days are chosen, files whose user dies, and a compaction that is looked at from all sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.ledger.samples import START

from stagehold.chronicle.compaction import Compaction, compact
from stagehold.lake.store.files import FileFacts, Files, files_at
from stagehold.ledger.fact_lines import to_lines
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Fact

LATER = datetime.now(UTC) + timedelta(days=99)


class Died(Exception):
    """Whoever worked is gone."""


@dataclass
class DyingFiles:
    """Files that can be changed ``steps`` times, where each deleted one counts; then whoever changes them dies."""

    files: Files
    steps: int
    oldest_first: bool = False

    def sizes(self, folder: str) -> Mapping[str, int]:
        return self.files.sizes(folder)

    def folders(self, folder: str) -> Collection[str]:
        return self.files.folders(folder)

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        return self.files.facts(path)

    def tail(self, path: str, length: int) -> bytes:
        return self.files.tail(path, length)

    def read(self, path: str) -> bytes:
        return self.files.read(path)

    def create(self, path: str, content: bytes) -> bool:
        self._step()
        return self.files.create(path, content)

    def delete(self, folder: str) -> None:
        raise AssertionError("nobody deletes a whole folder of the chronicle")

    def remove(self, paths: Collection[str]) -> None:
        """A request deletes many files in any order."""
        for path in sorted(paths, reverse=not self.oldest_first):
            self._step()
            self.files.remove([path])

    def _step(self) -> None:
        if self.steps == 0:
            raise Died
        self.steps -= 1


@dataclass
class DaysAgo:
    """Keeps the facts of each transaction in the folder of some day."""

    lake: str
    told: int = 0
    of_a_day: int = 2

    def __call__(self, facts: Sequence[Fact]) -> None:
        self.told += 1
        day = START + timedelta(days=self.told // self.of_a_day)
        path = f"ledger/{day:%Y-%m-%d}/{self.told:06}.000000-x.jsonl"
        assert files_at(self.lake).create(path, to_lines(facts))


def whole(lake: str, ledger: Ledger, older_than: datetime = LATER) -> Compaction:
    """The dry run says what will be done, and once done there is no more to do."""
    files, before = files_at(lake), files_at(lake).sizes("ledger")
    foreseen = compact(files, ledger, older_than, dry_run=True)
    assert files.sizes("ledger") == before
    assert compact(files, ledger, older_than, dry_run=False) == foreseen
    after = files.sizes("ledger")
    assert sum(before.values()) - sum(after.values()) == foreseen.bytes_freed
    assert len(before) - len(after) == foreseen.files_before - foreseen.files_after
    again = compact(files, ledger, older_than, dry_run=False)
    assert (again.files_before, again.files_after, again.bytes_freed) == (foreseen.files_after,) * 2 + (0,)
    return foreseen
