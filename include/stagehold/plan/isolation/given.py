"""What a plan does not tell of the frames that a function was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MARK = "_stagehold_input_"


@dataclass(frozen=True)
class GivenInput:
    """One frame that the function was given, under the alias `mark`.

    ``key`` are the columns it is exchanged by; empty if it holds the partitions' rows without being keyed, and None if
    it is the same whatever partitions are computed. ``types`` are those columns' types as far as they are known.
    """

    stage: str
    key: tuple[str, ...] | None
    types: Mapping[str, str] = field(default_factory=dict)


def mark(place: int) -> str:
    """The alias of the input at that place."""
    return f"{MARK}{place}"
