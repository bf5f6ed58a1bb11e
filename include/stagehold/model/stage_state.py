"""State: what a stage keeps from one interval to the next, as its author declares it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StateKind(StrEnum):
    """How state is dealt to partitions, also when there are more or fewer of them than before."""

    KEYED = "keyed"  # rows belong to the partition of their key group
    SPLIT = "split"  # a list; each element goes to one partition
    UNION = "union"  # a list; every partition is given every element
    BROADCAST = "broadcast"  # a list; all partitions hold the same elements already

    @property
    def is_list(self) -> bool:
        return self is not StateKind.KEYED


@dataclass(frozen=True)
class StateColumn:
    """A column of state; ``type`` is as Spark spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class StateShape:
    """The shape of a state of a stage. ``key`` are the columns that group keyed state; its groups can be told only by
    the hash that wrote it. A list has neither.
    """

    name: str
    kind: StateKind
    columns: tuple[StateColumn, ...]
    key: tuple[str, ...] = ()
    hash_name: str | None = None
