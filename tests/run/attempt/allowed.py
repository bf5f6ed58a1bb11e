"""What may be shown of the paper pipeline after each run, worked out from what happened and from nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import duckdb
from tests.run.protocol.paper_spark import Amounts
from tests.run.protocol.world import PARTITIONS, STAGES

DRAFTS, PRINTS = STAGES


@dataclass
class Made:
    """What is on record of a partition: its rows, whether its gate refused them last, and from what it was made."""

    amounts: Amounts
    refused: bool
    source: Amounts


@dataclass
class Allowed:
    """Prints are doubled drafts, and both have one gate, which lets what is not above its limit."""

    most: int
    sources: dict[int, Amounts]
    made: dict[str, dict[int, Made]] = field(default_factory=lambda: {DRAFTS: {}, PRINTS: {}})
    shown: dict[str, dict[int, Amounts]] = field(default_factory=lambda: {DRAFTS: {}, PRINTS: {}})
    words: dict[tuple[str, int, Amounts], bool] = field(default_factory=dict)

    def waive(self, stages: Collection[str], *, ends: bool) -> None:
        for stage in stages:
            for partition, made in self.made[stage].items():
                if made.refused:
                    self.words[stage, partition, made.amounts] = not ends

    def run(self) -> bool:
        """Whether it gets to its end."""
        return self._stage(DRAFTS) and self._stage(PRINTS)

    def rows(self, stage: str) -> list[tuple[int, int]]:
        every = [(partition, amount) for partition, some in self.shown[stage].items() for amount in some]
        values = ", ".join(map(str, every)) or "(NULL, NULL)"
        found = duckdb.sql(f"SELECT p, a FROM (VALUES {values}) AS shown(p, a) WHERE p IS NOT NULL ORDER BY p, a")
        return found.fetchall()

    def _stage(self, stage: str) -> bool:
        factor = 1 if stage == DRAFTS else 2
        wanted = {n: tuple(factor * source for source in self.sources[n]) for n in range(PARTITIONS)}
        made = self.made[stage]
        replaced = {n for n, record in made.items() if record.refused and record.source != self.sources[n]}
        self._take_out(stage, replaced)
        for partition, amounts in wanted.items():
            refused = any(not 0 <= one <= self.most for one in amounts)
            made[partition] = Made(amounts, refused, self.sources[partition])
            if not refused or self.words.get((stage, partition, amounts)):
                self.shown[stage][partition] = amounts
        blocked = {n for n, record in made.items() if record.refused and not self.words.get((stage, n, record.amounts))}
        if blocked:
            self._take_out(stage, set())
        return not blocked

    def _take_out(self, stage: str, replaced: Collection[int]) -> None:
        """What somebody waived that does not count now, and prints made from such drafts."""
        drafts = {n for n in self.made[DRAFTS] if self._ended(DRAFTS, n) or (stage == DRAFTS and n in replaced)}
        prints = {n for n in self.made[PRINTS] if self._ended(PRINTS, n) or (stage == PRINTS and n in replaced)}
        prints |= {
            n for n in drafts & self.made[PRINTS].keys() if self.made[PRINTS][n].source == self.made[DRAFTS][n].source
        }
        for name, some in ((DRAFTS, drafts), (PRINTS, prints)):
            for partition in some:
                if self.shown[name].get(partition) == self.made[name][partition].amounts:
                    del self.shown[name][partition]

    def _ended(self, stage: str, partition: int) -> bool:
        record = self.made[stage][partition]
        return record.refused and self.words.get((stage, partition, record.amounts)) is False
