"""The attributes of a plan, and where the columns of the exchange key are found in the rows of a relation.

Every column has a number in it, which stays when it is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from stagehold.plan.isolation.tree import Named, Operand, function_before, named, operands, results

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
DECIMAL = re.compile(r"decimal\((?P<precision>\d+),(?P<scale>\d+)\)")

Ids = frozenset[int]  # of attributes


@dataclass(frozen=True)
class Carriers:
    """The attributes that carry a column of the exchange key, the key under which a row is computed.

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
        return any(alternatives <= attributes for alternatives in self.complete)

    def never_null(self, attribute: int) -> Carriers:
        """The carriers where only rows are left in which the attribute is not null."""
        return Carriers(self.members, self.complete | {frozenset({attribute})}) if attribute in self.members else self

    def as_made(self, made: Mapping[int, Ids]) -> Carriers:
        """The carriers after a projection. For each attribute of the projection, ``made`` has the attributes of which
        it is the first that is not null.
        """
        members = frozenset(new for new, old in made.items() if old and old <= self.members)
        copies = {next(iter(old)): new for new, old in made.items() if len(old) == 1}
        kept = {
            frozenset(copies[attribute] for attribute in alternatives)
            for alternatives in self.complete
            if alternatives <= copies.keys()
        }
        told = {frozenset({new}) for new, old in made.items() if old and self.determined_by(old)}
        return Carriers(members, frozenset(kept | told))

    def partly_null(self) -> Carriers:
        """The carriers below an outer join that adds rows in which all of them are null, although their key is not."""
        return Carriers(self.members)


def side_by_side(left: Carriers, right: Carriers) -> Carriers:
    """The carriers in rows that are joined by the key."""
    return Carriers(left.members | right.members, left.complete | right.complete)


def either(left: Carriers, right: Carriers) -> Carriers:
    """The carriers in rows that come from the left, the right, or both."""
    return Carriers(left.members | right.members, _unions((left.complete, right.complete)))


def in_common(all_: Iterable[Carriers]) -> Carriers:
    """The carriers in a union, whose branches name their attributes alike."""
    carriers = tuple(all_)
    members = frozenset.intersection(*(branch.members for branch in carriers))
    return Carriers(
        members,
        frozenset(
            alternatives
            for alternatives in _unions([branch.complete for branch in carriers])
            if alternatives <= members
        ),
    )


def _unions(choices: Iterable[frozenset[Ids]]) -> frozenset[Ids]:
    return frozenset(frozenset().union(*chosen) for chosen in product(*choices))


class Attributes:
    """Their names, their types as far as they are known, and what to call them to people,
    collected from the leaves up.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._types: dict[int, str] = {}
        self._shown: dict[int, str] = {}
        self._alternatives: dict[int, tuple[str, ...]] = {}

    def learn(self, attribute: int, name: str, *, kind: str = "", shown: str = "") -> None:
        self._names.setdefault(attribute, name)
        self._types.setdefault(attribute, kind)
        self._shown.setdefault(attribute, shown or name)

    def listed(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Attributes that an operator makes by itself."""
        made = [named(text) for text in texts]
        for element in made:
            self.learn(element.id, element.name)
        return tuple(element.id for element in made)

    def made(self, element: Named) -> Ids:
        """The attributes of which an element of a projection is the first that is not null."""
        parts = operands(element.expression)
        kinds = [(self._types.get(part.id, ""), *part.casts)[-1] for part in parts]
        shown = self._shown.get(parts[0].id, "") if len(parts) == 1 else ""
        self.learn(element.id, element.name, kind=kinds[0] if kinds else "", shown=shown)
        if len(parts) == 1 and parts[0].id in self._alternatives:
            self._alternatives.setdefault(element.id, self._alternatives[parts[0].id])
        return self.sources(parts)

    def again(self, new: int, old: int) -> None:
        """``new`` is ``old`` in a second copy of the same plan."""
        self._types[new], self._shown[new] = self._types.get(old, ""), self._shown.get(old, "")

    def sources(self, parts: Sequence[Operand]) -> Ids:
        """The attributes of which an expression is the first that is not null; none if it may be anything else."""
        return frozenset(operand.id for operand in parts) if all(map(self._is_itself, parts)) else frozenset()

    def may_be_null(self, carriers: Carriers) -> None:
        """Remember of what the key could be made where these are all at hand,
        since a projection may drop one that is needed.
        """
        for member in carriers.members:
            best = min(
                carriers.complete,
                key=lambda alternatives: (member not in alternatives, len(alternatives), sorted(alternatives)),
                default=Ids(),
            )
            self._alternatives.setdefault(
                member, tuple(dict.fromkeys(self._shown.get(part, "") for part in (member, *sorted(best - {member}))))
            )

    def alternatives_of(self, attribute: int) -> tuple[str, ...]:
        """Columns of which the first that is not null is the key, for an attribute that is the key or null."""
        return self._alternatives.get(attribute, ())

    def functions(self, texts: Iterable[str]) -> frozenset[str]:
        """Names of the Python functions that are called:
        a call has a number like an attribute, and nothing makes that attribute.
        """
        found = (
            function_before(text, place)
            for text in texts
            for place, number in results(text)
            if number not in self._names
        )
        return frozenset(found)

    def _is_itself(self, operand: Operand) -> bool:
        kinds = (self._types.get(operand.id, ""), *operand.casts)
        known = self._names.get(operand.id, "").casefold() == operand.name.casefold()
        return known and all(keeps_group(before, after) for before, after in pairwise(kinds))


def keeps_group(before: str, after: str) -> bool:
    """Whether a cast leaves each key in its group, and makes equal only what is in one:
    groups are dealt by the number as a double.
    """
    if after in ("double", before):
        return before in DIGITS or before in ("float", "double") or DECIMAL.fullmatch(before) is not None
    (whole, scale), (room, places) = _digits(before), _digits(after)
    return 0 < whole <= room and scale <= places


def _digits(kind: str) -> tuple[int, int]:
    """The number of digits before and after the point; no digits for a type that is not exact."""
    found = DECIMAL.fullmatch(kind)
    return (int(found["precision"]) - int(found["scale"]), int(found["scale"])) if found else (DIGITS.get(kind, 0), 0)
