"""Rows cut into partitions by chance, as a run might find them: one of them may have none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random


def random_cut(groups: Sequence[Hashable], random: Random) -> tuple[tuple[int, ...], ...]:
    """The places of rows in two to four parts; rows of one group stay together."""
    count = random.randint(2, 4)
    part_of = {group: random.randrange(count) for group in dict.fromkeys(groups)}
    return tuple(tuple(place for place, group in enumerate(groups) if part_of[group] == part) for part in range(count))
