"""What a join makes of two relations of which at least one depends on which partitions are computed."""

from __future__ import annotations

from stagehold.plan.isolation.attributes import Carriers, Ids, either, side_by_side

Key = tuple[Carriers, ...]
Pair = tuple[Ids, str, Ids]  # both sides of an equality and its sign; nothing known of a side is an empty set


# The key, and whether rows of different keys may meet, or rows come out that belong to no key.
Joined = tuple[Key | None, bool]


def joined(kind: str, left: Key | None, right: Key | None, pairs: tuple[Pair, ...]) -> Joined:
    """:param left: and ``right``, None where a side is the same in every call."""
    if left is None and right is None:
        return None, False
    if right is None:
        return _with_constant(kind, pairs, left or (), kept=("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"))
    if left is None:
        return _with_constant(kind, pairs, right, kept=("Inner", "Cross", "RightOuter"))
    columns = list(zip(left, right, strict=True))
    met = all(any(_meet(pair, *column) for pair in pairs) for column in columns)
    if kind not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti"):
        return tuple(Carriers() for _ in columns), True
    return tuple(_of_both(kind, pairs, *column) for column in columns), not met


def _meet(pair: Pair, left: Carriers, right: Carriers) -> bool:
    """Whether the equality makes rows of one key meet only. Null equals nothing, so `=` needs no more than members."""
    first, sign, second = pair
    return any(
        _compares(one, sign, left) and _compares(other, sign, right)
        for one, other in ((first, second), (second, first))
    )


def _compares(side: Ids, sign: str, carriers: Carriers) -> bool:
    return carriers.determined_by(side) if sign == "<=>" else bool(side) and side <= carriers.members


def _of_both(kind: str, pairs: tuple[Pair, ...], left: Carriers, right: Carriers) -> Carriers:
    everything = left.members | right.members
    match kind:
        case "LeftSemi":
            return _present(left, pairs)
        case "LeftAnti":
            return left
        case "LeftOuter":
            return Carriers(everything, left.complete)
        case "RightOuter":
            return Carriers(everything, right.complete)
        case "FullOuter":
            return either(left, right)
    return _present(side_by_side(left, right), pairs)


def _present(carriers: Carriers, pairs: tuple[Pair, ...]) -> Carriers:
    """What was compared by `=` is not null in the rows that are left."""
    for first, sign, second in pairs:
        for side in (first, second):
            if sign == "=" and len(side) == 1:
                carriers = carriers.never_null(next(iter(side)))
    return carriers


def _with_constant(kind: str, pairs: tuple[Pair, ...], key: Key, *, kept: tuple[str, ...]) -> Joined:
    """One side is the same in every call: fine, unless its rows also come out without any of the other's."""
    if kind in ("Inner", "Cross"):
        return tuple(_present(_equated(carriers, pairs), pairs) for carriers in key), False
    if kind in kept:
        return key, False
    return tuple(carriers.partly_null() for carriers in key), True


def _equated(carriers: Carriers, pairs: tuple[Pair, ...]) -> Carriers:
    """A column of the constant side that equals the key is the key."""
    for first, sign, second in pairs:
        for one, other in ((first, second), (second, first)):
            if sign == "=" and one and one <= carriers.members and len(other) == 1:
                carriers = side_by_side(carriers, Carriers.of(next(iter(other))))
    return carriers
