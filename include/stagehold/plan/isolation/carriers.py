"""Where the columns of the exchange key are found in the rows of a relation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

Ids = frozenset[int]  # of attributes


@dataclass(frozen=True)
class Carriers:
    """Who carries one column of the exchange key, the key under which a row is computed.

    A member is that key or null. A set is complete if one of its members is the key: the one that is not null, if there
    is any. After a full outer join by the key that is true of both sides' columns together, and of neither alone.
    """

    members: Ids = frozenset()
    complete: frozenset[Ids] = frozenset()

    @staticmethod
    def of(attribute: int) -> Carriers:
        return Carriers(frozenset({attribute}), frozenset({frozenset({attribute})}))

    def determined_by(self, attributes: Ids) -> bool:
        """Whether the first of these that is not null is the key."""
        return attributes <= self.members and self.is_within(attributes)

    def is_within(self, attributes: Ids) -> bool:
        """Whether rows that agree in all of these agree in the key."""
        return any(one <= attributes for one in self.complete)

    def never_null(self, attribute: int) -> Carriers:
        """The same where only rows are left in which the attribute is not null."""
        return Carriers(self.members, self.complete | {frozenset({attribute})}) if attribute in self.members else self

    def as_made(self, made: Mapping[int, Ids]) -> Carriers:
        """The same after a projection; ``made`` says of which attributes each of its own is the first that is
        not null.
        """
        members = frozenset(new for new, old in made.items() if old and old <= self.members)
        copies = {next(iter(old)): new for new, old in made.items() if len(old) == 1}
        kept = {frozenset(copies[one] for one in some) for some in self.complete if some <= copies.keys()}
        told = {frozenset({new}) for new, old in made.items() if old and self.determined_by(old)}
        return Carriers(members, frozenset(kept | told))

    def partly_null(self) -> Carriers:
        """The same below an outer join that adds rows in which all of these are null, although their key is not."""
        return Carriers(self.members)


def side_by_side(left: Carriers, right: Carriers) -> Carriers:
    """Of rows that are joined by the key."""
    return Carriers(left.members | right.members, left.complete | right.complete)


def either(left: Carriers, right: Carriers) -> Carriers:
    """Of rows that come from the left, the right, or both."""
    return Carriers(left.members | right.members, _unions((left.complete, right.complete)))


def in_common(all_: Iterable[Carriers]) -> Carriers:
    """Of a union, whose branches name their attributes alike."""
    carriers = tuple(all_)
    members = frozenset.intersection(*(one.members for one in carriers))
    return Carriers(members, frozenset(some for some in _unions([one.complete for one in carriers]) if some <= members))


def _unions(choices: Iterable[frozenset[Ids]]) -> frozenset[Ids]:
    return frozenset(frozenset().union(*chosen) for chosen in product(*choices))
