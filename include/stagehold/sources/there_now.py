"""What of a Delta table an interval takes that takes it as it is now: all that no other interval has published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from stagehold.model.source_position import VersionsRead
from stagehold.sources.lineage import Block, Lineage


@dataclass(frozen=True)
class TakenByOther:
    """What another interval has taken. If nothing was made from it, it may have to give it up."""

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
    """Rows to take are in one file with rows that must not be taken; the text says whose."""


@dataclass(frozen=True)
class ThereNow:
    """A table as its commits from ``start`` on made it: ``lineage`` of what they did, and ``others``, the files that
    they left alone. Rows are taken from version ``wanted`` on, which is ``start`` or, as nothing is known of versions
    before it, 0. ``given_up`` are claims that do not hold any more.
    """

    lineage: Lineage
    others: Collection[str]
    start: int
    wanted: int
    claims: Sequence[TakenByOther]
    given_up: frozenset[str] = field(default=frozenset())

    def take(self) -> tuple[frozenset[str], frozenset[str]]:
        """The files to take, and the intervals that give up all that they had taken, since some of it is in one file
        with rows to take.

        :raises RowsMixed: rows are not to be told apart
        """
        mine = [block for block in self._blocks() if any(map(self._is_mine, block.origins))]
        for block in mine:
            self._refuse_mixed(block)
        more = {claim.interval for block in mine for origin in block.origins for claim in self._owners(origin)}
        if more:
            return replace(self, given_up=self.given_up | more).take()
        return frozenset[str]().union(*(block.files for block in mine)), self.given_up

    def _blocks(self) -> Iterator[Block]:
        yield from (block for block in self.lineage.blocks if block.files)
        yield from (Block(frozenset((path,)), frozenset((path,))) for path in self.others)

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
